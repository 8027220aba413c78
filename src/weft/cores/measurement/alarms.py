"""Alerts, evaluated at the node that measures (MET-004), so that they work while the root is away.

An alert that fires is journaled before it is told, so a restart neither raises it again nor forgets to clear it.
Pending alerts are not journaled: after a restart their span begins again.
"""

import math
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord, Entry
from weft.cores.kit.outbox import Outbox
from weft.cores.measurement import limits
from weft.cores.measurement.alarmstates import TABLE, Alarm, Heard, heard
from weft.cores.measurement.alertsettings import AlertSpec
from weft.cores.measurement.details import DETAILS
from weft.cores.measurement.lines import Line
from weft.cores.measurement.numbering import NAME
from weft.wire.alerts import FIRING_MAX, Alert, AlertCleared, AlertRaised, AlertsFiring
from weft.wire.samples import Labels

RAISED: Final = 2  # kind of the core record: an AlertRaised
CLEARED: Final = 3  # the key of an alert that no longer fires
TOLD: Final = 4  # the root that knows the firing alerts: its UUID and epoch
KINDS: Final = frozenset({RAISED, CLEARED, TOLD})
BACK: Final = "back"
UNKNOWN_ROOT: Final = (b"", 0)

Key = tuple[str, Labels]
"""An alert's name, and the labels of a series in order of their names."""

_RAISED: Final = msgspec.msgpack.Decoder(AlertRaised)
_CLEARED: Final = msgspec.msgpack.Decoder(tuple[str, dict[str, str]])
_TOLD: Final = msgspec.msgpack.Decoder(tuple[bytes, int])


class Seen(NamedTuple):
    """The input of a transition of one alarm."""

    key: Key
    spec: AlertSpec | None
    """None: the alert no longer exists."""
    line: Line | None
    value: float | int
    at_ms: int
    why: str = BACK


