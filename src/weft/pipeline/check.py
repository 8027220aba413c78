"""Checks that every table holds what the drains wrote, stream by stream (PIP-063).

Four sets of numbers are compared as ranges: what the manifests say (their chain is verified on the way), what bronze
holds, what silver and quarantine hold together, and what was announced lost. Rows removed on purpose count as present:
their removal is recorded with table and number of rows (LAK-037). What the pipeline has not taken yet is *behind*;
every other difference is a hole or a contradiction, and is reported.
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.base.vectors import VersionVector
from weft.lake.audit import audit
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault
from weft.lake.reader import Source
from weft.lake.summary import streams_of
from weft.pipeline.digests import Proof, adopt, proofs
from weft.pipeline.intake import received_of
from weft.pipeline.logdigests import adopt_log, log_proofs
from weft.pipeline.progress import reached
from weft.pipeline.sql import Lake
from weft.pipeline.tablenumbers import TWINS_OF, TableNumbers, numbers_in, union
from weft.pipeline.tables import STAGES, Table, there
from weft.pipeline.upkeep.forgotten import accounts, gone_from, rows_by_table
from weft.pipeline.upkeep.log import live_files, opened

if TYPE_CHECKING:
    import pyarrow as pa

EXIT: Final = {"equal": 0, "behind": 1, "broken": 2, "unproved": 3}
SHOWN_RANGES: Final = 100
DUPLICATES: Final = (
    "SELECT coalesce(sum(rows_duplicate), 0)::BIGINT FROM meta.progress WHERE job = '{job}' AND batch <= {upto}"
)


class Difference(NamedTuple):
    """One difference between what should be and what is."""

    what: str
    """One sentence."""
    ranges: dict[str, str]
    """Numbers concerned, `{"origin/era": "5-6,9-9"}`; empty if no numbers are concerned."""


class Verdict(NamedTuple):
    """The result of the comparison."""

    state: str
    """`equal`, `behind` or `broken`; `unproved`: some files have no digest, and nothing else is wrong."""
    segments: int
    waiting: int
    """Number of segments that are not in all tables yet."""
    rows: dict[str, int]
    """Rows by table; under `manifests` the rows that the manifests state."""
    differences: list[Difference]
    forgotten: dict[str, int] = {}
    """Rows that were removed on purpose, by table."""
    unproved: dict[str, int] = {}
    """Files without a digest, by table; only if every byte was read."""
    proved: int = 0
    """Bytes that were read and match their digests."""
    proved_s: float = 0.0

    @property
    def exit_code(self) -> int:
        return EXIT[self.state]


class Check:
    """One comparison of one lake."""

    def __init__(self, layout: Layout, *, deep: bool = False, adopt: bool = False) -> None:
        """`deep`: read every byte of segments and tables. `adopt`: accept files without a digest as they are now."""
        self.layout, self.deep, self.adopt = layout, deep, adopt
        self.differences: list[Difference] = []
        self.unproved: dict[str, int] = {}
        self.proved = 0

    def run(self) -> Verdict:
        """Compare. Needs no JVM and writes nothing, except digests of files to be adopted."""
        proved_s = 0.0
        if self.deep:
            began = time.perf_counter()
            self._prove_all()
            proved_s = time.perf_counter() - began
        found = Verdict("broken", 0, 0, {}, self.differences) if self.differences else self._compare()
        state = "unproved" if self.unproved and found.state != "broken" else found.state
        return found._replace(state=state, unproved=self.unproved, proved=self.proved, proved_s=proved_s)

    def _prove_all(self) -> None:
        """Read every byte of segments and tables, and compare it with its digest (FLD-030)."""
        for stream in streams_of(self.layout):
            for found in audit(self.layout, stream, deep=True):
                self.proved += found.bytes
                if found.fault is not None:
                    text = f"segment {found.number} of {stream}, drain {found.drain}: {found.fault}, {found.why}"
                    self.differences.append(Difference(text, {}))
        for table in there(self.layout):
            self._prove(table)

    def _prove(self, table: Table) -> None:
        from deltalake.exceptions import DeltaError

        try:
            handle = opened(self.layout, table)
        except DeltaError as error:
            why = str(error).partition("\n")[0]
            self.differences.append(Difference(f"{table.full_name}: its log cannot be read: {why}", {}))
            self._judge(table, log_proofs(self.layout, table))
            return
        assert handle is not None, table.full_name
        files = self._judge(table, proofs(self.layout, table, handle))
        logged = self._judge(table, log_proofs(self.layout, table))
        if not files and not logged:
            return
        if self.adopt:
            adopt(self.layout, table, files)
            adopt_log(self.layout, table, logged)
        else:
            self.unproved[table.full_name] = len(files) + len(logged)

    def _judge(self, table: Table, found: Iterable[Proof]) -> list[str]:
        """Count verified bytes, report files that do not match their digest; returns the files without one."""
        unproved = []
        for proof in found:
            if proof.fault == "unproved":
                unproved.append(proof.path)
            elif proof.fault:
                self.differences.append(Difference(f"{table.full_name}: {proof.path} is {proof.fault}", {}))
            else:
                self.proved += proof.bytes
        return unproved

    def _compare(self) -> Verdict:
        segments = waiting = 0
        rows: dict[str, int] = {}
        accounted = accounts(self.layout)
        with Lake(self.layout.root) as asked:
            for table in asked.tables():
                self._look_at_files(table)
            if self.differences:  # numbers in files that are gone or unreadable cannot be compared
                return Verdict("broken", 0, 0, {}, self.differences)
            for stream in STAGES:
                stage = _Stream(asked, self.layout, stream, accounted)
                try:
                    segments, waiting = segments + stage.count(), waiting + stage.waiting
                except SegmentFault as fault:
                    return Verdict("broken", 0, 0, {}, [Difference(str(fault), {})])
                counted = stage.compare()
                counted["manifests"] = counted.get("manifests", 0) + rows.get("manifests", 0)
                rows |= counted if stage.upto >= 0 else {}
                self.differences += stage.differences
        state = "broken" if self.differences else "behind" if waiting else "equal"
        return Verdict(state, segments, waiting, rows, self.differences, rows_by_table(accounted))

    def _look_at_files(self, table: Table) -> None:
        """Check that each file in the log exists, with the size and row count that the log gives."""
        root, delta = self.layout.table(table.layer, table.name), opened(self.layout, table)
        assert delta is not None, table.full_name
        for path, size, rows, *_ in live_files(delta, table):
            file = root / path
            if not file.exists():
                self.differences.append(Difference(f"the log of {table.full_name} names {path}, which is gone", {}))
            elif file.stat().st_size != size or _rows_in(file) != rows:
                self.differences.append(Difference(f"{table.full_name}: {path} is not what its log says", {}))


class _Stream:
    """The comparison of one stream."""

    def __init__(self, asked: Lake, layout: Layout, stream: str, accounted: "pa.Table") -> None:
        self.asked, self.stream, self.stages = asked, stream, STAGES[stream]
        self.gone = {table.full_name: gone_from(accounted, table) for table in self.stages}
        self.source = Source(layout, stream)
        self.position, self.upto = reached(asked, stream)
        self.waiting = 0
        self.differences: list[Difference] = []

    def count(self) -> int:
        """Count the segments and verify their chain; `waiting` are not in the tables. Raises SegmentFault."""
        latest = self.source.latest()
        segments = sum(1 for _ in self.source.manifests({}, latest))
        self.waiting = sum(end - self.position.get(drain, (1, 0))[0] for drain, (end, _) in latest.items())
        return segments

    def compare(self) -> dict[str, int]:
        """Compare the tables with the manifests of the segments that they took; adds to `differences`. Returns row counts."""
        if self.upto < 0:
            return {}
        written = VersionVector()
        rows = 0
        for manifest in self.source.manifests({}, self.position):
            written.update(received_of(manifest))
            rows += 0 if manifest.skipped else manifest.rows
        twins = TWINS_OF.get(self.stream, ())
        held = {table: numbers_in(self.asked, table, self.upto) for table in (*self.stages, *twins)}
        bronze = self._ever_in(held, self.stages.bronze)
        silver = self._ever_in(held, self.stages.silver, self.stages.quarantine, *twins)
        is_cut = any(row for _, row in self.position.values())
        if not is_cut:
            self._differ("in segments that are taken, and not in bronze", written - bronze)
            self._differ("in bronze, and in no segment", bronze - written)
        self._differ("in bronze, and neither in silver nor in quarantine", bronze - silver)
        self._differ("in silver or quarantine, and not in bronze", silver - bronze)
        return {"manifests": rows} | self._count(held, rows, is_cut=is_cut)

    def _ever_in(self, held: Mapping[Table, TableNumbers], *tables: Table) -> VersionVector:
        """The numbers that some tables hold, or held until somebody removed them."""
        numbers = union(held[table] for table in tables)
        for table in self.stages:
            if table in tables:
                numbers.update(self.gone[table.full_name].numbers)
        return numbers

    def _count(self, held: Mapping[Table, TableNumbers], rows: int, *, is_cut: bool) -> dict[str, int]:
        """Compare the row counts of the tables with one another; returns them by table."""
        there = self.asked.tables()
        counts = {table.full_name: held[table].rows for table in self.stages if table in there}
        duplicates = _one(self.asked, DUPLICATES.format(job=self.stream, upto=self.upto))
        bronze, refused, silver = (
            counts.get(table.full_name, 0) + self.gone[table.full_name].rows for table in self.stages
        )
        if repeated := held[self.stages.silver].repeated:
            self._say(f"{repeated} rows of silver repeat a number")
        if bronze != silver + refused + duplicates:
            self._say(
                f"{bronze} rows in bronze, but {silver} in silver, {refused} in quarantine, {duplicates} duplicates"
            )
        if not is_cut and bronze != rows:
            self._say(f"{rows} rows in segments that are taken, {bronze} in bronze")
        return counts

    def _differ(self, what: str, numbers: VersionVector) -> None:
        if numbers:
            count = sum(ranges.count for _, ranges in numbers)
            shown = {
                str(origin): ",".join(f"{first}-{last}" for first, last in list(ranges)[:SHOWN_RANGES])
                for origin, ranges in numbers
            }
            self._say(f"{count} numbers are {what}", shown)

    def _say(self, what: str, ranges: dict[str, str] | None = None) -> None:
        self.differences.append(Difference(f"{self.stream}: {what}", ranges or {}))


def _rows_in(file: Path) -> int | None:
    """The number of rows by the file's footer; None if that cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError):
        return None


def _one(asked: Lake, sql: str) -> int:
    (row,) = asked.query(sql).to_pylist()
    return int(next(iter(row.values())))
