"""What a simulated machine measures: numbers that depend on the metric and the time, and on nothing else."""

from hashlib import blake2b
from typing import Final

from weft.base.now import MILLISECOND
from weft.cores.measurement.messages import Reading, Sample, Verdict
from weft.sim.plan import Metric

SERIES_LABEL: Final = "part"


class Meters:
    """The meters of one machine."""

    def __init__(self, name: str, metrics: tuple[Metric, ...]) -> None:
        self._phase = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "big")
        self._series = {metric.name: metric.series for metric in metrics}

    def read(self, metric: str, wall_ns: int) -> Reading:
        """One metric, now: counters that grow with time, the same in every run."""
        at_ms = wall_ns // MILLISECOND
        count = self._series.get(metric, 1)
        samples = tuple(self._sample(part, at_ms) for part in range(count))
        return Reading(metric, at_ms, samples)

    def _sample(self, part: int, at_ms: int) -> Sample:
        labels = ((SERIES_LABEL, str(part)),) if part else ()
        return labels, (at_ms // 10 + self._phase * (part + 1)) % 1_000_003, at_ms // 10

    def fail(self, metric: str, wall_ns: int) -> Reading:
        """Report an error of the source instead."""
        return Reading(metric, wall_ns // MILLISECOND, (), Verdict.FAILED, "simulated: no answer from the source")
