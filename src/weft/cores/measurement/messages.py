"""DATA of foreign nodes, and the orders, work and events of the measurement core."""

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
"""Labels, value, base: one series at the instant of a reading."""


class MeasurementSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The first plan, and the limits of batches."""

    metrics: tuple[MetricSpec, ...] = ()
    alerts: tuple[AlertSpec, ...] = ()
    is_followed: bool = False
    """Whether this plan is valid only until the configuration is known: then it ends no alert."""
    node_name: str = ""
    """Sent with every batch, for people who read rows; the identity is the UUID."""
    flush_ns: int = limits.FLUSH_NS
    rows_max: int = ROWS_MAX
    bytes_max: int = BODY_BYTES_MAX
    series_max: int = SERIES_MAX


class Verdict(Enum):
    """The result of a reading."""

    READ = "here are the samples"
    FAILED = "something went wrong this time"
    UNSUPPORTED = "this machine has no source for it"


class Reading(msgspec.Struct, frozen=True):
    """The reading of one metric at one tick."""

    name: str
    at_ms: int
    """Wall-clock milliseconds at which the source was read."""
    samples: tuple[Sample, ...] = ()
    verdict: Verdict = Verdict.READ
    why: str = ""


# Orders


class Measured(msgspec.Struct, frozen=True):
    """Order: readings; answers a `Measure`, completely or in part."""

    readings: tuple[Reading, ...]
    number: int
    """Number of the `Measure`, so that an answer for an earlier plan is recognised."""


class NumberBatch(msgspec.Struct, frozen=True, gc=False):
    """Order: these samples have passed the chain; number and persist them."""

    batch: SampleBatch


class PlanMetrics(msgspec.Struct, frozen=True):
    """Order: measure these metrics from now on; unchanged ones miss no tick (CFG-051)."""

    specs: tuple[MetricSpec, ...]
    number: int | None = None
    """Number of the configuration with this plan (CFG-003); sent with every batch taken under it."""
    alerts: tuple[AlertSpec, ...] = ()


class KnowRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: this is the root; a new root is told the firing alerts (MET-004)."""

    node: bytes
    epoch: int


class TellAlerts(msgspec.Struct, frozen=True, gc=False):
    """Order: tell all firing alerts again, since some events may have been lost."""


class MeasureNow(msgspec.Struct, frozen=True):
    """Order: measure these at once, in addition to their ticks; the only way to measure `on-demand` metrics."""

    names: tuple[str, ...]


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: measure no more, and release everything that is held."""


# Work


class Measure(msgspec.Struct, frozen=True):
    """Work: measure these now, at one place; answered by `Measured`."""

    specs: tuple[MetricSpec, ...]
    number: int
    place: Place


# Events


class BatchTaken(msgspec.Struct, frozen=True, gc=False):
    """Event: a batch is complete; it passes the chain before it is numbered."""

    batch: SampleBatch


class BatchNumbered(msgspec.Struct, frozen=True, gc=False):
    """Event: samples `first` to `first + rows - 1` of this era are journaled."""

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
    """Event: the wall clock jumped relative to the monotonic one; the next batch is marked (MEA-005)."""

    by_ns: int
