"""The measurement core: any story of plans, readings, batches and foreign samples (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.effects import Source
from weft.cores.measurement.core import Measurement
from weft.cores.measurement.messages import (
    Measure,
    Measured,
    MeasurementSettings,
    MeasureNow,
    NumberBatch,
    PlanMetrics,
    Reading,
    Verdict,
)
from weft.cores.measurement.settings import MetricSpec, parse_metrics
from weft.wire import data as codec
from weft.wire.data import Data, DataHugz

ME = b"me".ljust(16, b".")
TABLES: tuple[dict[str, Any], ...] = (
    {"cpu": {"detail": "CPU", "rate": "1s"}},
    {"cpu": {"detail": "CPU", "rate": "2s"}, "disk": {"detail": "DISK", "rate": "5s"}},
    {"ask": {"detail": "LOAD", "rate": "on-demand"}, "memory": {"detail": "MEMORY", "rate": "1s", "hold": "3s"}},
    {"memory": {"detail": "MEMORY", "rate": "1s", "above": 0.5}, "cpu": {"detail": "CPU", "rate": "1s"}},
    {},
)
PLANS = tuple(tuple(parse_metrics(table)[0]) for table in TABLES)
LABELS = ((), (("core", "0"),), (("core", "1"),))


def _samples(choices: Choices) -> tuple[Any, ...]:
    return tuple(
        (choices.pick(LABELS), choices.pick((0, 1, 0.5, 1 << 62)), choices.pick((None, 1, 9)))
        for _ in range(choices.below(3))
    )


def _measured(work: Any, choices: Choices) -> Measured:
    """What comes of a work: samples, failures, or an answer to an older plan."""
    assert isinstance(work, Measure), work
    at_ms = 1_795_000_000_000 + choices.below(9)
    readings = [
        Reading(spec.name, at_ms, _samples(choices), choices.pick((Verdict.READ, Verdict.READ, *Verdict)))
        for spec in work.specs
    ]
    return Measured(tuple(readings), work.number - choices.flag(6))


def _numbered(choices: Choices) -> NumberBatch:
    from weft.wire.samples import Row, SampleBatch, Series

    rows = [
        Row(0, choices.below(5), choices.pick((1, 2.5)), choices.pick((None, 9))) for _ in range(1 + choices.below(4))
    ]
    return NumberBatch(SampleBatch(1_795_000_000_000, (Series("cpu", "CPU", "percent", {}),), rows))


CAST = Cast(
    make=lambda start: Measurement(MeasurementSettings(metrics=PLANS[1], node_name="me"), ME, 10 + start),
    says=(((Source("data", b""),), (Data, Data, DataHugz), lambda message: codec.decode(codec.encode(message))),),
    orders=(*(PlanMetrics(plan, number) for number, plan in enumerate(PLANS)), MeasureNow, _numbered, _numbered),
    hints={
        "names": (("ask",), ("cpu", "ask"), ()), "source": ("10.0.0.1:27500", "10.0.0.2:27500"), "config_name": ("cpu", "mem"),
        "type": ("basic", "rate", "x"), "detail": ("CPU", "MEMORY"), "time_ms": (1_795_000_000_000, 1_795_000_000_001, 1),
        "value": (1.0, 2.0, float("nan"), 1e308), "base": (None, 1.0), "labels": ({}, {"rack": "7"}),
    },
    works=_measured,
)  # fmt: skip


def one(data: bytes) -> None:
    """One node."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    assert all(isinstance(spec, MetricSpec) for plan in PLANS for spec in plan)
    return drawn("measurement")


if __name__ == "__main__":
    run(one)
