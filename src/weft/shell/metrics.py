"""Writes the metrics of a status as Prometheus text, with a limited number of series (OBS-003); `facts.py` lists them."""

import platform
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft.shell.facts import FACTS, TIMINGS, Fact

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SUBSYSTEM_MAX: Final = 500  # series of one subsystem, so that one Prometheus can hold a fleet of 1,000 nodes (OBS-003)
NAMES_MAX: Final = 100  # label values of one metric; all further ones are summed as `other`
OTHER: Final = "other"
TIMED: Final = 20  # series of one histogram, at most


class Series(NamedTuple):
    """One number of a status, and the fact that it belongs to."""

    fact: Fact
    labels: tuple[str, ...]
    value: float


def series_of(status: dict[str, Any]) -> Iterator[Series]:
    """All numbers of a status that are metrics; label values beyond those that a metric may have are summed as `other`."""
    for fact in FACTS:
        for labels, total in _by_name(fact, status).items() if fact.metric else ():
            yield Series(fact, labels, total / fact.per if fact.per != 1 else total)


def _by_name(fact: Fact, status: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """The numbers of one metric by their labels."""
    names: dict[tuple[str, ...], float] = {}
    for keys, value in leaves_at(status, fact.path.split(".")):
        if not isinstance(value, int):
            continue
        labels = _labels(fact, keys)
        if labels not in names and len(names) >= _names_of(subsystem_of(fact.metric)):
            labels = (OTHER,) * len(labels)
        names[labels] = names.get(labels, 0) + value
    return names


def subsystem_of(metric: str) -> str:
    """The part of Weft that a metric is about.

    >>> subsystem_of("weft_carrier_sent_total")
    'carrier'
    """
    return metric.split("_")[1]


@cache
def _names_of(subsystem: str) -> int:
    """How many label values each metric of a subsystem may have, so that all together stay below `SUBSYSTEM_MAX`."""
    mine = [fact for fact in FACTS if fact.metric and subsystem_of(fact.metric) == subsystem]
    named = sum(bool(fact.labels) for fact in mine)
    timed = TIMED * sum(subsystem_of(metric) == subsystem for metric, _ in TIMINGS.values())
    left = SUBSYSTEM_MAX - timed - (len(mine) - named)
    return min(NAMES_MAX, left // max(1, named) - 1)


def _labels(fact: Fact, keys: tuple[str, ...]) -> tuple[str, ...]:
    parts = [part for key in keys for part in key.split(":", len(fact.labels) - 1)]
    return tuple([*parts, *[""] * len(fact.labels)][: len(fact.labels)])


def leaves_at(value: Any, path: list[str]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values at a path, each with the keys that its `*` stand for."""
    if not path:
        yield (), value
        return
    key, rest = path[0], path[1:]
    if key == "*":
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in pairs:
            for keys, leaf in leaves_at(inner, rest):
                yield (str(name), *keys), leaf
    elif isinstance(value, dict) and key in value:
        yield from leaves_at(value[key], rest)


def _histograms(status: dict[str, Any]) -> Iterator["Metric"]:
    from prometheus_client.core import HistogramMetricFamily

    for path, (metric, meaning) in TIMINGS.items():
        for _, facts in leaves_at(status, path.split(".")):
            buckets = [(f"{bound:g}", count) for bound, count in facts["buckets"]]
            yield HistogramMetricFamily(metric, meaning, [*buckets, ("+Inf", facts["count"])], facts["sum"])


def _build(version: str) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    build = GaugeMetricFamily("weft_build_info", "always 1; what this node runs", labels=("version", "python"))
    build.add_metric((version, platform.python_version()), 1)
    return build


def exposition(status: dict[str, Any]) -> bytes:
    """The metrics of a status as Prometheus text."""
    from prometheus_client import CollectorRegistry, generate_latest  # 4 MB that only a scraped node needs
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for fact, labels, value in series_of(status):
        family = families.get(fact.metric)
        if family is None:
            kind = CounterMetricFamily if fact.metric.endswith("_total") else GaugeMetricFamily
            family = families[fact.metric] = kind(fact.metric, fact.meaning, labels=fact.labels)
        family.add_metric(labels, value)

    class Once(Collector):
        def collect(self) -> Iterator[Metric]:
            yield from families.values()
            yield from _histograms(status)
            yield _build(status["version"])

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return generate_latest(registry)
