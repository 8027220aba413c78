"""A lake under test: records go in, batches are taken, tables are read back as plain rows."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from weft.base.changes import Path as EntryPath
from weft.base.records import EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.lake.layout import Layout
from weft.lake.segments import append_segment, open_lake
from weft.pipeline import arrow
from weft.pipeline.job import Done, Job, JobOptions, SamplesJob
from weft.pipeline.kinds import KINDS
from weft.pipeline.tables import ALL
from weft.wire import samples
from weft.wire.store.path import pack_path, text_of

A = "0b9e4c1d7a224f539c105d6e7f8091a2"
B = "6f1c2a345b6d4e7f8091a2b3c4d5e6f7"
ERA = 1795227290000000
DRAIN = "d1" * 16
OTHER_DRAIN = "d2" * 16
T0_MS = 1_795_227_300_000  # some seconds before a full minute
NOW_NS = (T0_MS + 60_000) * 1_000_000
CPU = samples.Series("cpu", "CPU", "percent", {"cpu": "total"})
MEM = samples.Series("mem", "MEMORY", "basic", {})
NET = samples.Series("net", "NETWORK", "rate", {"device": "eth0"})
SEEN = samples.Series("seen", "TCP", "delta", {})
LOAD = samples.Series("load", "LOAD", "average", {})

Row = tuple[samples.Series, Any, Any]
"""Series, value, base."""


def at_ms(number: int) -> int:
    """When the sample of a number was taken: one a second."""
    return T0_MS + 1000 * number


def taken(first: int, rows: Sequence[Row], origin: str = A, era: int = ERA, **attributes: Any) -> StreamRecord:
    """A batch of samples, `first` and on, one a second, received 5 ms after the last."""
    series: tuple[samples.Series, ...] = ()
    for row in rows:
        series += () if row[0] in series else (row[0],)
    entries = [samples.Row(series.index(s), 1000 * i, value, base) for i, (s, value, base) in enumerate(rows)]
    body = samples.encode(samples.SampleBatch(at_ms(first), series, entries))
    received = (at_ms(first + len(rows) - 1) + 5) * 1_000_000
    return StreamRecord(
        Stream.SAMPLES, bytes.fromhex(origin), era, first, at_ms(first) * 1_000_000, received, "weft.metric", body,
        {"n": len(rows), **attributes},
    )  # fmt: skip


def single(number: int, payload: bytes, origin: str = A, era: int = ERA, **attributes: Any) -> StreamRecord:
    """One value as a record of its own; or bytes that are none."""
    at = at_ms(number) * 1_000_000
    return StreamRecord(
        Stream.SAMPLES, bytes.fromhex(origin), era, number, attributes.pop("at", at), attributes.pop("received", at),
        "temperature", payload, attributes,
    )  # fmt: skip


def message(number: int, payload: bytes = b"", origin: str = A, era: int = ERA, **attributes: Any) -> StreamRecord:
    """A message as the root's journal has it."""
    at = at_ms(number) * 1_000_000 + 7
    kind = attributes.pop("key", "shop.order")
    received = at + attributes.pop("after_ns", 5_000_000)
    return StreamRecord(
        Stream.MESSAGES, bytes.fromhex(origin), era, number, at, received, kind, payload, attributes
    )  # fmt: skip


def event(number: int, name: str, level: str, /, **fields: Any) -> StreamRecord:
    """An event as a node journals it."""
    at = at_ms(number) * 1_000_000
    attributes = {"level": level, "fmt": "json"}
    payload = msgspec.json.encode(fields)
    return StreamRecord(Stream.EVENTS, bytes.fromhex(A), ERA, number, at, at, name, payload, attributes)


def change(node: str, tick: int, path: EntryPath, value: Any, /, **attributes: Any) -> StreamRecord:
    """A change of the store as a node journals it; `value` None: a deletion."""
    at = at_ms(tick) * 1_000_000 + attributes.pop("told_ns", 0)
    said = {"path": pack_path(path), "chain": [[node, tick]], "deleted": value is None, "by": ""}
    payload = b"" if value is None else value if type(value) is bytes else msgspec.msgpack.encode(value)
    return StreamRecord(Stream.STORE, node, None, tick, at, at + 5, text_of(path), payload, said | attributes)


def instance_change(index: int, op: str, record: dict[str, Any] | None, /, **attributes: Any) -> StreamRecord:
    """A change of an instance as a broker journals it; no record: it is removed."""
    at = at_ms(index) * 1_000_000
    said: dict[str, Any] = {"op": op, "instance": "a", "state": "active", "reason": "", "health": "unknown"}
    said |= {"owner": "10.0.0.1", "observed_ip": "10.0.0.1", "since": at_ms(1) / 1000, "epoch": "e" * 16, "net": ""}
    said = {name: value for name, value in (said | attributes).items() if value is not None} | {"fmt": "json"}
    payload = b"" if record is None else msgspec.json.encode(record)
    return StreamRecord(Stream.CATALOG, bytes.fromhex(A), ERA, index, at, at, "thermo", payload, said)


def log_record(number: int, /, **more: Any) -> StreamRecord:
    """A log record as a broker journals it."""
    at = at_ms(number) * 1_000_000
    said: dict[str, Any] = {
        "ts": at_ms(number) / 1000,
        "received": at_ms(number) / 1000,
        "net": "green",
        "level": "WARNING",
    }
    said |= {"service": "thermo", "instance": "a", "logger": "", "message": "hot", "seq": number, "fields": {}}
    payload = msgspec.json.encode({name: value for name, value in (said | more).items() if value != "left out"})
    attributes = {"level": "WARNING", "fmt": "json"}
    return StreamRecord(Stream.LOGS, bytes.fromhex(A), ERA, number, at, at, "thermo", payload, attributes)


