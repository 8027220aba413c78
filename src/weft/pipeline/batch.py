"""One micro-batch of a stream, from segments to tables (PIP-022, PIP-032).

```
bronze       everything, as received: the segments themselves (`adoption`)
quarantine   what silver refuses, with the reason
silver       each number once
```

Each step is one Delta transaction that names the batch; a step is skipped if its table already has the batch. So a batch
that is repeated after a crash makes the same tables: its inputs are segments (immutable) and the coverage before the batch
(saved). What differs from stream to stream stands in `kinds`; batches of samples do more (`sampled`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import Column, Observation
from pyspark.sql import functions as F

from weft.base.errors import OurFault
from weft.base.identity import Origin
from weft.base.ranges import Range
from weft.lake.manifest import name_of
from weft.lake.reader import Slice
from weft.pipeline.adoption import adopted
from weft.pipeline.coverage import Coverage, Plan
from weft.pipeline.delta import DataFile, Tables
from weft.pipeline.intake import SPREAD, Intake
from weft.pipeline.kinds import Kind
from weft.pipeline.quarantined import refused_by
from weft.pipeline.remote import parallelism
from weft.pipeline.rewriting import UNCHANGED, Replaced
from weft.pipeline.rules import lenient
from weft.pipeline.ruleset import Rules
from weft.pipeline.source import rows_of
from weft.pipeline.steps import Steps
from weft.pipeline.tables import Table
from weft.pipeline.transforms import dedup
from weft.pipeline.transforms.bronze import to_bronze
from weft.pipeline.transforms.columns import batch_mark
from weft.pipeline.transforms.quality import explained, judged, ruled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_PER_TASK: Final = 250_000  # a smaller batch is one task, and each table gets one file
SMALL_ROWS_MAX: Final = 50_000  # up to this size the fixed cost of a Spark job exceeds the cost of its rows
# A join finds the ranges that contain a number by its bucket, which is `number >> shift`. These are the possible shifts.
SHIFTS: Final = (62, 20, 12, 8)
RANGES_PER_BUCKET_MAX: Final = 16  # of one origin; a row is compared with each of them
BUCKETS_MAX: Final = 200_000  # rows of the smaller side of that join


class Counts(NamedTuple):
    """What one pass over the rows counts."""

    rows: int
    refused: int
    spread: int
    """Error rows that stand for several numbers each."""
    new: int = 0
    """Rows of series whose definition is not in `silver.series` yet."""


class Outcome(NamedTuple):
    """How many rows of a batch went where."""

    rows: int
    silver: int
    duplicates: int
    quarantined: int
    values: int
    """Calculated values; only for samples."""


class Batch:
    """The steps of one batch; `run` does those that are not done yet."""

    def __init__(self, kind: Kind, tables: Tables, number: int, about: Mapping[str, str], rules: Rules) -> None:
        self.kind, self.tables, self.number, self.about, self.rules = kind, tables, number, about, rules
        self.spark = tables.spark
        self.mark = batch_mark(number)
        self._persisted: list[DataFrame] = []
        self.is_plain = True
        """True: a row of silver depends on its own row of bronze alone. False if the batch has rows of datasets."""
        self._silver_files: list[DataFile] | None = None
        """The files for silver, if the pass that counted has written them already; else None."""

    def run(self, intake: Intake, plan: Plan, coverage: Coverage, steps: Steps) -> Outcome:
        """Do all steps between coverage and progress of the batch, and add the refused numbers to `coverage`.

        Raises OurFault `conservation`, before silver is committed, if rows were lost or invented on the way.
        """
        self.tasks = min(parallelism(self.spark), max(1, intake.rows // ROWS_PER_TASK))
        self.is_small = intake.rows <= SMALL_ROWS_MAX
        try:
            if not intake.rows:
                return Outcome(0, 0, 0, 0, self._after_silver(None, plan, coverage, steps))
            return self._run_rows(intake, plan, coverage, steps)
        finally:
            for frame in self._persisted:
                frame.unpersist()

    def _run_rows(self, intake: Intake, plan: Plan, coverage: Coverage, steps: Steps) -> Outcome:
        rows, counts = self._received(intake, plan, steps)
        self._check(counts.rows == intake.rows, f"{intake.rows} rows in segments, {counts.rows} were judged")
        fresh, duplicates = self._split(rows, intake, plan, counts)
        with steps("quarantine"):
            repeated = 0 if duplicates is None else duplicates.count()
            refused = fresh.where("reason is not null") if counts.refused else None
            accepted = fresh.where("reason is null") if counts.refused else fresh
            contradicting = None if duplicates is None else self._changed(duplicates, accepted, plan)
            quarantined, changed = self._quarantine(refused, contradicting, coverage)
        accepted, twins = self._without_twins(accepted, steps)
        repeated += twins
        with steps("silver"):
            made = self._to_silver(accepted, plan)
            silver, made = self._silver(made, counts.rows - quarantined - (repeated - changed))
        values = self._after_silver(made, plan, coverage, steps)
        return Outcome(counts.rows, silver, repeated - changed, quarantined, values)

    # Bronze, and what one pass over its rows counts.

    def _received(self, intake: Intake, plan: Plan, steps: Steps) -> "tuple[DataFrame, Counts]":
        """The rows for bronze, with verdicts."""
        with steps("bronze"):
            self._bronze(intake)
        with steps("judged"):
            rows = self._rows(intake)
            return rows, self._counted(rows, intake, plan)

    def _bronze(self, intake: Intake) -> None:
        """Adopt segments as files of bronze, and copy those that cannot be adopted."""
        table = self.kind.bronze
        if self._is_done(table):
            return
        files, left = adopted(self.tables, table, intake.slices, self.number)
        files += self._write(table, self._segments(left)) if left else []
        rows = sum(file.rows for file in files)
        self._check(rows == intake.rows, f"{intake.rows} rows in segments, {rows} in bronze")
        self.tables.commit(table, self.number, files, self.about)

    def _segments(self, slices: Sequence[Slice]) -> "DataFrame":
        """Rows of segments with the columns of bronze."""
        stream = self.kind.stream
        return to_bronze(rows_of(self.spark, stream, slices).coalesce(self.tasks), stream, self.mark)

    def _rows(self, intake: Intake) -> "DataFrame":
        """Rows with verdicts.

        For a large batch they are judged again at each use, which costs less than keeping them.
        """
        rows = self._judged(intake)
        return self._keep(rows) if self.is_small else rows

    def _judged(self, intake: Intake) -> "DataFrame":
        return judged(self._ruled(self._segments(intake.slices)), self.rules, self.kind.stream)

    def _ruled(self, rows: "DataFrame") -> "DataFrame":
        """The rows with the verdicts of the user's rules, if this stream has rules."""
        if all(rule.stream != self.kind.stream for rule in self.rules.user):
            return rows
        with lenient(self.spark):
            return ruled(rows, self.rules, self.kind.stream)

    def _counted(self, rows: "DataFrame", intake: Intake, plan: Plan) -> Counts:
        """The counts of the rows. If all numbers seem to be new, the same pass also writes the rows for silver."""
        is_plain = intake.is_disjoint and self.is_plain and not (plan.repeated or plan.late)
        if not is_plain or self._is_done(self.kind.silver):
            return counted(rows)
        seen = Observation()
        good = rows.observe(seen, *_counters(is_new="is_new" in rows.columns)).where("reason is null")
        self._silver_files = self._write(self.kind.silver, self._to_silver(good, plan))
        return Counts(**seen.get)

    # Deduplication: each number is kept once.

    def _split(
        self, rows: "DataFrame", intake: Intake, plan: Plan, counts: Counts
    ) -> "tuple[DataFrame, DataFrame | None]":
        """Fresh rows and duplicates; None in place of duplicates if the ranges prove that there are none."""
        if intake.is_disjoint and not plan.repeated and not counts.spread:
            return rows, None
        self._silver_files = None
        numbered = self._keep(dedup.numbered(rows))
        first, copies = numbered.where("copy = 1"), numbered.where("copy > 1")
        if not plan.repeated:
            return first.drop("copy"), copies.drop("copy")
        ranges, shift = self._ranges([(origin, pair) for origin, pairs in plan.repeated for pair in pairs])
        again = copies.unionByName(dedup.within(first, ranges, shift))
        return dedup.outside(first, ranges, shift).drop("copy"), again.drop("copy")

    def _changed(self, duplicates: "DataFrame", accepted: "DataFrame", plan: Plan) -> "DataFrame":
        """Duplicates whose content differs from silver's, or from the first in the batch."""
        held = self.kind.to_silver(accepted)
        if plan.repeated:
            pairs = [(origin, pair) for origin, ranges in plan.repeated for pair in ranges]
            low, high = min(pair[0] for _, pair in pairs), max(pair[1] for _, pair in pairs)
            ranges, shift = self._ranges(pairs)
            files = self.tables.files(
                self.kind.silver, f"sequence >= {low} AND sequence <= {high} AND batch < {self.number}"
            )
            before = self.tables.read(self.kind.silver, files).where(F.col("batch") < self.number)
            held = held.unionByName(dedup.within(before, ranges, shift))
        contradicting = dedup.changed(duplicates, held, self.kind.bronze_hash(), self.kind.silver_hash())
        return contradicting.withColumn("reason", F.lit("changed"))

    def _quarantine(
        self, refused: "DataFrame | None", contradicting: "DataFrame | None", coverage: Coverage
    ) -> tuple[int, int]:
        """Write the quarantine; returns how many rows it got, and how many of these are only `changed`."""
        both = [frame for frame in (refused, contradicting) if frame is not None]
        if not both:
            return 0, 0
        rows = both[0] if len(both) == 1 else both[0].unionByName(both[1])
        count = self._append(self.kind.quarantine, explained(rows))
        seen = refused_by(self.tables, self.kind.quarantine, self.number)
        coverage.refuse(seen.numbers)
        return count, seen.changed

    # Silver.

    def _without_twins(self, accepted: "DataFrame", _: Steps) -> "tuple[DataFrame, int]":
        """The rows without those whose content silver already has under another number; and how many those are."""
        return accepted, 0

    def _to_silver(self, accepted: "DataFrame", _: Plan) -> "DataFrame":
        """The rows in silver's columns."""
        return self.kind.to_silver(accepted)

    def _silver(self, samples: "DataFrame", expected: int) -> "tuple[int, DataFrame]":
        """Write silver; returns the number of rows and the rows. Rows of a large batch are read back from silver."""
        if self._is_done(self.kind.silver):
            return self.tables.rows_of_batch(self.kind.silver, self.number), samples
        files = self._write(self.kind.silver, samples) if self._silver_files is None else self._silver_files
        made = sum(file.rows for file in files)
        self._check(made == expected, f"{expected} rows left for silver, {made} written")
        replaced = self._corrected()
        self.tables.commit(self.kind.silver, self.number, [*files, *replaced.add], self.about, remove=replaced.remove)
        if self.is_small or not self.is_plain:
            return made, samples
        root = self.tables.path(self.kind.silver)
        return made, self.tables.read(self.kind.silver, [str(root / file.path) for file in files])

    def _corrected(self) -> Replaced:
        """Files of silver with rows of earlier batches that this batch changes, rewritten."""
        return UNCHANGED

    def _after_silver(self, _made: "DataFrame | None", _plan: Plan, _coverage: Coverage, _steps: Steps) -> int:
        """Write the tables that are made from silver rows; returns the number of values."""
        return 0

    # Small data frames.

    def _frame(self, rows: Sequence[Any], names: tuple[str, ...]) -> "DataFrame":
        """Rows that begin with an `Origin` as a data frame: origin, era, then the other columns by `names`."""
        import pyarrow as pa

        numbers = [pa.field(name, pa.int64()) for name in ("era", *names)]
        values = [[name_of(row[0].node) for row in rows], [row[0].era for row in rows]]
        values += [[row[place] for row in rows] for place in range(1, len(names) + 1)]
        schema = pa.schema([pa.field("origin", pa.string()), *numbers])
        return self.spark.createDataFrame(pa.table(values, schema=schema))

    def _ranges(self, pairs: Sequence[tuple[Origin, Range]]) -> "tuple[DataFrame, int]":
        return self._frame([(origin, *pair) for origin, pair in pairs], ("first", "last")), shift_for(pairs)

    # Writing.

    def _is_done(self, table: Table) -> bool:
        return self.tables.committed(table) >= self.number

    def _append(self, table: Table, rows: "DataFrame", also: Callable[[], Replaced] = lambda: UNCHANGED) -> int:
        """Write and commit the rows of this batch, unless the table has them; returns their number.

        `also` lists older files to replace in the same commit, with their replacements.
        """
        if self._is_done(table):
            return self.tables.rows_of_batch(table, self.number)
        files = self._write(table, rows)
        replaced = also()
        self.tables.commit(table, self.number, [*files, *replaced.add], self.about, remove=replaced.remove)
        return sum(file.rows for file in files)

    def _write(self, table: Table, rows: "DataFrame") -> list[DataFile]:
        return self.tables.write(table, rows.coalesce(self.tasks), self.number, is_small=self.is_small)

    def _keep(self, frame: "DataFrame") -> "DataFrame":
        """Compute a data frame once and keep it until the batch ends."""
        self._persisted.append(frame.persist())
        return frame

    def _check(self, holds: bool, what: str) -> None:  # noqa: FBT001  # an assertion with a text
        if not holds:
            raise OurFault(f"conservation: batch {self.number}: {what}")


