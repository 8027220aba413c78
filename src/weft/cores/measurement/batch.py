"""The batch being filled: rows of lines, each series defined once (MEA-022)."""

from weft.base.calculated import Number, Point
from weft.cores.measurement.lines import Line
from weft.wire.samples import HEAD_BYTES_MOST, ROW_BYTES_MOST, Row, SampleBatch, Series


class OpenBatch:
    """Takes samples until it is full; `bytes` is never less than the size of the body."""

    def __init__(self, rows_max: int, bytes_max: int) -> None:
        self.rows_max, self.bytes_max = rows_max, bytes_max
        self._serial = 0
        self._begin()

    def _begin(self) -> None:
        self._serial += 1
        self._series: list[Series] = []
        self._rows: list[tuple[int, int, Number, Number | None]] = []
        self.bytes = HEAD_BYTES_MOST

    def __len__(self) -> int:
        return len(self._rows)

    def has_room_for(self, line: Line) -> bool:
        """Whether one more row of this line fits."""
        more = ROW_BYTES_MOST + (0 if line.of_batch == self._serial else line.bytes)
        return len(self._rows) < self.rows_max and self.bytes + more <= self.bytes_max

    def add(self, line: Line, point: Point) -> None:
        """Add a row; the first row of a line also adds its definition."""
        if line.of_batch != self._serial:
            line.of_batch, line.index = self._serial, len(self._series)
            self._series.append(line.series)
            self.bytes += line.bytes
        self._rows.append((line.index, *point))
        self.bytes += ROW_BYTES_MOST

    def close(self) -> SampleBatch:
        """Return the batch and start a new one. Times count from the earliest row, which need not be the first."""
        rows = self._rows
        t0_ms = min([row[1] for row in rows])
        batch = SampleBatch(
            t0_ms,
            tuple(self._series),
            [Row(index, at_ms - t0_ms, value, base) for index, at_ms, value, base in rows],
        )
        self._begin()
        return batch
