"""The root's list of active alerts, and the notices that go outside (MET-004).

Nodes evaluate alerts and journal them. Their events come up the road like all records, and this core gets each one in
the turn that makes it durable at the root. The core's own records are written in the same turn, so after a crash the
root knows what fires and which notices are still to be sent. Delivery is at least once: a notice is repeated only if
its attempt was under way, and it has an id.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from weft.base.budget import Budget
from weft.base.effects import Effect, Source
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord, Entry
from weft.cores.alerts import limits
from weft.cores.alerts.lane import DONE, NAME, NOTICE, Lane
from weft.cores.alerts.messages import AlertsSettings, ForgetAlert, Hear, Notice, NoticeFailed, NoticeSent, SinkSettings
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.timers import earliest
from weft.wire.alerts import Alert, AlertCleared, AlertRaised, AlertsFiring, decode, ident

ACTIVE: Final = 1  # kind of the core record: the node's UUID, an Alert
ENDED: Final = 2  # the node's UUID, the alert's name, the series' labels
RANKS: Final = {"warning": 0, "critical": 1}

Key = tuple[bytes, str, tuple[tuple[str, str], ...]]

_ACTIVE: Final = msgspec.msgpack.Decoder(tuple[bytes, Alert])
_ENDED: Final = msgspec.msgpack.Decoder(tuple[bytes, str, dict[str, str]])
_NOTICE: Final = msgspec.msgpack.Decoder(Notice)
_DONE: Final = msgspec.msgpack.Decoder(int)


class Alerts:
    """The alerts core of a root."""

    name = NAME

    def __init__(self, settings: AlertsSettings) -> None:
        self.settings = settings
        self.budget = Budget()
        self.counts: Counter[str] = Counter()
        self.active: dict[Key, Alert] = {}
        self.ended: deque[AlertCleared] = deque(maxlen=limits.ENDED_MAX)
        """Alerts that ended since the start, newest last; bounded."""
        self._outbox = Outbox()
        self.lanes = {sink.name: Lane(sink.name, settings, self._outbox, self.counts) for sink in settings.sinks}
        self._homeless: dict[int, Notice] = {}
        """Notices for sinks that the configuration file no longer names."""
        self._number = 0

    # The verbs of every core.

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore the active alerts and the unsent notices."""
        for _, record in entries:
            if isinstance(record, CoreRecord) and record.core == NAME:
                self._RESTORERS[record.kind](self, record.data)

    def condense(self) -> Iterator[CoreRecord]:
        for key, alert in self.active.items():
            yield _record(ACTIVE, (key[0], alert))
        for notice in (*self._homeless.values(), *(each for lane in self.lanes.values() for each in lane.notices)):
            yield _record(NOTICE, notice)

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """PeerError: this core has no peers."""
        raise PeerError("not-spoken", "the alerts core hears no messages")

    def command(self, order: Any, now: Now) -> None:
        """Obey an order of messages.py."""
        if isinstance(order, Hear):
            self._hear(order, now)
        elif isinstance(order, ForgetAlert):
            self._forget(order, now)
        elif isinstance(order, NoticeSent | NoticeFailed) and order.sink in self.lanes:
            self.lanes[order.sink].hear(order, now)

    def wake(self, now: Now) -> None:
        """Send what is due; give up the notices whose sink no longer exists."""
        for notice in self._homeless.values():
            Lane(notice.sink, self.settings, self._outbox, self.counts).give_up(
                notice, "no such [notify.…] any more", now
            )
        self._homeless = {}
        for lane in self.lanes.values():
            lane.wake(now)

    def deadline(self) -> int | None:
        return 0 if self._homeless else earliest(*[lane.due_at for lane in self.lanes.values()])

    def effects(self) -> list[Effect]:
        return self._outbox.take()

    # Restoring

    def _restore_active(self, data: bytes) -> None:
        origin, alert = _ACTIVE.decode(data)
        self.active[key_of(origin, alert.name, alert.labels)] = alert

    def _restore_ended(self, data: bytes) -> None:
        self.active.pop(key_of(*_ENDED.decode(data)), None)

    def _restore_notice(self, data: bytes) -> None:
        notice = _NOTICE.decode(data)
        self._number = max(self._number, notice.number)
        lane = self.lanes.get(notice.sink)
        if lane is None:
            self._homeless[notice.number] = notice
        else:
            lane.restored(notice)

    def _restore_done(self, data: bytes) -> None:
        number = _DONE.decode(data)
        self._homeless.pop(number, None)
        for lane in self.lanes.values():
            lane.restored_done(number)

    _RESTORERS: Final[dict[int, Callable[["Alerts", bytes], None]]] = {
        ACTIVE: _restore_active,
        ENDED: _restore_ended,
        NOTICE: _restore_notice,
        DONE: _restore_done,
    }

    # Hearing

    def _hear(self, order: Hear, now: Now) -> None:
        event = decode(order.key, order.payload)
        if isinstance(event, AlertRaised):
            self._raise(order.origin, event, now)
        elif isinstance(event, AlertCleared):
            self._clear(order.origin, event, now)
        elif isinstance(event, AlertsFiring):
            self._compare(order.origin, event.alerts, now)
        else:
            self.counts["unreadable"] += 1

    def _raise(self, origin: bytes, alert: Alert, now: Now) -> None:
        """An alert was raised. A repetition is recognised by its start time."""
        key = key_of(origin, alert.name, alert.labels)
        known = self.active.get(key)
        if known is not None and known.since >= alert.since:
            self.counts["repeated"] += 1
            return
        self.counts["raised"] += 1
        if known is None and len(self.active) >= self.settings.active_max:
            self.counts["unlisted"] += 1  # a notice is sent all the same
        else:
            self.active[key] = _plain(alert)
            self._outbox.keep(_record(ACTIVE, (origin, _plain(alert))))
        self._notify("raised", origin, alert, alert.since, now)

    def _clear(self, origin: bytes, cleared: AlertCleared, now: Now) -> None:
        """An alert ended.

        If this root does not know it, it began under an earlier root; the sinks are still notified.
        """
        key = key_of(origin, cleared.name, cleared.labels)
        known = self.active.get(key)
        if known is not None and known.since > cleared.since:
            self.counts["repeated"] += 1
            return
        self.counts["cleared"] += 1
        if known is not None:
            del self.active[key]
            self._outbox.keep(_record(ENDED, (origin, cleared.name, cleared.labels)))
        self.ended.append(cleared)
        self._notify("cleared", origin, cleared, cleared.at, now, cleared.why)

    def _forget(self, order: ForgetAlert, now: Now) -> None:
        """An operator ends an alert that its node can no longer end."""
        found = [key for key, alert in self.active.items() if ident(key[0], alert) == order.ident]
        for key in found:
            fields = msgspec.structs.asdict(self.active[key])
            self._clear(key[0], AlertCleared(**fields, at=now.wall // MILLISECOND, why="forgotten by hand"), now)
        self._outbox.reply(order.ticket, {"forgotten": len(found)})

    def _compare(self, origin: bytes, alerts: Iterable[Alert], now: Now) -> None:
        """A node reports all of its active alerts: any other alert known of this node has ended."""
        firing = {key_of(origin, alert.name, alert.labels): alert for alert in alerts}
        for key in [key for key in self.active if key[0] == origin and key not in firing]:
            fields = msgspec.structs.asdict(self.active[key])
            ended = AlertCleared(**fields, at=now.wall // MILLISECOND, why="its node says that it fires no more")
            self._clear(origin, ended, now)
        for alert in firing.values():
            self._raise(origin, alert, now)

    def _notify(  # tidy: one thing that happened
        self, what: str, origin: bytes, alert: Alert, at: int, now: Now, why: str = ""
    ) -> None:
        for sink in self.settings.sinks:
            if not _wants(sink, alert):
                continue
            self._number += 1
            notice = Notice(
                number=self._number,
                sink=sink.name,
                what=what,
                ident=ident(origin, alert),
                fleet=self.settings.fleet,
                alert=_plain(alert),
                at=at,
                why=why,
                made_at=now.wall // MILLISECOND,
            )
            self.lanes[sink.name].add(notice, now)

    # For people

    def facts(self) -> dict[str, Any]:
        """Numbers for the status."""
        waiting = sum(len(lane.notices) for lane in self.lanes.values())
        counts = {name: self.counts[name] for name in COUNTED}
        return {"active": len(self.active), "waiting": waiting, **counts}


COUNTED: Final = ("raised", "cleared", "repeated", "unlisted", "unreadable", "sent", "failed", "given_up", "stale")
"""Names of all counters."""


def key_of(origin: bytes, name: str, labels: Mapping[str, str]) -> Key:
    """Key of an alert: node, name, and the labels of its series."""
    return origin, name, tuple(sorted(labels.items()))


def _wants(sink: SinkSettings, alert: Alert) -> bool:
    return RANKS.get(alert.severity, 0) >= RANKS[sink.severity]


def _plain(alert: Alert) -> Alert:
    """The alert without the fields that only AlertCleared has."""
    return Alert(**{name: getattr(alert, name) for name in Alert.__struct_fields__})


def _record(kind: int, value: Any) -> CoreRecord:
    return CoreRecord(NAME, kind, msgspec.msgpack.encode(value))