def operation(number: int, body: bytes = b"<set/>", /, **more: Any) -> StreamRecord:
    """An operation of a session as a node journals it; `said_by` is its source, `after_ns` when it was received later.

    An attribute that is None is left out.
    """
    session, source = more.pop("session", "G5"), more.pop("said_by", A)
    at = more.pop("at", at_ms(number) * 1_000_000)
    received, verb = at_ms(number) * 1_000_000 + more.pop("after_ns", 0), more.pop("verb", "set")
    said = {"session": session, "schema": "derby", "source": source, "eff": at_ms(number) / 1000, "from": source}
    said |= {"ts": str(at_ms(number) / 1000), "ref": "period=1 jam=3", "by": "", "inert": ""}
    attributes = {name: value for name, value in (said | more).items() if value is not None}
    return StreamRecord(
        Stream.DOCUMENTS, f"{session}/{source}", None, number, at, received, verb, body, attributes
    )  # fmt: skip


def write(number: int, key: str, value: bytes, /, **more: Any) -> StreamRecord:
    """A write of a root as it journals it, one a second; no bytes: a deletion."""
    epoch, at = more.pop("epoch", 1), more.pop("at", at_ms(number) * 1_000_000)
    said = {"who": "joe", "prev": 0, "deleted": not value} | more
    attributes = {name: value for name, value in said.items() if value is not None}
    return StreamRecord(Stream.CONFIGURATION, "root", epoch, number, at, at, key, value, attributes)


def lost(first: int, last: int, origin: str = A, era: int = ERA, why: str = "spool-full") -> LostRecord:
    return LostRecord(Stream.SAMPLES, bytes.fromhex(origin), era, first, last, why)


def era_end(last: int, origin: str = A, era: int = ERA) -> EraRecord:
    """The next era's first record, which says where `era` ended."""
    return EraRecord(Stream.SAMPLES, bytes.fromhex(origin), era + 1, era, last)


class Plot:
    """One lake, the job of one stream on it, and its batches."""

    def __init__(self, root: Path, spark: SparkSession, stream: str, options: JobOptions | None = None) -> None:
        self.lake, self.spark, self.stream = Layout(root), spark, stream
        self.options = options or JobOptions(gold_every_s=float("inf"), clock=lambda: NOW_NS)
        self.epoch = 0
        self.start: dict[str, tuple[int, int]] = {}
        self.number = 0
        self._job: Job | None = None
        open_lake(self.lake, "ab" * 16, 1)

    def write(self, *records: Record, drain: str = DRAIN) -> None:
        """One segment more."""
        append_segment(self.lake, self.stream, drain, list(enumerate(records, 1)))

    @property
    def work(self) -> Job:
        """The job as it is, or after a restart."""
        if self._job is None:
            self.epoch += 1
            self._job = self._made()
        return self._job

    def _made(self) -> Job:
        return Job(KINDS[self.stream], self.lake, self.spark, self.epoch, self.options)

    def restart(self, options: JobOptions | None = None) -> None:
        """As after a crash: nothing is left but the disk."""
        self._job = None
        self.options = options or self.options

    def take(self, *records: Record, drain: str = DRAIN) -> Done:
        """A batch of everything that is new, after these records have become a segment."""
        if records:
            self.write(*records, drain=drain)
        end = self.work.source.latest()
        offset = self.work.source.offset(end)
        done = self.work.process(self.number, self.start, offset)
        self.start, self.number = end, self.number + 1
        return done

    def rows(self, name: str, *columns: str, order: Iterable[str] = ("origin", "era", "sequence")) -> list[Any]:
        """The rows of a table in order: tuples of these columns, dicts of all if none is named."""
        table = ALL[name]
        is_adopted = table.layer == "bronze"  # its files do not say their batch
        data = (
            arrow(self.lake.root, name)
            if is_adopted
            else DeltaTable(self.lake.table(*name.split("."))).to_pyarrow_table()
        )
        keys = [(key, "ascending") for key in order if key in data.column_names]
        found = data.sort_by(keys).to_pylist() if keys else data.to_pylist()
        return [tuple(row[name] for name in columns) for row in found] if columns else found

    def bytes_of(self, name: str) -> int:
        """How many files the table has on disk, referenced or not."""
        table = ALL[name]
        return sum(
            pq.read_metadata(file).num_rows for file in self.lake.table(table.layer, table.name).rglob("*.parquet")
        )


class Ground(Plot):
    """One lake, the job of its samples, and its batches."""

    def __init__(self, root: Path, spark: SparkSession, options: JobOptions | None = None) -> None:
        super().__init__(root, spark, "samples", options)

    def _made(self) -> Job:
        return SamplesJob(self.lake, self.spark, self.epoch, self.options)

    @property
    def job(self) -> SamplesJob:
        assert isinstance(self.work, SamplesJob)
        return self.work

    def pairs(self) -> list[tuple[int, int]]:
        """All calculated pairs by their numbers."""
        return sorted(
            (first, last)
            for first, last in self.rows("silver.values", "from_sequence", "sequence")
            if first is not None
        )
