"""Records what was removed on purpose (LAK-037), so that `lake check` and completeness do not report a loss.

Two tables must agree: the one that loses rows, and `meta.forgotten`, which lists them. They need two transactions, so a
note is written before the first and deleted after the second:

```
1  _weft/removal.json      is written: number n, table, rows for meta.forgotten
2  the table               loses the rows, in a commit with the app transaction weft.forgotten = n
3  meta.forgotten          gets the rows, in a commit with the app transaction weft.forgotten = n
4  _weft/removal.json      is deleted
```

If the table's log does not have the number of the note, the removal has not happened. If it has, readers count the rows of
the note as part of `meta.forgotten`, even if they are not there yet. So the result is right whenever a crash happens, and
the next holder of the lease does the missing steps.
"""

import getpass
import socket
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from weft.base.vectors import VersionVector
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.manifest import vector_of
from weft.pipeline.delta import created
from weft.pipeline.intake import SPREAD
from weft.pipeline.quarantined import CHANGED
from weft.pipeline.rewriting import written
from weft.pipeline.tables import ALL, FORGOTTEN, STAGES, Table
from weft.pipeline.upkeep.log import Exchange, LiveFile, exchange, opened
from weft.pipeline.upkeep.rewrite import asked, file_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.compute import Expression

COUNTED: Final = "weft.forgotten"
"""App id whose version in a table's log is the number of its last removal."""
KEEP: Final = "[lake.keep]"
"""Beginning of `Reason.what` for rows that are removed because of their age."""
COUNT: Final = "SELECT count(*) AS rows FROM held"
RANGES: Final = """
WITH gone AS MATERIALIZED (SELECT origin, era, {number} AS sequence, {width} AS width FROM held),
numbers AS (
    SELECT origin, era, sequence, max(width) AS width, count(*) AS copies FROM gone
    WHERE origin IS NOT NULL AND sequence >= 1 GROUP BY ALL
), placed AS (
    SELECT *, sequence - row_number() OVER (PARTITION BY origin, era ORDER BY sequence) AS island FROM numbers WHERE width = 1
)
SELECT origin, era, min(sequence) AS first, max(sequence) AS last, sum(copies)::BIGINT AS rows
FROM placed GROUP BY origin, era, island
UNION ALL
SELECT origin, era, sequence, sequence + width - 1, copies FROM numbers WHERE width > 1
UNION ALL
SELECT origin, era, NULL, NULL, count(*) FROM gone WHERE origin IS NULL OR coalesce(sequence, 0) < 1 GROUP BY ALL
"""
"""The numbers of some rows as ranges. A row may stand for several numbers; rows without a number are only counted."""
NUMBER: Final = f"CASE WHEN reason = '{CHANGED}' THEN NULL ELSE sequence END"
"""For quarantine: a row that is `changed` counts as one without a number, because silver has a row with that number."""
WIDTH: Final = f"CASE WHEN error IS NULL THEN 1 ELSE coalesce(try_cast(attributes['{SPREAD}'] AS BIGINT), 1) END"
NUMBERED: Final = ("origin", "era", "sequence", "error", "attributes", "reason")


class Reason(NamedTuple):
    """Why rows are removed."""

    what: str
    """Which rows, as options of the command, or the setting of `[lake.keep]`."""
    why: str
    by: str
    """Who removes them."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A removal that is not finished: the content of `removal.json`."""

    number: int
    table: str
    rows: list[dict[str, Any]]
    """Rows for `meta.forgotten`; `at` in microseconds since 1970."""


