"""What the measurement core hears and says: DATA of foreign nodes, orders, work, events."""

from enum import Enum

import msgspec

from weft.base.calculated import Number
from weft.cores.measurement import limits
from weft.cores.measurement.alertsettings import AlertSpec
from weft.cores.measurement.details import Place
from weft.cores.measurement.settings import MetricSpec
from weft.wire.alerts import AlertCleared, AlertRaised, AlertsFiring
from weft.wire.data import Data, DataHugz
from weft.wire.samples import BODY_BYTES_MAX, ROWS_MAX, SERIES_MAX, Labels, Row, SampleBatch, Series

__all__ = [
    "AlertCleared",
    "AlertRaised",
    "AlertSpec",
    "AlertsFiring",
    "BatchNumbered",
    "BatchTaken",
    "ClockStepped",
    "Data",
    "DataHugz",
    "KnowRoot",
    "Labels",
    "Measure",
    "MeasureNow",
    "Measured",
    "MeasurementSettings",
    "MetricFailed",
    "MetricSpec",
    "MetricUnsupported",
    "NumberBatch",
    "Place",
    "PlanMetrics",
    "Reading",
    "Row",
    "Sample",
    "SampleBatch",
    "Series",
    "Stop",
    "TellAlerts",
    "Verdict",
]

Sample = tuple[Labels, Number, Number | None]
"""Labels, value, base: one series at the instant of its reading."""


class MeasurementSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the core does from its first wake on, and how large its batches grow."""

    metrics: tuple[MetricSpec, ...] = ()
    alerts: tuple[AlertSpec, ...] = ()
    is_followed: bool = False
    """Whether this plan holds only until the configuration is known: then it ends no alert."""
    node_name: str = ""
    """Travels with every batch, so that rows can be read by people; the UUID is the identity."""
    flush_ns: int = limits.FLUSH_NS
    rows_max: int = ROWS_MAX
    bytes_max: int = BODY_BYTES_MAX
    series_max: int = SERIES_MAX


class Verdict(Enum):
    """How a reading went."""

    READ = "here are the samples"
    FAILED = "something went wrong this time"
    UNSUPPORTED = "this machine has no source for it"


class Reading(msgspec.Struct, frozen=True):
    """What became of one metric at one tick."""

    name: str
    at_ms: int
    """Wall-clock milliseconds at which the source was read."""
    samples: tuple[Sample, ...] = ()
    verdict: Verdict = Verdict.READ
    why: str = ""


# Orders


class Measured(msgspec.Struct, frozen=True):
    """Order: take what was measured; answers a `Measure`, whole or in parts."""

    readings: tuple[Reading, ...]
    number: int
    """That of the `Measure`, so that an answer to a plan that has changed is known as such."""


class NumberBatch(msgspec.Struct, frozen=True, gc=False):
    """Order: these samples have passed the chain; number them and keep them."""

    batch: SampleBatch


class PlanMetrics(msgspec.Struct, frozen=True):
    """Order: measure these from now on; metrics that are not changed miss no tick (CFG-051)."""

    specs: tuple[MetricSpec, ...]
    number: int | None = None
    """Which configuration says so (CFG-003); travels with every batch taken under it."""
    alerts: tuple[AlertSpec, ...] = ()


class KnowRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: this is the root; one that is new is told what fires (MET-004)."""

    node: bytes
    epoch: int


class TellAlerts(msgspec.Struct, frozen=True, gc=False):
    """Order: tell everything that fires once more: some events may not have been kept."""


class MeasureNow(msgspec.Struct, frozen=True):
    """Order: measure these at once, besides their ticks; the only way to a metric that is `on-demand`."""

    names: tuple[str, ...]


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: measure no more, and hand over everything that is held."""


# Work


class Measure(msgspec.Struct, frozen=True):
    """Work: measure these now, at one place, and answer with `Measured`."""

    specs: tuple[MetricSpec, ...]
    number: int
    place: Place


# Events


class BatchTaken(msgspec.Struct, frozen=True, gc=False):
    """Event: samples are complete, and go through the chain before they are numbered."""

    batch: SampleBatch


class BatchNumbered(msgspec.Struct, frozen=True, gc=False):
    """Event: samples `first` to `first + rows - 1` of this era are in the journal."""

    first: int
    rows: int


class MetricUnsupported(msgspec.Struct, frozen=True, gc=False):
    """Event: this machine has no source for a metric; told once."""

    name: str
    why: str


class MetricFailed(msgspec.Struct, frozen=True, gc=False):
    """Event: a metric could not be measured; told once per reason until it succeeds again (MEA-006)."""

    name: str
    why: str


class ClockStepped(msgspec.Struct, frozen=True, gc=False):
    """Event: the wall clock jumped against the monotonic one; the next batch is marked (MEA-005)."""

    by_ns: int