def shift_for(pairs: Sequence[tuple[Origin, Range]]) -> int:
    """The shift of number buckets (`SHIFTS`): the greatest at which few ranges of one origin share a bucket."""
    for shift in SHIFTS:
        per_bucket: dict[tuple[Origin, int], int] = {}
        buckets = 0
        for origin, (first, last) in pairs:
            buckets += (last >> shift) - (first >> shift) + 1
            key = (origin, first >> shift)
            per_bucket[key] = per_bucket.get(key, 0) + 1
        if buckets <= BUCKETS_MAX + len(pairs) and max(per_bucket.values(), default=0) <= RANGES_PER_BUCKET_MAX:
            return shift
    return next(shift for shift in (8, 12, 20, 40, 62) if _buckets(pairs, shift) <= BUCKETS_MAX + len(pairs))


def _buckets(pairs: Sequence[tuple[Origin, Range]], shift: int) -> int:
    return sum((last >> shift) - (first >> shift) + 1 for _, (first, last) in pairs)


@cache
def _counters(*, is_new: bool) -> tuple[Column, ...]:
    texts = [
        "count(1) as rows",
        "count_if(reason is not null) as refused",
        f"count_if(error is not null and attributes['{SPREAD}'] is not null) as spread",
        *(["count_if(is_new) as new"] if is_new else []),
    ]
    return tuple(F.expr(text) for text in texts)


def counted(rows: "DataFrame") -> Counts:
    """The counts of one pass over judged rows."""
    counters = _counters(is_new="is_new" in rows.columns)
    return Counts(**rows.agg(*counters).collect()[0].asDict())
