"""A batch as filters see it: decoded only as far as a filter looks.

The rows are not moved; a view knows which ones are left. Each series is examined once; values are calculated once per
batch, and only if a filter needs them. If nothing was dropped, the result is the original batch, not a copy.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.calculated import Point, calculate
from weft.base.now import MILLISECOND
from weft.cores.chains.viewed import Value
from weft.cores.chains.where import NUMBERS, VALUE, Where, field_of
from weft.wire.samples import Row, SampleBatch, Series, select

SeriesKey = tuple[object, ...]

encode: Final = msgspec.msgpack.Encoder().encode


class History:
    """The last sample of every series that filters have seen; the series not seen for longest is dropped first."""

    def __init__(self, series_max: int) -> None:
        self.series_max = series_max
        self._last: OrderedDict[SeriesKey, Point] = OrderedDict()

    def swap(self, key: SeriesKey, point: Point | None) -> Point | None:
        """Replace the last sample of a series by `point`; returns the old one."""
        before = self._last.pop(key, None)
        if point is not None:
            self._last[key] = point
            if len(self._last) > self.series_max:
                self._last.popitem(last=False)
        return before

    def __len__(self) -> int:
        return len(self._last)


class View:
    """One batch on its way down one chain."""

    __slots__ = ("_history", "_keys", "_origin", "_values", "batch", "kept", "type")

    is_one = False
    is_readable = True

    def __init__(self, batch: SampleBatch, origin: bytes | str, history: History, kind: str = "weft.metric") -> None:
        self.batch, self.type = batch, kind
        self.kept: list[int] = list(range(len(batch.rows)))
        """Rows that are left, ascending."""
        self._origin, self._history = origin, history
        self._keys: dict[int, SeriesKey] = {}
        self._values: list[Value] | None = None

    @property
    def rows(self) -> list[Row]:
        return self.batch.rows

    @property
    def series(self) -> tuple[Series, ...]:
        return self.batch.series

    def key(self, index: int) -> SeriesKey:
        """The key that identifies series number `index` of this batch in the whole fleet."""
        key = self._keys.get(index)
        if key is None:
            series = self.batch.series[index]
            labels = tuple(sorted(series.labels.items()))
            key = self._keys[index] = (self._origin, series.config_name, series.detail, series.type, labels)
        return key

    def values(self) -> list[Value]:
        """The calculated value of every row of the batch, dropped or not; None where there is none (MEA-001)."""
        if self._values is None:
            self._values = self._calculate()
        return self._values

    def _calculate(self) -> list[Value]:
        t0_ms, series, swap = self.batch.t0_ms, self.batch.series, self._history.swap
        last: dict[int, Point | None] = {}
        values: list[Value] = []
        for row in self.batch.rows:
            index = row.series
            before = last[index] if index in last else swap(self.key(index), None)
            point = last[index] = (t0_ms + row.offset_ms, row.value, row.base)
            values.append(calculate(series[index].type, before, point).result)
        for index, newest in last.items():
            swap(self.key(index), newest)
        return values

    def matching(self, where: Where) -> list[int]:
        """The rows left that fulfil the conditions."""
        if where.is_empty:
            return self.kept
        fits = [where.matches_series(series) for series in self.batch.series]
        rows = self.batch.rows
        if True not in fits:
            return []
        found = [index for index in self.kept if fits[rows[index].series]]
        if where.of_values and found:
            values = self.values()
            for test in where.of_values:
                found = [index for index in found if test(values[index])]
        return found

    def record(self, index: int) -> dict[Any, Any]:
        """A row as a map; one without a value has no field `value`."""
        series, value = self.batch.series[self.batch.rows[index].series], self.values()[index]
        record = {"name": series.config_name, "detail": series.detail, "type": series.type, "labels": series.labels}
        return record if value is None else {**record, VALUE: value}

    def put(self, index: int, record: dict[Any, Any]) -> bool:
        """Samples are not edited: always False."""
        return False

    def facts(self, index: int, names: tuple[str, ...]) -> dict[str, Any]:
        """Facts of a sample; samples have no size and no depth of their own."""
        return {name: FACTS[name](self, index) for name in names}

    def keys(self, fields: tuple[str, ...], seen: list[int]) -> list[bytes]:
        """The fields' values; read once per series, unless the value is one of the fields."""
        if VALUE in fields:
            records = [self.record(index) for index in seen]
            reads = [field_of(field) for field in fields]
            series = [self.batch.series[self.batch.rows[index].series] for index in seen]
            return [
                encode([r.get(VALUE) if field == VALUE else read(s) for field, read in zip(fields, reads, strict=True)])
                for r, s in zip(records, series, strict=True)
            ]
        getters = [field_of(field) for field in fields]
        return self._by_series(seen, lambda index: encode([read(self.batch.series[index]) for read in getters]))

    def _by_series(self, seen: list[int], make: Callable[[int], bytes]) -> list[bytes]:
        known: dict[int, bytes] = {}
        keys, rows = [], self.batch.rows
        for index in seen:
            which = rows[index].series
            key = known.get(which)
            if key is None:
                key = known[which] = make(which)
            keys.append(key)
        return keys

    def identities(self, seen: list[int], node: bytes) -> list[bytes]:
        """Series and time: a sample has no number before the filters have seen it."""
        origin, rows, t0_ms = self._origin or node, self.batch.rows, self.batch.t0_ms
        series = self._by_series(seen, lambda index: encode([origin, *self.key(index)[1:]]))
        pairs = zip(seen, series, strict=True)
        return [key + encode(t0_ms + rows[index].offset_ms) for index, key in pairs]

    def groups(self, seen: list[int]) -> list[Any]:
        """The series of each row."""
        rows = self.batch.rows
        return [self.key(rows[index].series) for index in seen]

    def numbers(self, field: str, seen: list[int]) -> tuple[list[Value], list[int]]:
        """The calculated value, or a label that holds a number."""
        if field == VALUE:
            found = self.values()
            return [found[index] for index in seen], []
        read, rows = field_of(field), self.batch.rows
        texts = [read(self.batch.series[rows[index].series]) for index in seen]
        values = [_number(text) for text in texts]
        wrong = [
            index
            for index, text, value in zip(seen, texts, values, strict=True)
            if text is not None and type(value) not in NUMBERS
        ]
        return values, wrong

    def times(self, seen: list[int]) -> list[int]:
        """When each row was measured, nanoseconds since 1970."""
        rows, t0_ms = self.batch.rows, self.batch.t0_ms
        return [(t0_ms + rows[index].offset_ms) * MILLISECOND for index in seen]

    def take_out(self, dropped: list[int]) -> None:
        """Drop these rows."""
        gone = dict.fromkeys(dropped)
        self.kept = [index for index in self.kept if index not in gone]

    def close(self) -> SampleBatch:
        """What is left: the batch itself if nothing was dropped."""
        if len(self.kept) == len(self.batch.rows):
            return self.batch
        return select(self.batch, [self.batch.rows[index] for index in self.kept])


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _origin(view: View, _: int) -> str:
    origin = view._origin
    return origin.hex() if isinstance(origin, bytes) else origin


FACTS: Final[dict[str, Callable[[View, int], Any]]] = {
    "type": lambda view, _: view.type,
    "origin": _origin,
    "size": lambda *_: 0,
    "depth": lambda *_: 0,
    "ts": lambda view, index: view.times([index])[0],
}
