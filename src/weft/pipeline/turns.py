"""Batches taken in turn by the driver itself, for where Spark's own streaming cannot call it back (PIP-013, PIP-081).

Through Spark Connect a query runs in a server, and so does what is given to `foreachBatch`: it would be another process,
without the state of the job. So the driver plans batches itself, in Spark's order and in Spark's own log:

    offsets/N    what batch N is to take, before anything of it is done
                 Job.batch(N)
    commits/N    it is in all tables

Whoever comes next, a streaming query or this, goes on where the log ends; a batch that was begun is repeated as it was.
"""

import json
import time
import uuid
from pathlib import Path
from typing import Final

import msgspec

from weft.lake import consumers
from weft.lake.files import put_here
from weft.lake.offsets import At, Offset
from weft.lake.reader import ROWS_MAX, SEGMENTS_MAX, Limits, Source, position
from weft.pipeline.intake import offset_of_log
from weft.pipeline.job import Done, Job

VERSION: Final = "v1"
COMMITTED: Final = f'{VERSION}\n{{"nextBatchWatermarkMs":0}}'
SPOKEN: Final = '"conf":'


class Turns:
    """The batches of one job. One at a time; whoever takes them holds the lease."""

    def __init__(self, job: Job, limits: Limits | None = None) -> None:
        self.job = job
        self.limits = limits or Limits(ROWS_MAX, SEGMENTS_MAX)
        self.directory = job.checkpoint.directory
        self.source = Source(job.lake, job.kind.stream)
        self._upto: At | None = None
        self._is_known = False
        self._name_query()

    def until_now(self) -> None:
        """Take nothing that comes later than this."""
        self._upto = self.source.latest()

    @property
    def is_between_batches(self) -> bool:
        """Whether none was begun that has not ended."""
        return self._has_ended(self._last("offsets"))

    def take(self) -> Done | None:
        """Do the next batch, or the one that was begun; None if there is nothing to do. As `Job.batch` raises."""
        number = self._last("offsets")
        if self._has_ended(number):
            begin = self._begin(number)
            if begin is None:
                return None
            number = begin
        done = self.job.batch(number)
        self._write("commits", number, COMMITTED)
        self._tell(offset_of_log(self._path("offsets", number)))
        return done

    def _has_ended(self, number: int) -> bool:
        """Whether a batch is in all tables; below 0 there is none."""
        return number < 0 or number <= self._last("commits")

    def _begin(self, last: int) -> int | None:
        """Write down what the batch behind `last` takes; None if that is nothing."""
        start = self._behind(last)
        reached = self.source.advance(start, self.limits, self._upto)
        if reached == start:
            return None
        offset = self.source.offset(reached)
        self._write("offsets", last + 1, "\n".join([VERSION, self._conditions(last), _line(offset)]))
        return last + 1

    def _behind(self, last: int) -> At:
        """Where the log ends; the first time it is proved against the lake, and retention is asked to wait."""
        if self._is_known:
            return offset_of_log(self._path("offsets", last)).at if last >= 0 else self._start()
        if last < 0:
            offset = self.source.offset(self._start())
        else:
            offset = offset_of_log(self._path("offsets", last))
            self.source.prove(offset)
        stream = self.job.kind.stream
        consumers.register(self.job.lake, stream, stream, offset, time.time_ns())
        self._is_known = True
        return offset.at

    def _start(self) -> At:
        return position(self.source, self.job.record.start)

    def _conditions(self, last: int) -> str:
        """What Spark wants to find of a batch: when, and under which settings; these are fixed by the first one."""
        now = {"batchWatermarkMs": 0, "batchTimestampMs": time.time_ns() // 1_000_000, "conf": {}}
        if last >= 0:
            for line in self._path("offsets", last).read_text("utf-8").splitlines():
                if SPOKEN in line:
                    now["conf"] = msgspec.json.decode(line)["conf"]
        return msgspec.json.encode(now).decode()

    def _tell(self, offset: Offset) -> None:
        """Retention need not wait any more (PIP-024)."""
        stream = self.job.kind.stream
        consumers.commit(self.job.lake, stream, stream, offset, time.time_ns())
        self.source.forget(offset.at)

    def _last(self, log: str) -> int:
        return max(
            (int(path.name) for path in (self.directory / log).glob("[0-9]*") if path.name.isdigit()), default=-1
        )

    def _path(self, log: str, number: int) -> Path:
        return self.directory / log / str(number)

    def _write(self, log: str, number: int, text: str) -> None:
        _put(self._path(log, number), text)

    def _name_query(self) -> None:
        """The name by which Spark knows the query; it refuses a log without one."""
        path = self.directory / "metadata"
        if not path.exists():
            _put(path, msgspec.json.encode({"id": str(uuid.uuid4())}).decode())


def _line(offset: Offset) -> str:
    """As PySpark writes it: Spark compares the texts, and another one would be a batch of nothing."""
    return json.dumps(offset.plain())


def _put(path: Path, text: str) -> None:
    """A file, whole or not at all, durable before anything that follows from it is done."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Spark's, of a file that is gone
    put_here(path, text.encode())