def whoever() -> str:
    """User and host of this process, for people to read."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def stream_of(table: Table) -> str | None:
    """The stream of a table of bronze, silver or quarantine; None for tables whose rows have no numbers."""
    return next((stream for stream, stages in STAGES.items() if table in stages), None)


def facts(
    layout: Layout, table: Table, files: Sequence[LiveFile], only: "Expression | None" = None
) -> list[dict[str, Any]]:
    """What is about to be removed from these files: ranges of numbers and row counts, or row counts alone."""
    if not files:
        return []
    names = file_schema(layout, table).names
    if stream_of(table) is None:
        with asked(layout, table, files, names[:1], only) as connection:
            found: list[dict[str, Any]] = connection.sql(COUNT).to_arrow_table().to_pylist()
            return [row for row in found if row["rows"]]
    columns = [name for name in NUMBERED if name in names]
    with asked(layout, table, files, columns, only) as connection:
        width = WIDTH if {"error", "attributes"} <= set(names) else "1"
        words = RANGES.format(width=width, number=NUMBER if table.layer == "quarantine" else "sequence")
        ranges: list[dict[str, Any]] = connection.sql(words).to_arrow_table().to_pylist()
        return ranges


def remove(layout: Layout, wanted: Exchange, found: Iterable[dict[str, Any]], reason: Reason, epoch: int) -> int:
    """Remove rows from one table, and record it; returns how many rows.

    The caller holds the lease of `epoch`. Raises Overtaken and LeaseLost as `exchange` does; then nothing is removed.
    """
    settle(layout, epoch)
    number = _counted(layout, FORGOTTEN) + 1
    rows = [_row(wanted.table, entry, reason) | {"number": number} for entry in found]
    LocalFiles().make_directories(layout.removal().parent)
    note = Note(number=number, table=wanted.table.full_name, rows=rows)
    LocalFiles().put(layout.removal(), msgspec.json.encode(note))
    exchange(layout, wanted._replace(apps={COUNTED: number}), epoch)
    settle(layout, epoch)
    return sum(row["rows"] for row in rows)


def settle(layout: Layout, epoch: int) -> None:
    """Complete the record of a removal that a crash interrupted. The caller holds the lease."""
    note = _note(layout)
    if note is None:
        return
    if _counted(layout, ALL[note.table]) >= note.number and _counted(layout, FORGOTTEN) < note.number:
        _append(layout, note, epoch)
    layout.removal().unlink()


def accounts(layout: Layout) -> "pa.Table":
    """Everything that was ever removed on purpose: rows of `meta.forgotten`, and of an unfinished removal."""
    import pyarrow as pa

    delta = opened(layout, FORGOTTEN)
    recorded = _empty() if delta is None else delta.to_pyarrow_table()
    note = _note(layout)
    if note is None or _counted(layout, FORGOTTEN) >= note.number or _counted(layout, ALL[note.table]) < note.number:
        return recorded
    return pa.concat_tables([recorded, _table(note)])


class Gone(NamedTuple):
    """What was removed from certain tables."""

    numbers: VersionVector
    rows: int


def gone_from(accounted: "pa.Table", *tables: Table) -> Gone:
    """The part of the record that concerns these tables."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = accounted.filter(pc.is_in(accounted.column("table"), pa.array([table.full_name for table in tables])))
    numbers = vector_of(wanted.select(["origin", "era", "first", "last"]).to_pylist())
    return Gone(numbers, pc.sum(wanted.column("rows")).as_py() or 0)


def rows_by_table(accounted: "pa.Table") -> dict[str, int]:
    """How many rows each table has lost on purpose."""
    summed = accounted.group_by("table").aggregate([("rows", "sum")])
    return dict(zip(summed.column("table").to_pylist(), summed.column("rows_sum").to_pylist(), strict=True))


def retired(accounted: "pa.Table") -> "pa.Table":
    """The part of the record about rows that were removed because of their age."""
    import pyarrow.compute as pc

    return accounted.filter(pc.starts_with(accounted.column("what"), KEEP))


def numbers(layout: Layout, stream: str) -> VersionVector:
    """Numbers of a stream whose rows in silver or quarantine were removed on purpose. They stay covered."""
    if opened(layout, FORGOTTEN) is None and _note(layout) is None:
        return VersionVector()
    stages = STAGES[stream]
    return gone_from(accounts(layout), stages.silver, stages.quarantine).numbers


def refused(layout: Layout, stream: str) -> VersionVector:
    """Numbers of a stream whose rows in quarantine were removed on purpose. Pairs of samples still span them."""
    return gone_from(accounts(layout), STAGES[stream].quarantine).numbers


def _row(table: Table, entry: dict[str, Any], reason: Reason) -> dict[str, Any]:
    return {
        "at": round(datetime.now(UTC).timestamp() * 1_000_000),
        "by": reason.by,
        "why": reason.why,
        "what": reason.what,
        "table": table.full_name,
        "stream": stream_of(table),
        "origin": entry.get("origin"),
        "era": entry.get("era"),
        "first": entry.get("first"),
        "last": entry.get("last"),
        "rows": entry["rows"],
    }


def _note(layout: Layout) -> Note | None:
    try:
        return msgspec.json.decode(layout.removal().read_bytes(), type=Note)
    except FileNotFoundError:
        return None


def _counted(layout: Layout, table: Table) -> int:
    """The number of the last removal in a table's log, 0 before the first."""
    delta = opened(layout, table)
    return 0 if delta is None else delta.transaction_version(COUNTED) or 0


def _append(layout: Layout, note: Note, epoch: int) -> None:
    """Add the rows of a removal to `meta.forgotten`, which is created first if it does not exist."""
    path = layout.table(FORGOTTEN.layer, FORGOTTEN.name)
    if opened(layout, FORGOTTEN) is None:
        created(layout, FORGOTTEN)
    new = written(path, FORGOTTEN, _table(note), path / f"a{note.number:010d}-")
    apps = {COUNTED: note.number}
    exchange(layout, Exchange(FORGOTTEN, (), (new,), "account", is_rearranged=False, apps=apps), epoch)


def _table(note: Note) -> "pa.Table":
    import pyarrow as pa

    return pa.Table.from_pylist(note.rows, FORGOTTEN.schema.arrow())


def _empty() -> "pa.Table":
    return FORGOTTEN.schema.arrow().empty_table()
