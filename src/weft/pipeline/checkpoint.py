"""What a job remembers beside Spark's own checkpoint: who it is, and the coverage behind each batch (PIP-021)."""

import os
import uuid
from pathlib import Path

import msgspec

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.coverage import Coverage, forget_before


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """`weft/id`: written once, when the job first runs."""

    id: str
    """Names this checkpoint in every commit."""
    base: int = 0
    """Number of Spark's batch 0: batches of a lake are numbered on when a checkpoint is begun anew."""
    start: str = "earliest"
    """Where the stream begins."""


class Checkpoint:
    """The directory of one job."""

    def __init__(self, lake: Layout, job: str, *, is_dense: bool = True, runs_on: bool = False) -> None:
        self.lake, self.job = lake, job
        self.numbers = {"is_dense": is_dense, "runs_on": runs_on}
        self.directory = lake.checkpoint(job)

    def open(self, *, has_rows: bool) -> Record:
        """The record; made if the job is new.

        UserError `checkpoint-missing` if tables hold rows that this checkpoint knows nothing of (PIP-025).
        """
        path = self.lake.checkpoint_id(self.job)
        has_log = any((self.directory / "offsets").glob("[0-9]*"))
        if has_rows and not (path.exists() and has_log):
            raise UserError(
                "checkpoint-missing",
                f"the tables hold rows, but the checkpoint of the job {self.job!r} is gone",
                f"put {self.directory} back from a copy; without it rows would be taken twice",
            )
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(".tmp")
            fresh.write_bytes(msgspec.json.encode(Record(id=uuid.uuid4().hex)))
            os.rename(fresh, path)  # noqa: PTH104  # says that it replaces nothing half-written
        return read_record(path)

    def start(self) -> str:
        """Where the stream begins: what the record says, or the beginning for a job that is new."""
        path = self.lake.checkpoint_id(self.job)
        return read_record(path).start if path.exists() else Record(id="").start

    def offsets(self, batch_id: int) -> Path:
        """Spark's log of the offset behind one of its batches."""
        return self.directory / "offsets" / str(batch_id)

    def coverage(self, number: int) -> Coverage:
        """The state behind a batch; empty behind none. OSError if it was deleted."""
        if number < 0:
            return Coverage(**self.numbers)
        return Coverage.load(self.lake.coverage(self.job, number), **self.numbers)

    def recorded_now(self, number: int) -> int | None:
        """The instant recorded for a batch that was begun before; None for a new one."""
        path = self.lake.coverage(self.job, number)
        return Coverage.load(path).now if path.exists() else None

    def save(self, number: int, coverage: Coverage) -> None:
        """The state behind a batch, before anything of the batch is written."""
        coverage.save(self.lake.coverage(self.job, number))
        forget_before(self.lake.coverage(self.job, number).parent, number)


def read_record(path: Path) -> Record:
    """What a checkpoint says it is."""
    return msgspec.json.decode(path.read_bytes(), type=Record)