class Alarms:
    """Compares samples with the alerts of the plan; `firing` and `pending` by alert and series."""

    def __init__(self, node_name: str, outbox: Outbox, *, is_waiting: bool = False) -> None:
        """`is_waiting`: the first plan is valid only until the configuration is known, so it ends no alert."""
        self.node_name, self._outbox, self._is_waiting = node_name, outbox, is_waiting
        self.firing: dict[Key, AlertRaised] = {}
        self.pending: dict[Key, int] = {}
        """Monotonic ns of the first sample beyond the limit."""
        self.refused = 0
        """How often there was no room for another pending alert."""
        self._specs: dict[str, AlertSpec] = {}
        self._of_metric: dict[str, list[AlertSpec]] = {}
        self._informed: tuple[bytes, int] | None = None
        """The root that knows the firing alerts; None: no alert has ever fired here."""
        self._root = UNKNOWN_ROOT

    # The journal

    def restore(self, entries: Iterable[Entry]) -> None:
        """Restore the firing alerts."""
        for _, record in entries:
            if isinstance(record, CoreRecord) and record.core == NAME and record.kind in KINDS:
                self._restore(record)

    def _restore(self, record: CoreRecord) -> None:
        if record.kind == RAISED:
            alert = _RAISED.decode(record.data)
            self.firing[key_of(alert.name, alert.labels)] = alert
        elif record.kind == CLEARED:
            self.firing.pop(key_of(*_CLEARED.decode(record.data)), None)
        else:
            self._informed = _TOLD.decode(record.data)

    def condense(self) -> Iterable[CoreRecord]:
        """Records from which `restore` restores the same state."""
        if self._informed is not None:
            yield _record(TOLD, self._informed)
        for alert in self.firing.values():
            yield _record(RAISED, alert)

    # The plan

    def plan(self, specs: Iterable[AlertSpec], metrics: Container[str], now: Now) -> None:
        """Apply a new plan of alerts and metrics; alarms without a place in it end."""
        self._specs = {spec.name: spec for spec in specs}
        self._of_metric = {}
        for spec in self._specs.values():
            self._of_metric.setdefault(spec.metric, []).append(spec)
        if self._is_waiting:  # the first plan of such a node is provisional
            self._is_waiting = False
            return
        for key in [*self.pending, *self.firing]:
            if why := self._why_over(key, metrics):
                self._end(key, why, now.wall // MILLISECOND)

    def _why_over(self, key: Key, metrics: Container[str]) -> str:
        """Why the plan has no place for an alarm; empty: it has one."""
        spec, fired = self._specs.get(key[0]), self.firing.get(key)
        if fired is not None and fired.metric not in metrics:
            return "the metric is not measured any more"
        is_same = spec is not None and spec.is_about(dict(key[1])) and (fired is None or fired.metric == spec.metric)
        return "" if is_same else "the alert is not in the configuration any more"

    # Samples

    def judges(self, metric: str) -> bool:
        """Whether an alert uses this metric."""
        return metric in self._of_metric

    def read(self, metric: str, lines: Iterable[Line], at_ms: int, now_mono: int) -> None:
        """Evaluate the last samples of a metric; series that are not among them no longer exist."""
        there = {tuple(sorted(line.series.labels.items())): line for line in lines}
        for spec in self._of_metric.get(metric, ()):
            for key in [key for key in (*self.pending, *self.firing) if key[0] == spec.name and key[1] not in there]:
                self._end(key, "the series is not there any more", at_ms)
            for labels, line in there.items():
                value = line.calculated().result
                if value is not None and math.isfinite(value) and spec.is_about(line.series.labels):
                    seen = Seen((spec.name, labels), spec, line, value, at_ms)
                    held_ns = now_mono - self.pending.get(seen.key, now_mono)
                    self._turn(heard(spec, value, held_ns), seen, now_mono)

    # Transitions

    def _end(self, key: Key, why: str, at_ms: int) -> None:
        fired = self.firing.get(key)
        value = 0 if fired is None else fired.value
        self._turn(Heard.GONE, Seen(key, self._specs.get(key[0]), None, value, at_ms, why), 0)

    def _turn(self, what: Heard, seen: Seen, now_mono: int) -> None:
        cell = TABLE.get((self.state(seen.key), what))
        if cell is not None:
            getattr(self, cell.do)(seen, now_mono)

    def state(self, key: Key) -> Alarm:
        """The state of one alarm."""
        if key in self.firing:
            return Alarm.FIRING
        return Alarm.PENDING if key in self.pending else Alarm.QUIET

    def await_span(self, seen: Seen, now_mono: int) -> None:
        """The first sample beyond the limit: wait for the span."""
        if len(self.pending) < limits.ALERTS_PENDING_MAX:
            self.pending[seen.key] = now_mono
        else:
            self.refused += 1

    def forget(self, seen: Seen, now_mono: int) -> None:
        """The value did not stay beyond the limit long enough."""
        self.pending.pop(seen.key, None)

    def raise_alert(self, seen: Seen, now_mono: int) -> None:
        """Journal that it fires, then tell it; without room it is only counted."""
        if len(self.firing) >= FIRING_MAX:
            self.refused += 1
            return
        self.pending.pop(seen.key, None)
        alert = self._raised(seen)
        self.firing[seen.key] = alert
        self._outbox.keep(_record(RAISED, alert))
        if self._informed is None:
            self._note_informed()
        self._outbox.tell(alert)

    def _raised(self, seen: Seen) -> AlertRaised:
        spec, line = seen.spec, seen.line
        assert spec is not None, seen
        assert line is not None, seen
        labels = line.series.labels
        return AlertRaised(
            name=spec.name,
            node=self.node_name,
            metric=spec.metric,
            labels=dict(labels),
            value=seen.value,
            unit=DETAILS[line.series.detail].unit_of(labels),
            when=spec.when,
            limit=spec.limit,
            severity=spec.severity,
            text=spec.text,
            since=seen.at_ms,
        )

    def clear_alert(self, seen: Seen, now_mono: int) -> None:
        """Journal that it no longer fires, then tell it."""
        fired = self.firing.pop(seen.key)
        fields = msgspec.structs.asdict(fired) | {"value": seen.value, "at": seen.at_ms, "why": seen.why}
        self._outbox.keep(_record(CLEARED, (fired.name, fired.labels)))
        self._outbox.tell(AlertCleared(**fields))

    # The root

    def know_root(self, node: bytes, epoch: int) -> None:
        """Tell a new root the firing alerts. If none has ever fired, the root can have missed none."""
        self._root = (node, epoch)
        if self._informed is not None and self._informed != self._root:
            self._note_informed()
            self.tell_all()

    def _note_informed(self) -> None:
        self._informed = self._root
        self._outbox.keep(_record(TOLD, self._informed))

    def tell_all(self) -> None:
        """Tell all firing alerts, for a root that may have missed some."""
        if self._informed is not None:
            self._outbox.tell(AlertsFiring(tuple(_plain(alert) for alert in self.firing.values())))


def key_of(name: str, labels: Mapping[str, str]) -> Key:
    """The key of an alert for a series."""
    return name, tuple(sorted(labels.items()))


def _plain(alert: AlertRaised) -> Alert:
    return Alert(**msgspec.structs.asdict(alert))


def _record(kind: int, value: Any) -> CoreRecord:
    return CoreRecord(NAME, kind, msgspec.msgpack.encode(value))
