"""Samples in the formats of monitoring systems: Prometheus remote-write 1.0, and OTLP 1 over HTTP (MET-006).

    WriteRequest = timeseries(1)*     TimeSeries = labels(1)* samples(2)*     Label = name(1) value(2)
    Sample = value(1, double) timestamp(2, ms)

    ExportMetricsServiceRequest = resource_metrics(1)*    ResourceMetrics = resource(1) scope_metrics(2)
    ScopeMetrics = scope(1) metrics(2)*    Metric = name(1) description(2) unit(3) gauge(5)
    Gauge = data_points(1)*    NumberDataPoint = time_unix_nano(3) as_double(4) attributes(7)*
    Resource = attributes(1)*  KeyValue = key(1) value(2)  AnyValue = string_value(1)

A WriteRequest is sent as a Snappy block. A block may hold everything as literals, and ours does: nothing is compressed.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from weft.base.errors import PeerError
from weft.wire.protobuf import double, fixed64, integer, message, read, text, varint

SNAPPY_LITERAL_4: Final = 63 << 2
"""Tag of a literal whose length, less one, follows in four bytes."""
SERVICE: Final = "weft"


class SeriesNames(NamedTuple):
    """Names and labels of a series, for both formats."""

    family: str
    """Its name in Prometheus: `weft_disk_ratio`."""
    name: str
    """Its name in OpenTelemetry: `weft.disk`."""
    unit: str
    """In UCUM; empty: none."""
    says: str
    node: str
    labels: tuple[tuple[str, str], ...]
    """All but the node's."""


class ExportedSeries:
    """A series, and its encoded head, which is the same in every request."""

    __slots__ = ("names", "written")

    def __init__(self, names: SeriesNames) -> None:
        self.names = names
        labels = {"__name__": names.family, "node": names.node, **dict(names.labels)}
        self.written = b"".join(message(1, text(1, name), text(2, value)) for name, value in sorted(labels.items()))
        """Its labels for Prometheus, which asks for them in order."""


class Point(NamedTuple):
    """One value."""

    series: ExportedSeries
    at_ms: int
    value: float


def _grouped(points: Iterable[Point]) -> dict[ExportedSeries, list[Point]]:
    """Points by series; of each series in the order in which they came."""
    found: dict[ExportedSeries, list[Point]] = {}
    for point in points:
        found.setdefault(point.series, []).append(point)
    return found


def write_request(points: Iterable[Point]) -> bytes:
    """The body of a request of remote-write 1.0."""
    return snappy(
        b"".join(
            message(1, series.written, *(message(2, double(1, value), integer(2, at)) for _, at, value in own))
            for series, own in _grouped(points).items()
        )
    )


def snappy(data: bytes) -> bytes:
    """A Snappy block that holds the data as one literal.

    >>> snappy(b"abc").hex()
    '03fc02000000616263'
    """
    if not data:
        return b"\x00"
    return varint(len(data)) + bytes((SNAPPY_LITERAL_4,)) + (len(data) - 1).to_bytes(4, "little") + data


def otlp_request(points: Iterable[Point]) -> bytes:
    """The body of an ExportMetricsServiceRequest: a resource per node, a metric per name and unit."""
    nodes: dict[str, dict[tuple[str, str, str], list[bytes]]] = {}
    for series, own in _grouped(points).items():
        names = series.names
        labels = b"".join(_attribute(7, name, value) for name, value in names.labels)
        metrics = nodes.setdefault(names.node, {}).setdefault((names.name, names.says, names.unit), [])
        metrics += [message(1, fixed64(3, at * 1_000_000), double(4, value), labels) for _, at, value in own]
    return b"".join(message(1, _resource(node), _scope(metrics)) for node, metrics in nodes.items())


def _resource(node: str) -> bytes:
    return message(1, _attribute(1, "service.name", SERVICE), _attribute(1, "host.name", node))


def _scope(metrics: dict[tuple[str, str, str], list[bytes]]) -> bytes:
    metric_fields = (
        message(2, text(1, name), text(2, says), text(3, unit), message(5, *points))
        for (name, says, unit), points in metrics.items()
    )
    return message(2, message(1, text(1, SERVICE)), *metric_fields)


def _attribute(field: int, name: str, value: str) -> bytes:
    return message(field, text(1, name), message(2, text(1, value)))


def otlp_refused(answer: bytes) -> tuple[int, str]:
    """How many points a receiver of OTLP has refused of a request that it took, and why; (0, "") if none."""
    try:
        partial = next((value for field, value in read(answer) if field == 1 and isinstance(value, bytes)), b"")
        fields = dict(read(partial))
    except PeerError:
        return 0, ""  # it accepted the request, in a form that cannot be read
    count, why = fields.get(1, 0), fields.get(2, b"")
    if not isinstance(count, int) or not isinstance(why, bytes):
        return 0, ""
    return count, why.decode("utf-8", "replace")
