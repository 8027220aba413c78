"""What a job saves beside its tables: its identity, and the coverage and offset of the last batches (PIP-021).

A checkpoint and its tables belong together. If the checkpoint is lost, incomplete or an older copy, the job would plan
a new batch under a number that some tables already have; its rows would reach only the others. So a job first compares
both (`fault`) and refuses a mismatch: `weft lake repair` makes a new checkpoint from the tables (PIP-025).
"""

import uuid
from pathlib import Path
from typing import NamedTuple

import msgspec

from weft.base.errors import UserError
from weft.lake.files import put_here
from weft.lake.layout import FORMAT, LakeJson, Layout
from weft.lake.offsets import Offset, parse
from weft.pipeline.coverage import Coverage, forget_before
from weft.pipeline.ruleset import Rules


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The file `weft/id`, written once, when the job first runs."""

    id: str
    """The id of this checkpoint, which every commit contains."""
    base: int = 0
    """Number of its first batch. Numbering continues when a lake gets a new checkpoint."""
    start: str = "earliest"
    """Where the stream begins for the first batch."""
    partitions: int = 2
    """Number of shuffle partitions, fixed when the job first ran (PIP-027). Older checkpoints lack it and had two."""


class Carried(NamedTuple):
    """How far the tables of a job have come, according to their logs."""

    last: int
    """The last batch that all of them have, -1 before the first."""
    highest: int
    """The last batch that any of them has."""
    checkpoint: str | None = None
    """The id of the checkpoint that wrote them last, if known."""
    lacking: tuple[str, ...] = ()
    """Tables that lack the last batch although `meta.progress` says that they got rows of it."""


class Checkpoint:
    """The directory of one job. `is_dense` and `runs_on` are those of its `Coverage`."""

    def __init__(self, lake: Layout, job: str, *, is_dense: bool = True, runs_on: bool = False) -> None:
        self.lake, self.job = lake, job
        self.numbers = {"is_dense": is_dense, "runs_on": runs_on}
        self.directory = lake.checkpoint(job)

    def open(self, *, has_rows: bool, partitions: int = 2) -> Record:
        """The record.

        For a new job it is made, with this number of shuffle partitions. UserError `checkpoint-missing` if tables hold
        rows that this checkpoint knows nothing of (PIP-025); `newer-lake` if the lake as a whole has a form that this
        program does not know (LAK-036).
        """
        self._refuse_newer()
        path = self.lake.checkpoint_id(self.job)
        if has_rows and not path.exists():
            raise _missing(f"the tables hold rows, but the checkpoint of the job {self.job!r} is gone")
        if not path.exists():
            self.begin(Record(id=uuid.uuid4().hex, partitions=partitions))
        return read_record(path)

    def _refuse_newer(self) -> None:
        path = self.lake.lake_json
        known = msgspec.json.decode(path.read_bytes(), type=LakeJson) if path.exists() else None
        if known is not None and known.format > FORMAT:
            text = f"{self.lake.root} is a lake of format {known.format}, this program knows format {FORMAT}"
            raise UserError("newer-lake", text, "upgrade weft on this machine")

    def begin(self, record: Record) -> None:
        """Write the record durably and atomically."""
        put_here(self.lake.checkpoint_id(self.job), msgspec.json.encode(record))

    def prove(self, record: Record, carried: Carried) -> None:
        """Raise UserError `checkpoint-missing` unless this checkpoint and the tables belong together."""
        if (why := self.fault(record, carried)) is not None:
            raise _missing(why)

    def fault(self, record: Record, carried: Carried) -> str | None:
        """The reason why the tables do not fit this checkpoint, as text; None if they do."""
        if carried.checkpoint not in (None, record.id):
            return f"the tables of the job {self.job!r} were written under another checkpoint than the one in the lake"
        if carried.lacking:
            return (
                f"meta.progress has batch {carried.last} of the job {self.job!r}, {', '.join(carried.lacking)} lack it"
            )
        if carried.highest > carried.last + 1:
            return (
                f"tables of the job {self.job!r} have batch {carried.highest}, meta.progress has {carried.last} at most"
            )
        states = {number for number in (carried.last, carried.highest) if number >= 0}
        if not all(self.lake.coverage(self.job, number).exists() for number in states):
            return f"the checkpoint of the job {self.job!r} lacks the state after its last batch"
        return None

    def start(self) -> str:
        """Where the stream begins: the record's start, or the beginning of the stream for a new job."""
        path = self.lake.checkpoint_id(self.job)
        return read_record(path).start if path.exists() else Record(id="").start

    def partitions(self) -> int | None:
        """Number of shuffle partitions, as recorded when the job first ran; None for a new job."""
        path = self.lake.checkpoint_id(self.job)
        return read_record(path).partitions if path.exists() else None

    def begun(self, number: int) -> Offset | None:
        """The offset at which a batch ends that was begun before; None for a new batch."""
        path = self.lake.coverage(self.job, number)
        return parse(Coverage.load(path).offset) if path.exists() else None

    def coverage(self, number: int) -> Coverage:
        """The state after a batch; empty before the first. OSError if it was deleted."""
        if number < 0:
            return Coverage(**self.numbers)
        return Coverage.load(self.lake.coverage(self.job, number), **self.numbers)

    def recorded_now(self, number: int) -> int | None:
        """The recorded time of a batch that was begun before; None for a new batch."""
        path = self.lake.coverage(self.job, number)
        return Coverage.load(path).now if path.exists() else None

    def rules(self, wanted: Rules, *, is_repeated: bool) -> Rules:
        """The rules for a batch: the wanted ones, or for a batch that was begun before, those recorded then.

        If a repeated batch used rules edited after the crash, a row could end in two tables or in none.
        """
        path = self.directory / "weft" / "rules.json"
        known = msgspec.json.decode(path.read_bytes(), type=Rules) if path.exists() else Rules()
        if is_repeated or known == wanted:
            return known
        put_here(path, msgspec.json.encode(wanted))
        return wanted

    def save(self, number: int, coverage: Coverage) -> None:
        """Save the state after a batch, before the batch writes anything."""
        coverage.save(self.lake.coverage(self.job, number))
        forget_before(self.lake.coverage(self.job, number).parent, number)


def _missing(why: str) -> UserError:
    return UserError("checkpoint-missing", why, "weft lake repair, which makes a new checkpoint from the tables")


def read_record(path: Path) -> Record:
    """The identity that a checkpoint records."""
    return msgspec.json.decode(path.read_bytes(), type=Record)
