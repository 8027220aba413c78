"""The catalog's counters in the format of Prometheus (CAT-082)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Counters = Mapping[tuple[str, str], int]
"""By metric and label; several labels are one text with commas: `("requests", "u_U,answered")`."""
Gauge = Callable[[], Mapping[str, float]]
"""Current values by label; `""` where there is no label."""


LABELS: Final[dict[str, tuple[str, ...]]] = {
    "requests": ("command", "outcome"),
    "dropped": ("reason",),
    "beats": ("via",),
    "evictions": ("reason",),
    "denied": ("code",),
    "changes": ("op",),
    "queries": ("query",),
    "probes": ("outcome",),
    "resyncs": ("reason",),
    "instances": ("state",),
    "checks": ("outcome",),
    "lvc_dropped": ("reason",),
    "log_dropped": ("reason",),
    "log_records": ("level",),
}
"""Names of the labels of each metric."""
ALWAYS: Final = (
    *("requests", "malformed", "udp_malformed", "dropped", "unroutable", "faults", "beats", "evictions", "pauses"),
    *("denied", "changes", "queries"),
)
"""Counters that are always shown; those without a label begin at 0."""
OWN: Final = ("beacon_", "lvc_", "log_", "bridge_", "tap_")
"""Prefixes of metrics that do not get `weft_catalog_` in front."""


def exposition(counters: Counters, gauges: Mapping[str, Gauge]) -> bytes:
    """All metrics as text.

    A core has no clock: how long syncs and turns take is measured around it, for all cores (`weft.shell.timing`).
    """
    from prometheus_client import CollectorRegistry, generate_latest  # 4 MB that only a scraped broker needs
    from prometheus_client.registry import Collector

    class Once(Collector):
        def collect(self) -> "Iterator[Metric]":
            yield from _families(counters, gauges)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return generate_latest(registry)


def full_name(metric: str) -> str:
    """The name of a metric in Prometheus.

    >>> full_name("requests"), full_name("log_gaps")
    ('weft_catalog_requests', 'weft_log_gaps')
    """
    return f"weft_{metric}" if metric.startswith(OWN) else f"weft_catalog_{metric}"


def _families(counters: Counters, gauges: Mapping[str, Gauge]) -> "Iterable[Metric]":
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for metric, by_label in _by_metric(counters).items():
        counter = CounterMetricFamily(full_name(metric), _meaning(metric), labels=_labels(metric, by_label))
        for label, count in by_label.items():
            counter.add_metric(_values(metric, label), count)
        yield counter
    for metric, ask in sorted(gauges.items()):
        figures = ask() or ({} if metric in LABELS else {"": 0.0})
        gauge = GaugeMetricFamily(full_name(metric), _meaning(metric), labels=_labels(metric, figures))
        for label, figure in figures.items():
            gauge.add_metric(_values(metric, label), figure)
        yield gauge


def _by_metric(counters: Counters) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {metric: {} if metric in LABELS else {"": 0} for metric in ALWAYS}
    for (metric, label), count in sorted(counters.items()):
        of_metric = found.setdefault(metric, {})
        of_metric[label] = of_metric.get(label, 0) + count
    return found


def _labels(metric: str, by_label: Mapping[str, float]) -> tuple[str, ...]:
    """The names of its labels; a metric that is not in the table has `kind`, if it has a label."""
    return LABELS.get(metric) or (("kind",) if any(by_label) else ())


def _values(metric: str, label: str) -> list[str]:
    names = LABELS.get(metric)
    if names is None:
        return [label] if label else []
    values = label.split(",", len(names) - 1)
    return values + [""] * (len(names) - len(values))


def _meaning(metric: str) -> str:
    return metric.replace("_", " ")
