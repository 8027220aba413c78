"""A batch as filters see it: opened only as far as one of them looks.

The rows stay where they are; a view knows which are still in. Series are looked at once each, values are calculated
once per batch and only if a filter asks for them. If nothing was taken out, the batch that leaves is the batch that
came, not a copy.
"""

from weft.base.calculated import Point, calculate
from weft.cores.chains.where import Where
from weft.wire.samples import Row, SampleBatch, Series, select

SeriesKey = tuple[object, ...]
Value = int | float | None


class History:
    """The last sample of every series that filters have looked at; the one unseen longest goes first."""

    def __init__(self, series_max: int) -> None:
        self.series_max = series_max
        self._last: dict[SeriesKey, Point] = {}

    def swap(self, key: SeriesKey, point: Point | None) -> Point | None:
        """Forget and return the last sample of a series; then remember `point`."""
        before = self._last.pop(key, None)
        if point is not None:
            self._last[key] = point
            if len(self._last) > self.series_max:
                del self._last[next(iter(self._last))]
        return before

    def __len__(self) -> int:
        return len(self._last)


class View:
    """One batch on its way down one chain."""

    __slots__ = ("_history", "_keys", "_origin", "_values", "batch", "kept")

    def __init__(self, batch: SampleBatch, origin: bytes | str, history: History) -> None:
        self.batch = batch
        self.kept: list[int] = list(range(len(batch.rows)))
        """Rows that are still in, ascending."""
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
        """What makes series number `index` of this batch one series of the fleet."""
        key = self._keys.get(index)
        if key is None:
            series = self.batch.series[index]
            labels = tuple(sorted(series.labels.items()))
            key = self._keys[index] = (self._origin, series.config_name, series.detail, series.type, labels)
        return key

    def values(self) -> list[Value]:
        """The calculated value of every row of the batch, taken out or not; None where there is none (MEA-001)."""
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
        """The rows still in that fulfil the conditions."""
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

    def take_out(self, dropped: list[int]) -> None:
        """These rows are out."""
        gone = dict.fromkeys(dropped)
        self.kept = [index for index in self.kept if index not in gone]

    def close(self) -> SampleBatch:
        """What is left: the batch itself if that is everything."""
        if len(self.kept) == len(self.batch.rows):
            return self.batch
        return select(self.batch, [self.batch.rows[index] for index in self.kept])
