"""Releases rows from quarantine (PIP-033): those that the current program and rules no longer refuse go to silver.

A release is a batch with the next number that takes no segment: its offset equals that of the batch before, and a file in
the checkpoint lists the numbers to release. If a driver finds such a batch unfinished, it finishes it.

```
coverage     the numbers stay hollow: pairs already span them, and no published value is withdrawn (PIP-043)
series       gets the definitions of new keys
silver       gets the rows; samples have the flag `after-lost`
values       gets values of samples that need no neighbour
quarantine   loses the rows, in one commit
progress     states no rows in, so many more in silver, as many fewer in quarantine
```

Bronze keeps the rows as received, and earlier versions of quarantine still have them. Two kinds of rows are never
released: those that repeat a number of silver with other content, and those of imported datasets, whose lines can be
imported again as a separate dataset. Rows that the recorder could not decode stay refused: they are not decoded again.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from pyspark.sql import functions as F

from weft.base.errors import UserError
from weft.base.vectors import VersionVector
from weft.lake.files import put_here
from weft.lake.manifest import origin_of
from weft.pipeline.batch import SMALL_ROWS_MAX, Batch, Outcome
from weft.pipeline.batch import shift_for as width_for
from weft.pipeline.coverage import RETURNED, Coverage
from weft.pipeline.kinds import SAMPLES as SAMPLES_KIND
from weft.pipeline.quarantined import CHANGED
from weft.pipeline.rules import lenient
from weft.pipeline.ruleset import Rules
from weft.pipeline.tables import SERIES, VALUES
from weft.pipeline.transforms import dedup, values
from weft.pipeline.transforms.columns import same_number
from weft.pipeline.transforms.quality import flags_of, judged, ruled
from weft.pipeline.transforms.samples import to_samples
from weft.pipeline.transforms.series import definitions, recognised

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from weft.pipeline.checkpoint import Checkpoint
    from weft.pipeline.job import Job  # tidy: a release is a batch and needs all parts of the job
    from weft.pipeline.sampled import Known
    from weft.pipeline.steps import Steps

FILE: Final = "returning.json"
AGAIN: Final = "weft lake run --once, and then again"


class Wanted(msgspec.Struct, frozen=True):
    """The numbers that a release moves to silver."""

    number: int
    """That of the batch."""
    reason: str
    """Why they were refused."""
    numbers: bytes
    """The numbers, as WV1."""

    def vector(self) -> VersionVector:
        return VersionVector.decode(self.numbers)


class Found(NamedTuple):
    """What was found in quarantine."""

    held: int
    """How many rows have that reason."""
    passing: VersionVector
    """The numbers of the rows that would be accepted now."""
    reasons: dict[str, int]
    """Why the other rows are still refused."""


def wanted_of(checkpoint: "Checkpoint", number: int) -> Wanted | None:
    """What batch `number` is to release, if it is a release."""
    path = _path(checkpoint)
    if not path.exists():
        return None
    wanted = msgspec.json.decode(path.read_bytes(), type=Wanted)
    return wanted if wanted.number == number else None


def look(job: "Job", reason: str) -> Found:
    """Judge the rows of a reason again; changes nothing. UserError `no-retry` for `changed`, whose rows stay refused."""
    if reason == CHANGED:
        raise UserError(
            "no-retry", "silver has other rows with their numbers, and keeps them", "weft lake quarantine show changed"
        )
    kind, tables = job.kind, job.tables
    rows = _judged(tables.read(kind.quarantine).where(_is(reason)), job, job.options.rules)
    sizes = {row["reason"]: row["count"] for row in rows.groupBy("reason").count().collect()}
    accepted = rows.where("reason is null").select("origin", "era", "sequence").persist()
    bounds = accepted.agg(F.min("sequence"), F.max("sequence")).collect()[0]
    passing = VersionVector()
    if bounds[0] is not None:
        files = tables.files(kind.silver, f"sequence >= {bounds[0]} AND sequence <= {bounds[1]}")
        there = tables.read(kind.silver, files).select("origin", "era", "sequence")
        for row in accepted.alias("a").join(there.alias("s"), same_number("a", "s"), "left_anti").toArrow().to_pylist():
            passing.add(origin_of(row["origin"], row["era"]), row["sequence"])
    accepted.unpersist()
    return Found(sum(sizes.values()), passing, {why: rows for why, rows in sizes.items() if why is not None})


def plan(job: "Job", reason: str, passing: VersionVector) -> None:
    """Record that the next batch is a release of these numbers, before any segment is taken.

    UserError `behind` if a batch was begun that is not in all tables, or none was ever begun.
    """
    number = job.last_number + 1
    if job.last_number < 0 or job.checkpoint.begun(number) is not None:
        raise UserError("behind", f"a batch of {job.kind.stream} is not done yet", AGAIN)
    job.fold()  # counts them as refused first: the next fold subtracts them
    put_here(_path(job.checkpoint), msgspec.json.encode(Wanted(number, reason, passing.encode())))


def note_released(coverage: Coverage, numbers: VersionVector) -> None:
    """Record in the coverage that these numbers were released: they stay hollow."""
    coverage.lost.setdefault(RETURNED, VersionVector()).update(numbers)
    coverage.hollow.update(numbers)


class Releasing(Batch):
    """The steps of a batch that releases rows; repeating them changes nothing."""

    def take(self, job: "Job", wanted: Wanted, steps: "Steps") -> Outcome:
        """Do all steps between coverage and progress."""
        known: Known | None = getattr(job, "known", None)
        numbers = wanted.vector()
        self.tasks, self.is_small = 1, sum(ranges.count for _, ranges in numbers) <= SMALL_ROWS_MAX
        try:
            with steps("silver"):
                rows = self._keep(self._chosen(job, wanted, numbers))
                if known is not None and self._append(SERIES, definitions(rows.where("is_new"))):
                    known.load()
                    rows = self._keep(self._chosen(job, wanted, numbers))
                made = self._keep(self._as_silver(rows.where("reason is null")))
                count = self._append(self.kind.silver, made)
            with steps("values"):
                pieces = self._append(VALUES, values.alone(made)) if self.kind is SAMPLES_KIND else 0
            with steps("quarantine"):
                self._leave(wanted.reason, count)
        finally:
            for frame in self._persisted:
                frame.unpersist()
        return Outcome(0, count, 0, -count, pieces)

    def _chosen(self, job: "Job", wanted: Wanted, numbers: VersionVector) -> "DataFrame":
        """The rows to release that are still in quarantine."""
        pairs = [(origin, pair) for origin, ranges in numbers for pair in ranges]
        ranges, _ = self._ranges(pairs)
        held = self.tables.read(self.kind.quarantine).where(_is(wanted.reason))
        found = dedup.within(held, ranges, width_for(pairs)).withColumn("batch", self.mark)
        return _judged(found, job, self.rules)

    def _as_silver(self, rows: "DataFrame") -> "DataFrame":
        if self.kind is SAMPLES_KIND:
            return to_samples(rows, flags_of(self.rules), is_late=True)
        return self.kind.to_silver(rows)

    def _leave(self, reason: str, count: int) -> None:
        """Remove from quarantine the rows that silver has now."""
        table, silver = self.kind.quarantine, self.kind.silver
        if self._is_done(table) or not count:
            return
        here = self.tables.read(silver, self.tables.files(silver, f"batch = {self.number}"))
        back = here.where(F.col("batch") == self.number).select("origin", "era", "sequence")
        old = self.tables.files(table)
        rows = self._keep(self.tables.read(table, old))
        released = F.broadcast(back.withColumn("_reason", F.lit(reason))).alias("s")
        is_released = same_number("q", "s") & (F.col("q.reason") == F.col("s._reason")) & _is_own("q.attributes")
        files = self._write(table, rows.alias("q").join(released, is_released, "left_anti"))
        removed = rows.count() - sum(file.rows for file in files)
        self._check(removed == count, f"{count} rows of quarantine went to silver, {removed} were removed")
        self.tables.commit(table, self.number, files, self.about, remove=self.tables.relative(table, old))


def _judged(rows: "DataFrame", job: "Job", rules: Rules) -> "DataFrame":
    """Rows of quarantine in the columns of bronze, judged by the current program."""
    stream = job.kind.stream
    plain = rows.drop("reason", "because")
    if any(rule.stream == stream for rule in rules.user):
        with lenient(job.spark):
            plain = ruled(plain, rules, stream)
    again = judged(plain, rules, stream)
    known: Known | None = getattr(job, "known", None)
    return again if known is None else recognised(again, known.frame)


def _is(reason: str) -> "Column":
    return (F.col("reason") == reason) & _is_own("attributes")


def _is_own(attributes: str) -> "Column":
    """Whether a row does not belong to an imported dataset."""
    return F.col(attributes)["dataset"].isNull()


def _path(checkpoint: "Checkpoint") -> Path:
    return checkpoint.directory / "weft" / FILE
