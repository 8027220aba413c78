"""Updates `gold.completeness` with the batches of one job (PIP-060..062).

The numbers come from the driver's ranges, the counts from the rows of batches since the last fold. Each job has its own
rows in its own files: a fold replaces these and no others. The commit that counts a batch also records its number in the
table's log, so nothing is counted twice. As time passes a hole may become overdue, and an origin silent, without any
new batch: then the rows are written again, else not.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.pipeline.completeness import OVERDUE_NS, Instant, Tally, completed, instant_of, rows_of
from weft.pipeline.fold import fresh_of
from weft.pipeline.tables import COMPLETENESS, PROGRESS
from weft.pipeline.transforms.completeness import tallies
from weft.pipeline.upkeep.forgotten import numbers

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset

    from weft.pipeline.coverage import Coverage
    from weft.pipeline.delta import Tables
    from weft.pipeline.kinds import Kind

Key = tuple[str, int | None]
"""Origin and era, as tables name them."""


class Counting:
    """The completeness rows of one job."""

    def __init__(self, kind: "Kind", tables: "Tables", about: Mapping[str, str]) -> None:
        self.kind, self.tables, self.about = kind, tables, about

    def bring(self, coverage: "Coverage", upto: int, now: int) -> None:
        """Update the rows to include batch `upto`; `coverage` is the state after it, `now` wall-clock nanoseconds."""
        mark, erased = self.tables.committed(COMPLETENESS), numbers(self.tables.lake, self.kind.stream)
        files = self.tables.files(COMPLETENESS, [("stream", "=", self.kind.stream)])
        old = self.tables.dataset(COMPLETENESS, files)
        if mark == upto and not erased and not _has_aged(coverage, old, now):
            return
        counted = self._counted(old if mark >= 0 else None, mark, upto)
        rows = self._rows(coverage, counted, Instant(upto, now, erased))
        if mark < upto or not rows.equals(old.to_table()):
            added = self.tables.write_rows(COMPLETENESS, rows, upto)
            self.tables.commit(COMPLETENESS, upto, added, self.about, remove=self.tables.relative(COMPLETENESS, files))

    def _rows(self, coverage: "Coverage", counted: dict[Key, Tally], when: Instant) -> "pa.Table":
        import pyarrow as pa

        nothing = Tally()
        rows = [
            completed(row, counted.get((row["origin"], row["era"]), nothing), when.now)
            for row in rows_of(coverage, self.kind.stream, when)
        ]
        return pa.Table.from_pylist(rows, COMPLETENESS.schema.arrow())

    def _counted(self, old: "Dataset | None", mark: int, upto: int) -> dict[Key, Tally]:
        """The table's counts plus those of the batches since; without a mark everything is counted anew."""
        known = [] if old is None else old.to_table().to_pylist()
        counted = {(row["origin"], row["era"]): Tally.of(row) for row in known}
        if mark < upto:
            stages = (self.kind.bronze, self.kind.silver, self.kind.quarantine)
            bronze, silver, quarantine = (fresh_of(self.tables, table, mark, upto).rows for table in stages)
            for row in tallies(bronze, silver, quarantine, self.kind.seen).toArrow().to_pylist():
                key = (row.pop("origin"), row.pop("era"))
                counted[key] = counted.get(key, Tally()).plus(Tally(**row))
            for key, rows in self._returned(mark, upto).items():
                counted[key] = counted[key].plus(Tally(quarantined=-rows))
        return counted

    def _returned(self, mark: int, upto: int) -> dict[Key, int]:
        """Rows released from quarantine. They were counted before, because a release begins with a fold."""
        if mark < 0:
            return {}
        return released_since(self.tables, self.kind, mark, upto)


def _has_aged(coverage: "Coverage", rows: "Dataset", now: int) -> bool:
    """Whether a hole has become overdue, or an origin silent, since the rows were written."""
    import pyarrow.compute as pc

    def has_row(state: str, condition: Any) -> bool:
        return bool(rows.count_rows(filter=(pc.field("state") == state) & condition))

    is_overdue = any(now - hole.since > OVERDUE_NS for holes in coverage.holes.values() for hole in holes)
    is_late = ~pc.field("closed") & (pc.field("last_received") < instant_of(now - OVERDUE_NS))
    return (is_overdue and has_row("filling", pc.scalar(True))) or has_row("complete", is_late)


def released_since(tables: "Tables", kind: "Kind", mark: int, upto: int) -> dict[tuple[str, int | None], int]:
    """For each origin and era, how many rows left quarantine (PIP-033) in batches `mark + 1` to `upto` of a stream."""
    import pyarrow.compute as pc

    of_job = (pc.field("job") == kind.stream) & (pc.field("rows_quarantine") < 0)
    progress = tables.dataset(PROGRESS, tables.files(PROGRESS, f"batch > {mark} AND batch <= {upto}"))
    is_new = (pc.field("batch") > mark) & (pc.field("batch") <= upto)
    found: dict[tuple[str, int | None], int] = {}
    for number in progress.to_table(columns=["batch"], filter=of_job & is_new)["batch"].to_pylist():
        rows = tables.dataset(kind.silver, tables.files(kind.silver, f"batch = {number}"))
        back = rows.to_table(columns=["origin", "era"], filter=pc.field("batch") == number)
        for entry in back.group_by(["origin", "era"]).aggregate([([], "count_all")]).to_pylist():
            key = (entry["origin"], entry["era"])
            found[key] = found.get(key, 0) + entry["count_all"]
    return found
