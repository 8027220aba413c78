"""The bridge: adds drained rows to an answer before the driver has put them into the tables (PIP-102).

Such rows are *pending*. DuckDB reads them from the segments:

```
bronze.<stream>    every pending row, as received
silver.<stream>    pending rows, each number once, typed; without those that silver would refuse
silver.series      definitions of keys of pending samples that no batch has seen yet
```

Views over these tables, and the newest raw value in `latest`, include pending rows too. Every other table is as of its
last commit, because its rows cannot be computed one by one: calculated values and roll-ups need neighbours and edges,
`completeness` and `anomalies` depend on time, quarantine needs the row of silver with the same number. `Freshness` says
which tables are bridged.

Not bridged either: imported logs, whose rows must be compared with one another; and silver of a stream for which
`lake.toml` has rules, which are Spark SQL. Rows of several pending batches are judged as one batch. If two drains
deliver different content under one number, or two definitions of one key, the choice between them may change until the
driver commits.
"""

import glob
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from weft.base.errors import UserError
from weft.base.vectors import VersionVector
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault, name_of
from weft.lake.reader import Slice
from weft.lake.schemas import SEGMENTS, VERSION
from weft.pipeline.bridge.claims import CLAIMS, Named
from weft.pipeline.bridge.pending import Moved, Pending, Stream, Unknown
from weft.pipeline.bridge.silver import LATE, columns_of, day_of
from weft.pipeline.bridge.verdicts import verdict
from weft.pipeline.datasets import Datasets
from weft.pipeline.marks import app_version
from weft.pipeline.scan import quoted, typed
from weft.pipeline.settings import LakeTable, settings_of
from weft.pipeline.tables import LATEST, SAMPLES, SERIES, STAGES, Table
from weft.pipeline.versions import EPOCH, made_at, stamp_of
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable

TRIES: Final = 5
"""How often a table is opened anew because the driver has committed meanwhile; then pending rows are left out."""
OPEN_MAX: Final = 256  # open segments at a time: each costs DuckDB 0.2 MB
COPIED_ROWS: Final = 1_000  # of a segment: with fewer, copying its rows once costs less than opening it more than once
NO_ERA: Final = -1 << 63
"""Replaces a missing era where two eras are compared."""
FILES: Final = """
read_parquet([{files}], union_by_name = {is_mixed}, filename = true, file_row_number = true, hive_partitioning = false)
"""
RECEIVED: Final = """
SELECT {columns}, split_part(filename, '/', -3) AS drain,
       ('0x' || split_part(split_part(filename, '/', -1), '.', 1))::BIGINT AS segment, file_row_number AS row
FROM {source} WHERE {cut}
"""
FIRST: Final = """
SELECT * FROM ({rows})
QUALIFY NOT coalesce(sequence >= 1 AND origin IS NOT NULL, false)
     OR row_number() OVER (PARTITION BY origin, era, sequence ORDER BY drain, segment, row) = 1
"""
"""Keeps each number once; rows without a number are left for the verdict."""
WITHIN: Final = f"""
SELECT r.*, coalesce(r.sequence <= g.last, false) AS {{name}} FROM ({{rows}}) r
ASOF LEFT JOIN {{ranges}} g
ON r.origin = g.origin AND coalesce(r.era, {NO_ERA}) = g.era AND r.sequence >= g.first
"""
"""Adds a column that says whether a row's number lies in a range. Ranges of one origin do not overlap."""
DEFINED: Final = "defined_series"
SAID: Final = "{'config_name': config_name, 'detail': detail, 'type': type, 'param': param, 'labels': list_sort(map_entries(labels))}"
"""The definition of a series, as one value."""
DEFINITIONS: Final = f"""
CREATE TEMP TABLE {DEFINED} AS
WITH told AS (
    SELECT series, {{said}} AS said, min((drain, segment, row)) AS place,
           arg_min({{{{'config_name': config_name, 'detail': detail, 'type': type, 'param': param, 'labels': labels}}}},
                   (drain, segment, row)) AS about
    FROM ({{rows}}) GROUP BY ALL
), known AS (
    SELECT series, any_value({{said}}) AS known FROM {{known}} GROUP BY series
)
SELECT series, said, about.*, row_number() OVER w AS turn, known IS NULL AS is_new,
       coalesce(known, first_value(said) OVER w) = said AS is_one
FROM told LEFT JOIN known USING (series) WINDOW w AS (PARTITION BY series ORDER BY place)
"""
"""One row per key and definition: `turn` 1 is the first of its key; `is_new`: no batch has the key; `is_one`: it counts."""
WRITTEN: Final = "hash(config_name, detail, type, param, labels, labels IS NULL)"
"""A hash of the same value, with its labels in the order in which they came."""
UNKNOWN: Final = f"""
FROM {{rows}} told LEFT JOIN (SELECT series, any_value({WRITTEN}) AS known FROM {{known}} GROUP BY series) USING (series)
WHERE series IS NOT NULL AND (known IS NULL OR {WRITTEN} <> known)
"""
"""Rows whose definition is not, letter by letter, one that a batch has brought: mostly none, and then nothing else is asked."""
UNCOLLIDED: Final = f"""
SELECT rows.* FROM ({{rows}}) rows
ANTI JOIN (SELECT series, said FROM {DEFINED} WHERE NOT is_one) other
ON rows.series = other.series AND {{said}} = other.said
"""


