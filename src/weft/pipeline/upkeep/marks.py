"""How far the jobs of a lake have come, so that upkeep knows which files are still searched by batch.

There are three such searches: a batch that is repeated counts the rows that it wrote (only the last batch can be
repeated); a fold reads the rows after its mark; `weft sql` reads the same rows. So upkeep leaves the last batch alone,
and never puts rows from both sides of a mark into one file.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Final, NamedTuple

from weft.lake.layout import Layout
from weft.pipeline.checkpoint import read_record
from weft.pipeline.kinds import KINDS
from weft.pipeline.tables import COMPLETENESS, LATEST, PROGRESS, ROLLUP_1D, ROLLUP_1H, ROLLUP_1M, STAGES, Table
from weft.pipeline.upkeep.log import live_files, opened
from weft.pipeline.writer import Writer

NONE: Final = -1
FOLDS: Final = (ROLLUP_1M, ROLLUP_1H, ROLLUP_1D, LATEST, COMPLETENESS)
"""Tables that are folded from the batches after their mark."""


class Marks(NamedTuple):
    """How far a job has come."""

    done: int = NONE
    """The last batch that is in all tables; -1 before the first."""
    folded: tuple[int, ...] = ()
    """For each table of `FOLDS` that the job has, the last batch folded into it; -1 before the first."""

    @property
    def settled(self) -> int:
        """The last batch that no search needs any more: all up to it are folded, and cannot be repeated."""
        return min(self.done - 1, *self.folded) if self.folded else self.done - 1


LookUp = Callable[[Table], Marks | None]
"""A function that returns the marks of the job that writes a table; None if several jobs write it."""


def marks_of(layout: Layout, job: str) -> Marks:
    """How far a job has come. Without a checkpoint: as before its first batch."""
    folds = [table for table in FOLDS if table in KINDS[job].tables]
    return Marks(_committed(layout, job, PROGRESS), tuple(_committed(layout, job, table) for table in folds))


def looked_up(layout: Layout) -> LookUp:
    """A `LookUp` that examines each job once, when it is first needed."""
    known = cache(partial(marks_of, layout))

    def of(table: Table) -> Marks | None:
        job = job_of(table)
        return None if job is None else known(job)

    return of


def _committed(layout: Layout, job: str, table: Table) -> int:
    """The last batch of a job in a table; -1 if there is none, or no checkpoint."""
    record = layout.checkpoint_id(job)
    delta = opened(layout, table) if record.exists() else None
    if delta is None:
        return NONE
    version = delta.transaction_version(Writer(job, read_record(record).id, 0).app(table))
    return NONE if version is None else version


def job_of(table: Table) -> str | None:
    """The job that alone writes a table; None if several or none write it."""
    jobs = [kind.stream for kind in KINDS.values() if table in kind.tables]
    return jobs[0] if len(jobs) == 1 else None


def is_uneven(layout: Layout, table: Table, marks: LookUp | None = None) -> bool:
    """Whether a table has rows of a batch that is not in all tables of its job; `marks` can be shared between calls."""
    known = (marks or looked_up(layout))(table)
    delta = None if known is None else opened(layout, table)
    if known is None or delta is None:
        return False
    last = [NONE if file.last_batch is None else file.last_batch for file in live_files(delta, table)]
    return max(last, default=NONE) > known.done


def unfinished(layout: Layout) -> list[Table]:
    """Tables with rows of a batch that is not in all tables: a driver died, and no other has continued yet."""
    marks = looked_up(layout)
    return [table for stages in STAGES.values() for table in stages if is_uneven(layout, table, marks)]


def unfolded(layout: Layout) -> list[str]:
    """Jobs whose rows in `gold.completeness` do not include all batches in their tables."""
    marks = {job: (_committed(layout, job, COMPLETENESS), _committed(layout, job, PROGRESS)) for job in KINDS}
    return [job for job, (counted, done) in marks.items() if NONE < counted < done]
