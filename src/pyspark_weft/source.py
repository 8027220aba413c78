"""`DefaultSource` and its two readers.

The *batch* reader plans all segments that exist when it is called. The *stream* reader plans from offset to offset:
`latestOffset` probes for the next segment numbers, `partitions` names the slices between two offsets, `read` turns
slices into record batches in the tasks, `commit` tells the recorder's retention which segments are no longer needed.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_weft.options import Options, parse_options
from pyspark_weft.pushdown import may_hold, predicates
from pyspark_weft.rows import Reading, pack
from weft.base.errors import UserError
from weft.lake.consumers import commit, register
from weft.lake.offsets import At, Offset, parse
from weft.lake.reader import NO_LIMITS, Limits, Slice, Source, position

if TYPE_CHECKING:
    import pyarrow as pa


KNOWN_MAX: Final = 16  # offsets recently returned or verified; Spark asks from one of the last two


class Slices(InputPartition):
    """The slices that one task reads."""

    def __init__(self, slices: tuple[Slice, ...]) -> None:
        self.slices = slices

    def __repr__(self) -> str:
        return f"Slices({len(self.slices)} segments, {sum(s.last - s.first for s in self.slices)} rows)"


class DefaultSource(DataSource):
    """Segments of one stream of a lake. UserError `bad-option` before any task starts."""

    @classmethod
    def name(cls) -> str:
        return "weft"

    @cached_property
    def chosen(self) -> Options:
        return parse_options(self.options)

    def schema(self) -> str:
        return _reading(self.chosen).schema.ddl()

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(self._asked(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(self._asked(schema))

    def _asked(self, schema: StructType) -> Options:
        """The options, provided the requested schema is theirs: a reader cannot rename or convert columns."""
        if tuple(schema.names) != _reading(self.chosen).schema.names:
            raise UserError("bad-option", f"the columns {schema.names} are not those of the stream", "option columns")
        return self.chosen


class BatchReader(DataSourceReader):
    """Reads all segments from `start` to those that exist now."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.reading = _reading(options)
        # Spark refuses a reader that overrides this method while pushing filters is switched off, which is its default,
        # and a reader cannot find out beforehand whether it is on. An attribute works in both cases.
        self.pushFilters = _Pushing(self.reading)  # type: ignore[method-assign]  # see above

    def partitions(self) -> Sequence[InputPartition]:
        options = self.options
        if options.slices is not None:
            return [Slices(entries) for entries in pack(options.slices, options.tasks)] or [Slices(())]
        source = Source(options.layout, options.stream)
        slices = source.slices(position(source, options.start), source.latest())
        kept = [piece for piece in slices if self._may_hold(source, piece)]
        return [Slices(entries) for entries in pack(kept, options.tasks)] or [Slices(())]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, Slices)
        return self.reading.batches(partition.slices)

    def _may_hold(self, source: Source, piece: Slice) -> bool:
        manifest = source.followers[piece.drain].manifest(piece.number)
        return manifest is None or all(may_hold(predicate, manifest) for predicate in self.reading.predicates)


class _Pushing:
    """Accepts filters for the choice of segments, and returns them all to Spark to check again (PIP-010)."""

    __func__: Final = staticmethod(DataSourceReader.pushFilters)  # Spark compares with this one: not overridden

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        self.reading.predicates = predicates(filters)
        return filters


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the stream of segments. Its state in memory can be rebuilt from the offsets that Spark keeps."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.reading = _reading(options)
        self._source: Source | None = None
        self._until: At | None = None
        self._known: dict[str, None] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Tasks get what is needed to read, not the state of planning."""
        return {"options": self.options, "reading": self.reading, "_source": None, "_until": None, "_known": {}}

    @property
    def source(self) -> Source:
        if self._source is None:
            self._source = Source(self.options.layout, self.options.stream)
        return self._source

    def initialOffset(self) -> dict[str, Any]:
        offset = self.source.offset(position(self.source, self.options.start))
        self._remember(offset)
        self._hold(offset)
        return offset.plain()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.max_rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        at = self._prove(start)
        reached = self.source.advance(at, self._limits(limit), self._until)
        return start if reached == at else self._offset(reached)

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self.source.latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        slices = self.source.slices(self._prove(start), parse(end).at)
        return [Slices(entries) for entries in pack(slices, self.options.tasks)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, Slices)
        return self.reading.batches(partition.slices)

    def commit(self, end: dict[str, Any]) -> None:
        offset = parse(end)
        if self.options.consumer:
            commit(self.options.layout, self.options.consumer, self.options.stream, offset, time.time_ns())
        self.source.forget(offset.at)

    def _limits(self, limit: ReadLimit) -> Limits:
        if isinstance(limit, ReadAllAvailable):
            return NO_LIMITS
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self.options.max_rows
        return Limits(rows, self.options.max_segments)

    def _prove(self, start: Mapping[str, Any]) -> At:
        """The offset where Spark wants to continue.

        It is verified against the lake unless it was recently returned or verified.
        """
        offset = parse(start)
        if offset.text() not in self._known:
            self.source.prove(offset)
            self._remember(offset)
            self._hold(offset)
        return offset.at

    def _offset(self, at: At) -> dict[str, Any]:
        offset = self.source.offset(at)
        self._remember(offset)
        return offset.plain()

    def _hold(self, offset: Offset) -> None:
        """From the first plan on, retention keeps what this consumer still needs."""
        if self.options.consumer:
            register(self.options.layout, self.options.consumer, self.options.stream, offset, time.time_ns())

    def _remember(self, offset: Offset) -> None:
        self._known[offset.text()] = None
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]


def _reading(options: Options) -> Reading:
    return Reading(options.schema, include_errors=options.include_errors, verify=options.verify, places=options.places)