class Freshness(NamedTuple):
    """How current one table of an answer is."""

    table: str
    is_bridged: bool
    """True: the answer includes drained rows that no commit names yet. False: it is as of the table's last commit."""
    newest: datetime | None
    """When the newest row that the answer can contain was received.

    For a table that is not bridged: its last commit.
    """
    rows: int = 0
    """How many drained rows were read besides the table, as received."""
    segments: int = 0
    """How many segments have these rows."""
    left: int = 0
    """Drained segments that were not read, because too many wait for the driver."""
    why: str = ""
    """Why rows are missing that are drained; empty if none are."""


class Tables(Protocol):
    """The methods of `Lake` that the bridge uses."""

    def handle(self, table: Table) -> "DeltaTable | None":
        """The version that is read; None if the table does not exist."""

    def reopen(self, table: Table) -> None:
        """Open a newer version."""

    def committed(self, table: Table) -> str:
        """The rows of that version, as what stands behind FROM."""


class Bridge:
    """The pending rows for the queries of one `Lake`. Each stream is examined once, when one of its tables is first used."""

    def __init__(self, layout: Layout, connection: "duckdb.DuckDBPyConnection", tables: Tables) -> None:
        self.layout, self.connection, self.tables = Layout(layout.root.resolve()), connection, tables
        self.freshness: dict[str, Freshness] = {}
        """How current each table is that was selected, by its full name."""
        self._streams: dict[str, Stream] = {}
        self._selected: dict[str, str | None] = {}
        self._read: dict[tuple[str, tuple[Slice, ...]], str] = {}
        self._settings: LakeTable | None = None
        self._has_defined = False
        """Whether `DEFINED` exists: some definition is not yet known as it is written."""

    def known(self) -> Iterator[Table]:
        """Tables that can be queried, even before a driver has made them: those of every drained stream."""
        for stream, stages in STAGES.items():
            if self.layout.drains(stream).is_dir():
                yield from (stages.bronze, stages.silver)
                yield from (SERIES, LATEST) if stages.silver is SAMPLES else ()

    def select(self, table: Table) -> str | None:
        """The pending rows of a table as a SELECT, in the table's columns and types; None if there are none.

        This call decides the version of the table: read the version that `Tables.handle` returns afterwards.
        """
        name = table.full_name
        if name not in self._selected:
            try:
                self._selected[name] = self._series() if table is SERIES else self._of_stream(table)
            except (SegmentFault, Unknown, UserError) as fault:
                self._selected[name] = None
                self.freshness[name] = self._as_committed(table, str(fault).partition("\n")[0])
        return self._selected[name]

    def _of_stream(self, table: Table) -> str | None:
        """`select` for a table of bronze or silver. Raises Unknown if its rows cannot be bridged."""
        stream = next((name for name, stages in STAGES.items() if table in (stages.bronze, stages.silver)), None)
        if stream is None:
            raise Unknown("only the driver can compute it")
        if not self.layout.drains(stream).is_dir():
            return None
        if table.layer == "silver" and any(rule.stream == stream for rule in self._lake_toml().rule):
            raise Unknown("lake.toml has rules for it, which only the driver can apply")
        return self._selected_from(table, stream, self._pending(table, stream))

    def _pending(self, table: Table, stream: str) -> Pending:
        if stream not in self._streams:
            self.tables.handle(table)  # choose the version first, then the segments
            self._streams[stream] = Stream(self.layout, stream)
        found = self._streams[stream]
        for _ in range(TRIES):
            try:
                batch = self._batch(table, found)
                return found.pending(batch, partial(self._offset, table, stream, batch))
            except Moved:
                self.tables.reopen(table)
        raise Unknown("the driver commits faster than the table can be opened")

    def _batch(self, table: Table, stream: Stream) -> int | None:
        """The last batch that the opened version has from the current job."""
        handle, record = self.tables.handle(table), stream.record()
        if handle is None:
            return None
        if record is None:
            raise Unknown("the checkpoint of its job is not in this lake")
        return app_version(handle, Writer(stream.stream, record.id, 0).app(table))

    def _offset(self, table: Table, stream: str, batch: int | None) -> str | None:
        """The offset at which a batch ended, from its commit to the table; None if the log does not have it."""
        handle = self.tables.handle(table)
        commits = [] if handle is None else handle.history()
        of_batch = [c for c in commits if (c.get("weft.job"), c.get("weft.batch")) == (stream, str(batch))]
        return next((commit["weft.offset"] for commit in of_batch if "weft.offset" in commit), None)

    def _selected_from(self, table: Table, stream: str, pending: Pending) -> str | None:
        """The SELECT of pending rows in the table's columns; None without rows. Also records the table's freshness."""
        imported = Datasets().among(pending.slices) if table is SAMPLES else {}
        slices = tuple(piece for piece in pending.slices if piece.drain not in imported)
        pending = pending._replace(slices=slices)
        wait = f"imported rows wait for the driver: {', '.join(sorted(imported.values()))}" if imported else ""
        self.freshness[table.full_name] = Freshness(
            table.full_name, True, _instant(pending.newest), _rows(slices), len(slices), pending.left, wait
        )
        if not slices:
            return None
        if table.layer == "bronze":
            return self._typed(table, {"batch": "NULL", "day": day_of("received_ns")}, self._received(slices, stream))
        return self._typed(table, columns_of(table), self._accepted(table, stream, pending))

    def _received(self, slices: tuple[Slice, ...], stream: str) -> str:
        """The rows of some slices in bronze's columns, as what stands behind FROM.

        A query reads only the columns that it needs; of small or many segments all are copied into a table first.
        """
        if len(slices) <= OPEN_MAX and _rows(slices) > COPIED_ROWS * len(slices):
            return f"({self._select_from_files(slices, stream)})"
        if (stream, slices) not in self._read:
            self._read[stream, slices] = self._part_of_copied(slices, stream) or self._copied(slices, stream)
        return self._read[stream, slices]

    def _part_of_copied(self, slices: tuple[Slice, ...], stream: str) -> str | None:
        """The rows of slices among others that were copied before; None if they were not."""
        wanted = set(slices)
        name = next((name for (of, held), name in self._read.items() if of == stream and wanted <= set(held)), None)
        named = ", ".join(f"({quoted(piece.drain)}, {piece.number})" for piece in slices)
        return None if name is None else f"(SELECT * FROM {name} WHERE (drain, segment) IN ({named}))"

    def _copied(self, slices: tuple[Slice, ...], stream: str) -> str:
        name = f"received_{len(self._read)}"
        for first in range(0, len(slices), OPEN_MAX):
            begin = f"INSERT INTO {name}" if first else f"CREATE TEMP TABLE {name} AS"
            self.connection.execute(f"{begin} {self._select_from_files(slices[first : first + OPEN_MAX], stream)}")
        return name

    def _select_from_files(self, slices: tuple[Slice, ...], stream: str) -> str:
        schema, is_mixed = SEGMENTS[stream].arrow(), self._may_lack_columns(slices, stream)
        files = ", ".join(quoted(glob.escape(piece.path)) for piece in slices)
        source = FILES.format(files=files, is_mixed=str(is_mixed).lower())
        present = self.connection.sql(f"FROM {source} LIMIT 0").columns if is_mixed else schema.names
        columns = typed(self.connection, schema, {name: "NULL" for name in schema.names if name not in present})
        cut = [
            f"(filename <> {quoted(piece.path)} OR file_row_number BETWEEN {piece.first} AND {piece.last - 1})"
            for piece in slices
            if not piece.is_whole
        ]
        return RECEIVED.format(columns=columns, source=source, cut=" AND ".join(["true", *cut]))

    def _may_lack_columns(self, slices: tuple[Slice, ...], stream: str) -> bool:
        """Whether a segment may lack a column that was added later (LAK-021)."""
        drains = self._streams[stream].source.drains()
        manifests = (drains[piece.drain].manifest(piece.number) for piece in slices)
        return any(manifest is None or manifest.schema < VERSION for manifest in manifests)

    def _accepted(self, table: Table, stream: str, pending: Pending) -> str:
        """Rows that silver takes: each number once, and no row with a reason to refuse it."""
        slices, reason = pending.slices, verdict(stream, self._lake_toml().known_nodes)
        odd = self._unlike(f"({reason}) IS NULL", slices, stream)
        rows = self._judged(slices, odd, reason, stream)
        if not pending.is_disjoint or self._unlike("error IS NULL", odd, stream):
            rows = FIRST.format(rows=rows)
        if pending.repeated:
            ranges = self._ranges(f"again_{stream}", pending.repeated)
            rows = f"SELECT * FROM ({WITHIN.format(rows=rows, ranges=ranges, name='is_again')}) WHERE NOT is_again"
        rows = f"SELECT * FROM ({rows}) WHERE reason IS NULL"
        if table is not SAMPLES:
            return rows
        if self._has_collisions(slices, odd, reason):
            rows = UNCOLLIDED.format(rows=rows, said=SAID)
        if pending.late:
            return WITHIN.format(rows=rows, ranges=self._ranges("late_samples", pending.late), name=LATE)
        return f"SELECT *, false AS {LATE} FROM ({rows})"

    def _judged(self, slices: tuple[Slice, ...], odd: tuple[Slice, ...], reason: str, stream: str) -> str:
        """The rows of slices with the reason to refuse each; only rows of slices that are `odd` have any."""
        refusing = set(odd)
        good = tuple(piece for piece in slices if piece not in refusing)
        bad = tuple(piece for piece in slices if piece in refusing)
        parts = [(good, "NULL"), (bad, reason)]
        return " UNION ALL ".join(
            f"SELECT *, {why} AS reason FROM {self._received(of, stream)}" for of, why in parts if of
        )

    def _unlike(self, condition: str, slices: tuple[Slice, ...], stream: str) -> tuple[Slice, ...]:
        """The slices with a row that does not match a condition, which is never null."""
        return CLAIMS.contradicted(
            condition, slices, lambda new: self._named(f"FROM {self._received(new, stream)} WHERE NOT ({condition})")
        )

    # Definitions of series keys.

    def _has_collisions(self, slices: tuple[Slice, ...], odd: tuple[Slice, ...], reason: str) -> bool:
        """Whether a key has two definitions. Keeps the definitions of samples that no batch has brought as `DEFINED`."""
        series = self.tables.handle(SERIES)
        stamp = None if series is None else stamp_of(series)
        new = slices if stamp is None else CLAIMS.contradicted((UNKNOWN, stamp), slices, self._undefined)
        self._has_defined = bool(new)
        if not new:
            return False
        good = f"SELECT * FROM ({self._judged(new, odd, reason, SAMPLES.name)}) WHERE reason IS NULL"
        self.connection.execute(DEFINITIONS.format(rows=good, known=self.tables.committed(SERIES), said=SAID))
        return self._any(f"FROM {DEFINED} WHERE NOT is_one")

    def _undefined(self, slices: tuple[Slice, ...]) -> set[Named]:
        """Of slices of samples those with a definition that no batch has brought as it is written."""
        known, rows = self.tables.committed(SERIES), self._received(slices, SAMPLES.name)
        return self._named(UNKNOWN.format(rows=rows, known=known))

    def _series(self) -> str | None:
        """The SELECT of definitions of keys that no batch has seen yet; None if samples have no pending rows."""
        if self.select(SAMPLES) is None:
            return None
        samples = self.freshness[SAMPLES.full_name]
        self.freshness[SERIES.full_name] = samples._replace(table=SERIES.full_name)
        if not self._has_defined:
            return None
        made = {"batch": "NULL", "definition": "NULL"}
        return self._typed(SERIES, made, f"SELECT * FROM {DEFINED} WHERE is_new AND turn = 1")

    # Used by the above.

    def _typed(self, table: Table, made: dict[str, str], rows: str) -> str:
        return f"SELECT {typed(self.connection, table.schema.arrow(), made)} FROM ({rows})"

    def _named(self, rows: str) -> set[Named]:
        """The segments from which some rows are. Mostly there is no row: that is found in half of the time of naming segments."""
        if not self._any(rows):
            return set()
        return set(self.connection.execute(f"SELECT DISTINCT drain, segment {rows}").fetchall())

    def _any(self, rows: str) -> bool:
        return bool(self.connection.execute(f"SELECT 1 {rows} LIMIT 1").fetchall())

    def _ranges(self, name: str, numbers: VersionVector) -> str:
        """Register ranges as a small table in DuckDB; returns its name."""
        import pyarrow as pa

        rows = [
            (name_of(origin.node), NO_ERA if origin.era is None else origin.era, first, last)
            for origin, ranges in numbers
            for first, last in ranges
        ]
        names = ("origin", "era", "first", "last")
        columns = [[row[place] for row in rows] for place in range(len(names))]
        types = [pa.string(), pa.int64(), pa.int64(), pa.int64()]
        made = pa.table(
            [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names=list(names)
        )
        self.connection.register(name, made)
        return name

    def _lake_toml(self) -> LakeTable:
        if self._settings is None:
            self._settings = settings_of(self.layout)
        return self._settings

    def _as_committed(self, table: Table, why: str) -> Freshness:
        """The freshness of a table that is not bridged."""
        handle = self.tables.handle(table)
        if handle is None:
            return Freshness(table.full_name, False, None, why=why)
        path = self.layout.table(table.layer, table.name)
        try:
            return Freshness(table.full_name, False, made_at(path, handle.version()), why=why)
        except OSError:  # the log does not have that commit any more, only a checkpoint
            return Freshness(table.full_name, False, None, why=why)


def _rows(slices: tuple[Slice, ...]) -> int:
    return sum(piece.last - piece.first for piece in slices)


def _instant(nanoseconds: int | None) -> datetime | None:
    return None if nanoseconds is None else EPOCH + timedelta(microseconds=nanoseconds // 1000)
