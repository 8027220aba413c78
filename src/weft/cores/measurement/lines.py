"""A line of samples: one series of one metric at this node."""

from weft.base.calculated import Calculated, Number, Point, calculate
from weft.wire.samples import (
    LABEL_BYTES_MAX,
    LABEL_VALUE_BYTES_MAX,
    LABELS_MAX,
    PARAM,
    Labels,
    Series,
    series_bytes,
)


class Line:
    """A series with its last two samples, and the state that gates and batches keep for it."""

    __slots__ = ("before", "bytes", "derived", "index", "is_sending", "last", "of_batch", "series", "sums", "unsent")

    def __init__(self, series: Series) -> None:
        self.series = series
        self.bytes = series_bytes(series)
        self.before: Point | None = None
        self.last: Point | None = None
        self.of_batch = 0
        """Serial of the open batch for which `index` is valid."""
        self.index = 0
        self.unsent: Point | None = None
        """The preceding sample, if a limit has held it back."""
        self.is_sending = False
        self.sums: Sums | None = None
        self.derived: dict[str, Line] = {}

    def add(self, point: Point) -> None:
        """The next sample."""
        self.before, self.last = self.last, point

    def calculated(self) -> Calculated:
        """The value at the last sample (MEA-001)."""
        assert self.last is not None, self.series
        return calculate(self.series.type, self.before, self.last)

    def as_aggregate(self, name: str) -> "Line":
        """The line for one aggregate of this line, with the label `agg`."""
        line = self.derived.get(name)
        if line is None:
            series = self.series
            labels = {**series.labels, "agg": name}
            line = self.derived[name] = Line(Series(series.config_name, series.detail, series.type, labels))
        return line


class Sums:
    """A span of samples reduced to one: number, sum, least and greatest value."""

    __slots__ = ("count", "greatest", "least", "total")

    def __init__(self, value: Number) -> None:
        self.count, self.total, self.least, self.greatest = 1, value, value, value

    def add(self, value: Number) -> None:
        """Add one sample."""
        self.count += 1
        self.total += value
        self.least, self.greatest = min(self.least, value), max(self.greatest, value)


def labels_fault(labels: Labels) -> str | None:
    """What is wrong with these labels; None: nothing. One place is reserved for an aggregate's label."""
    if len(labels) >= LABELS_MAX:
        return f"{len(labels)} labels, {LABELS_MAX - 1} at most"
    for name, value in labels:
        if len(name.encode()) > LABEL_BYTES_MAX or len(value.encode("utf-8", "replace")) > LABEL_VALUE_BYTES_MAX:
            return f"label {name[:LABEL_BYTES_MAX]} is too long"
    return None


def series_of(name: str, detail: str, kind: str, param: str, labels: Labels) -> Series:
    """The definition of a line; the parameter of the metric is one of its labels."""
    return Series(name, detail, kind, {**dict(labels), PARAM: param} if param else dict(labels))
