"""The measurements of all machines below a node, for Prometheus: `/metrics/fleet` (MET-006, MEA-030).

Batches are decoded only from the first scrape until ten minutes after the last one. So the answer is complete from the
second scrape on, once each metric was measured twice. Values are in base units. A series without a sample for a minute, or
for three of its intervals if that is longer, is left out.
"""

from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.base.calculated import Point, calculate
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.records import Record, Stream, StreamRecord
from weft.cores.measurement.details import DETAILS
from weft.wire import samples
from weft.wire.exported import SeriesNames

if TYPE_CHECKING:
    from prometheus_client.core import Metric

METRIC: Final = "weft.metric"
WATCHED_NS: Final = 600 * SECOND  # after the last scrape
STALE_NS: Final = 60 * SECOND  # at least; metrics are measured every second to every minute
STALE_GAPS: Final = 3
GONE_NS: Final = 3_600 * SECOND  # after this time without a sample a series is dropped
SERIES_OF_ONE_MAX: Final = 256  # of one machine; further ones are counted only
SERIES_MAX: Final = 50_000  # of all machines, about 25 MB
BODIES_KNOWN_MAX: Final = 2_000
UNITS: Final[dict[str, tuple[str, float]]] = {
    "%": ("_ratio", 0.01),
    "By": ("_bytes", 1),
    "By/s": ("_bytes_per_second", 1),
    "s": ("_seconds", 1),
    "s/s": ("_ratio", 1),
    "ms/s": ("_ratio", 1e-3),
    "us/s": ("_ratio", 1e-6),
    "Cel": ("_celsius", 1),
}
"""Suffix of the metric's name, and the factor to base units, by unit.

Of a unit such as `{operation}/s` the suffix is made of its words; for `1` there is none.
"""
UCUM: Final = {"_ratio": "1", "_bytes": "By", "_bytes_per_second": "By/s", "_seconds": "s", "_celsius": "Cel"}
"""The base units for OpenTelemetry, whose receivers make the suffix themselves; by suffix."""

Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""Name in the configuration, detail, labels."""


class Newest:
    """The newest value of one series."""

    __slots__ = ("gap_ns", "heard_ns", "point", "value")

    def __init__(self, point: Point, heard_ns: int) -> None:
        self.point, self.heard_ns = point, heard_ns
        self.gap_ns = 0
        """Time between the last two samples."""
        self.value: float | None = None


class Sample(NamedTuple):
    """A value as Prometheus gets it; `says` explains its family."""

    family: str
    says: str
    labels: dict[str, str]
    value: float


class FleetValues:
    """The newest calculated value of each series that this node records; pure: time is an argument."""

    def __init__(self) -> None:
        self.left_out = 0
        """Values that were left out, because too many series are kept already."""
        self._until_ns = 0
        self._count = 0
        self._nodes: dict[bytes, dict[Key, Newest]] = {}
        self._known: dict[bytes, tuple[samples.Series, ...]] = {}

    def watch(self, now: Now) -> None:
        """Note values for the next ten minutes: somebody has scraped them."""
        self._until_ns = now.mono + WATCHED_NS

    def note(self, records: Iterable[Record], now: Now) -> None:
        """Take the values out of records that are durable here, while somebody scrapes them."""
        if now.mono > self._until_ns:
            if self._nodes:
                self._nodes, self._known, self._count = {}, {}, 0
            return
        for record in records:
            if isinstance(record, StreamRecord) and record.stream == Stream.SAMPLES and record.key == METRIC:
                self._decode(record, now)

    def _decode(self, record: StreamRecord, now: Now) -> None:
        if len(self._known) > BODIES_KNOWN_MAX:
            self._known.clear()
        try:
            batch = samples.decode(record.payload, self._known)
        except PeerError:
            return  # unreadable here; the lake quarantines it
        node = self._nodes.setdefault(bytes(record.origin), {})
        for row in batch.rows:
            series = batch.series[row.series]
            key = series.config_name, series.detail, tuple(sorted(series.labels.items()))
            self._put(node, key, series.type, (batch.t0_ms + row.offset_ms, row.value, row.base), now)

    def _put(self, node: dict[Key, Newest], key: Key, kind: str, point: Point, now: Now) -> None:
        held, before = node.get(key), None
        if held is None:
            if len(node) >= SERIES_OF_ONE_MAX or self._count >= SERIES_MAX:
                self.left_out += 1
                return
            held = node[key] = Newest(point, now.mono)
            self._count += 1
        else:
            before = held.point
            held.gap_ns = max(0, point[0] - before[0]) * 1_000_000
        result = calculate(kind, before, point).result
        held.value = float(result) if result is not None and isfinite(result) else None
        held.point, held.heard_ns = point, now.mono

    def fresh(self, name_of: Callable[[bytes], str], now: Now) -> Iterator[Sample]:
        """All fresh values; series without a sample for an hour are dropped."""
        for origin, node in self._nodes.items():
            for key, held in list(node.items()):
                age_ns = now.mono - held.heard_ns
                if age_ns > GONE_NS:
                    del node[key]
                    self._count -= 1
                elif held.value is not None and age_ns <= max(STALE_NS, STALE_GAPS * held.gap_ns):
                    yield _sample(name_of(origin), key, held.value)


def _sample(node: str, key: Key, value: float) -> Sample:
    names, factor = names_of(node, key)
    return Sample(names.family, names.says, {"node": node, **dict(names.labels)}, value * factor)


def names_of(node: str, key: Key) -> tuple[SeriesNames, float]:
    """The names of a series in monitoring systems, and the factor to the unit that they name."""
    config_name, detail, labels = key
    row = DETAILS.get(detail)
    unit = row.unit_of(dict(labels)) if row else ""
    suffix, factor = UNITS.get(unit, ("", 1.0))
    own = {_label(label): text for label, text in labels if label not in ("unit", "node", "metric")}
    names = SeriesNames(
        family=family_of(detail, unit),
        name=f"weft.{detail.lower().removesuffix('_percent')}",
        unit=UCUM.get(suffix, unit) if unit != "1" else "",
        says=f"{row.says if row else detail}, as calculated by Weft",
        node=node,
        labels=(("metric", config_name), *own.items()),
    )
    return names, factor


def family_of(detail: str, unit: str) -> str:
    """The name of a detail's values at `/metrics/fleet`.

    >>> family_of("DISK_PERCENT", "%"), family_of("DISK_IO", "{operation}/s"), family_of("HTTP", "1")
    ('weft_disk_ratio', 'weft_disk_io_operations_per_second', 'weft_http')
    """
    suffix = UNITS[unit][0] if unit in UNITS else _words(unit)
    return f"weft_{detail.lower().removesuffix('_percent')}{suffix}"


def _words(unit: str) -> str:
    """The suffix of a metric's name for a unit in words.

    >>> _words("{operation}/s"), _words("{thread}"), _words("1")
    ('_operations_per_second', '_threads', '')
    """
    word, _, per = unit.partition("/")
    if not word.startswith("{"):
        return ""
    plural = word[1:-1] + ("es" if word.endswith(("ch}", "s}")) else "s")
    return f"_{plural}_per_second" if per else f"_{plural}"


def exposition(values: Iterable[Sample], left_out: int) -> bytes:
    """The samples as Prometheus text."""
    from prometheus_client import CollectorRegistry, generate_latest  # 4 MB that only a scraped node needs
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector
    from prometheus_client.samples import Sample as Line

    families: dict[str, Metric] = {}
    for sample in values:
        family = families.setdefault(sample.family, GaugeMetricFamily(sample.family, sample.says))
        family.samples.append(Line(sample.family, sample.labels, sample.value))
    families["weft_fleet_left_out"] = GaugeMetricFamily(
        "weft_fleet_left_out", "values of series beyond what a node tells", value=left_out
    )

    class Once(Collector):
        def collect(self) -> "Iterator[Metric]":
            yield from families.values()

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return generate_latest(registry)


def _label(name: str) -> str:
    """A label's name as Prometheus takes it.

    >>> _label("mount"), _label("a b"), _label("9x")
    ('mount', 'a_b', '_9x')
    """
    plain = "".join(one if one.isascii() and (one.isalnum() or one == "_") else "_" for one in name)
    return f"_{plain}" if not plain or plain[0].isdigit() else plain
