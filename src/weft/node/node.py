"""One node: its cores, the messages between them, and the order in which effects leave.

Frames come in, are decoded by the codec of their channel, and go to one core. Its effects are taken in order; the
wiring turns events into orders for other cores, whose effects are appended. So the effects of a turn are in causal
order: an effect after a `Persist` may depend on it, and leaves only when the record is durable (JRN-001). The node is
the only writer of its journal, so it knows each record's lsn before it is written.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.effects import Confirm, Connect, Core, Disconnect, Effect, Perform, Persist, Reply, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.keys import Holder
from weft.base.now import SECOND, Now
from weft.base.records import CARRIED, CoreRecord, Entry, Record, Stream, StreamRecord
from weft.base.spool import Journaled, RecordsFetched
from weft.cores.kit.timers import earliest
from weft.cores.measurement import messages as measurement
from weft.node import securityevents
from weft.node.alertevents import AlertReported
from weft.node.authority import Authority
from weft.node.census import Census, report_of
from weft.node.channels import CHANNELS, channels_of
from weft.node.events import APPLIED, InputRefused, RoleChanged
from weft.node.ledger import Ledger
from weft.node.plan import plan_of
from weft.node.planner import Planner
from weft.node.quarantine import Quarantine
from weft.node.roles import role_record
from weft.node.settings import NodeSettings, NodeTable, Role
from weft.node.standing import Standing
from weft.node.wires import Action
from weft.wire.alerts import KEYS as ALERT_KEYS

REFUSAL_EVENT_NS: Final = (
    60 * SECOND
)  # one journaled event per minute, channel, code and key (SEC-026); all are counted
REFUSAL_KINDS_MAX: Final = 1_000


class Transmit(msgspec.Struct, frozen=True, gc=False):
    """Send these frames on a channel; `peer` as in `Send`."""

    channel: str
    peer: bytes
    frames: list[bytes]


class Ended(msgspec.Struct, frozen=True, gc=False):
    """The node has to end; the event says why."""

    event: Any


NodeEffect = Transmit | Confirm | Persist | Connect | Disconnect | Perform | Reply | Tell | Ended


class Turn(NamedTuple):
    """The effects of one turn, divided at the wall."""

    free: list[NodeEffect]
    """Effects that may leave at once: no Persist comes before them."""
    records: list[Record]
    """Records to make durable, in one write and one sync."""
    within_ns: int
    """0: sync now, and `walled` waits for it. Else the records need only become durable within this time."""
    walled: list[NodeEffect]
    """Effects that leave only after the records are durable."""


def part_at_wall(effects: Iterable[NodeEffect]) -> Turn:
    """Divide the effects of a turn at its first Persist (JRN-001, JRN-002)."""
    free: list[NodeEffect] = []
    walled: list[NodeEffect] = []
    records: list[Record] = []
    spans: list[int] = []
    place = free
    for effect in effects:
        if isinstance(effect, Persist):
            records += effect.records
            spans.append(effect.within_ns)
            if not effect.within_ns:
                place = walled
        else:
            place.append(effect)
    return Turn(free, records, min(spans, default=0), walled)


def _readers_of(records: Iterable[Record]) -> tuple[bool, bool]:
    """Whether some records go up, and whether some are the store's.

    The clients of a store get positions in the journal, so the store must know its records (CLN-010).
    """
    is_carried = is_of_store = False
    for record in records:
        if type(record) is CoreRecord:
            is_of_store = is_of_store or record.core == "store"
        else:
            is_carried = is_carried or isinstance(record, CARRIED)
            is_of_store = is_of_store or getattr(record, "stream", 0) == Stream.STORE
    return is_carried, is_of_store


class Node:
    """The cores of one node and their wiring; pure, like the cores."""

    def __init__(
        self,
        node: bytes,
        era: int,
        cores: Sequence[Core],
        wiring: dict[type, list[Action]],
        settings: NodeSettings | None = None,
    ) -> None:
        self.node, self.era = node, era
        self.settings = settings or NodeSettings(node=NodeTable(name="node"))
        self.planner = Planner(plan_of, self.settings)
        self.census = Census()
        self.role = self.settings.role
        self.standing, self._is_root = Standing(self.settings.level), self.settings.level == "root"
        trust = self.settings.trust
        self.authority = None if trust is None else Authority(trust)
        """Decides who may send what; None: there are no keys, and everybody may send everything."""
        self.cores: dict[str, Core] = {core.name: core for core in cores}
        self.ledger, self.next_lsn = Ledger(node, era, self.settings.node.name), 1
        self.released: dict[str, int] = {}
        self._released = 0
        self.refused, self.quarantine = Counter[tuple[str, str]](), Quarantine()
        self.is_full = False
        """The journal has no room: samples are not numbered, children are told to wait (JRN-030)."""
        self.unrecorded_samples = self.unrecorded_events = 0
        """How many were dropped while the journal was full. They got no numbers, so none is missing."""
        self._wiring = wiring
        self._queue, self._out = deque[Effect](), list[NodeEffect]()
        self._dues: dict[str, int | None] = dict.fromkeys(self.cores)
        """The deadlines of cores, by name, as they were asked last."""
        self._unasked = dict[str, Core](self.cores)
        """Cores that got something since, and are asked again."""
        self._first_due: int | None = None
        """The earliest deadline of all cores, if `_is_settled`."""
        self._is_settled = False
        self._refusal_told_at: dict[tuple[str, str, bytes | None], int] = {}
        """When a refusal was last reported, by channel, code, and the sender's node; None: a sender without a key."""
        self.channels = channels_of(self.cores, is_parent=self.settings.is_parent)
        """The channels of its cores; it receives nothing on any other."""
        self._screen = self.cores.get("chains")
        self._has_store = "store" in self.cores
        self._readers = [name for name in ("carrier", "drain", "export") if name in self.cores]

    def restore(self, entries: Iterable[Entry], next_lsn: int, now: Now) -> None:
        """Restore the state from the journal. Called for each part of it, in order, before any other method.

        What a core keeps meanwhile follows everything that is restored: `next_lsn` is the same for each part.
        """
        entries = list(entries)
        self.next_lsn = max(self.next_lsn, next_lsn)
        self.ledger.restore(entries)
        for core in self.cores.values():
            core.restore(entries, now)
            self._take(core, now)

    def condense(self) -> Iterator[CoreRecord]:
        """Records from which `restore` makes an equal state (JRN-040). Nothing else may be called until all are read."""
        yield from self.ledger.condense()
        if self.role != Role():
            yield role_record(self.role)
        for core in self.cores.values():
            yield from core.condense()

    def receive(self, source: Source, frames: list[bytes], now: Now) -> None:
        """Handle one message. A malformed or forbidden one is refused, counted, and changes nothing."""
        self.hear(((source, frames),), now)

    def hear(self, messages: Iterable[tuple[Source, list[bytes]]], now: Now) -> None:
        """Handle the messages that have arrived, in order.

        The effects of a core are collected when the next message is for another core, so that messages that came
        together are persisted and answered together (CLI-008).
        """
        hearing: Core | None = None
        for source, frames in messages:
            core = self.cores[CHANNELS[source.channel].core]
            if hearing is not None and core is not hearing:
                self._take(hearing, now)
            hearing = core
            self._hear(core, source, frames, now)
        if hearing is not None:
            self._take(hearing, now)

    def _hear(self, core: Core, source: Source, frames: list[bytes], now: Now) -> None:
        channel = source.channel
        row = CHANNELS[channel]
        try:
            message = row.decode(frames)
        except PeerError as error:
            self._refuse(source, frames, error, now)
            if row.refuse is not None:
                self._out.append(Transmit(channel, source.peer, row.refuse(frames, error)))
            if row.garbled is not None:
                core.command(row.garbled(channel, source.peer, error.code), now)
            return
        if self.authority is not None:
            try:
                self.authority.hear(source, message)
            except PeerError as error:
                self._refuse(source, frames, error, now)
                if row.deny is not None and (answer := row.deny(message, error)):
                    self._out.append(Transmit(channel, source.peer, answer))
                return
        try:
            core.receive(message, source, now)
        except PeerError as error:
            self._refuse(source, frames, error, now)

    def command(self, core: str, order: Any, now: Now) -> None:
        """Give one core an order. An order for a core that this node does not run is ignored."""
        if core in self.cores:
            self.cores[core].command(order, now)
            self._take(self.cores[core], now)

    def fetched(self, answer: RecordsFetched, now: Now) -> None:
        """Hand the outcome of a `FetchRecords` to the core that asked."""
        self.command(answer.holder, answer, now)

    def stop(self, orders: Sequence[tuple[str, Any]], now: Now) -> None:
        """Give the orders to stop, in the given order of cores."""
        for core, order in orders:
            self.command(core, order, now)

    def tell(self, event: Any, now: Now) -> None:
        """Pass an event of the shell through the wiring."""
        self._queue.append(Tell(event))
        self._drain(now)

    def wrote(self, count: int) -> None:
        """Note that the shell has written this many journal records without an effect of a core."""
        self.next_lsn += count

    def wake(self, now: Now) -> None:
        """Time has passed: wake the cores whose deadline is due."""
        for core in self.cores.values():
            due = self._due(core)
            if due is not None and due <= now.mono:
                core.wake(now)
                self._take(core, now)

    def deadline(self) -> int | None:
        """The earliest deadline of all cores, monotonic ns."""
        if not self._is_settled:
            for name, core in self._unasked.items():
                self._dues[name] = core.deadline()
            self._unasked.clear()
            self._first_due, self._is_settled = earliest(*self._dues.values()), True
        return self._first_due

    def _due(self, core: Core) -> int | None:
        if core.name in self._unasked:
            del self._unasked[core.name]
            self._dues[core.name] = core.deadline()
        return self._dues[core.name]

    def effects(self) -> list[NodeEffect]:
        """What to do, in causal order; the call empties the list."""
        done, self._out = self._out, []
        return done

    @property
    def has_effects(self) -> bool:
        """Whether there is something to do."""
        return bool(self._out)

    @property
    def releasable(self) -> int:
        """The lsn up to which no reader of the journal (carrier, drain, export) needs records any more.

        A node without such readers need not keep its streams.
        """
        return self._released if self._readers else self.next_lsn - 1

    def holder_of(self, uuid: bytes) -> Holder | None:
        """The node to which a key is bound now; None if it is bound to none, or if there are no keys."""
        return None if self.authority is None else self.authority.table.node(uuid)

    # Methods that the wiring may call (wires.Orders).

    def order(self, core: str, order: Any) -> None:
        if core in self.cores:
            self.cores[core].command(order, self._now)
            self._queue_effects(self.cores[core])

    def append_event(self, event: Any) -> None:
        if self.is_full:
            self.unrecorded_events += 1  # events are not guaranteed, and there is no space
        else:
            self._queue.append(Persist(self.ledger.records(event, self._now)))

    def keep(self, record: Record) -> None:
        self._queue.append(Persist((record,)))

    def end(self, event: Any) -> None:
        self._out.append(Ended(event))

    def tell_later(self, event: Any) -> None:
        self._queue.append(Tell(event))

    def change_role(self, role: Role) -> None:
        """Record the node's role for its next start, flush the latest measurements, and end (roles.py)."""
        self.role = role
        self._queue.append(Persist((role_record(role),)))
        self.order("measurement", measurement.Stop())
        self.tell_later(RoleChanged(role.level, role.epoch))

    def release(self, holder: str, upto: int) -> None:
        """A reader needs the records up to lsn `upto` no more."""
        self.released[holder] = max(upto, self.released.get(holder, 0))
        self._released = min([self.released.get(reader, 0) for reader in self._readers], default=0)

    # One turn.

    def _take(self, core: Core, now: Now) -> None:
        self._queue_effects(core)
        self._drain(now)

    def _queue_effects(self, core: Core) -> None:
        self._queue.extend(core.effects())
        self._is_settled = False
        self._unasked[core.name] = core
        if core.name == "carrier" and self._screen is not None:
            self._unasked[self._screen.name] = self._screen
            self._queue.extend(
                self._screen.effects()
            )  # the chains have screened the carrier's records, before its Persist

    def _drain(self, now: Now) -> None:
        self._now = now
        queue, out = self._queue, self._out
        while queue:
            effect = queue.popleft()
            if isinstance(effect, Send):
                out.append(Transmit(effect.channel, effect.peer, CHANNELS[effect.channel].encode(effect.message)))
            elif isinstance(effect, Persist):
                self._persist(effect)
            elif isinstance(effect, Tell):
                out.append(effect)
                for action in self._wiring.get(type(effect.event), ()):
                    action(self, effect.event)
            else:
                out.append(effect)

    def _persist(self, effect: Persist) -> None:
        first_lsn = self.next_lsn
        self.next_lsn += len(effect.records)
        is_carried, is_of_store = _readers_of(effect.records)
        # Records that go up must be durable first, so a `Persist` marked late becomes a wall for them.
        self._out.append(Persist(effect.records) if is_carried else effect)
        if is_carried:
            self._note_events(effect.records)
            for reader in self._readers:
                self.order(reader, Journaled(first_lsn, effect.records))
        if is_of_store and self._has_store:
            self.order("store", Journaled(first_lsn, effect.records))

    def _note_events(self, records: Iterable[Record]) -> None:
        """At the root: read reports and alerts of nodes, as their events pass through the journal (CFG-047, MET-004)."""
        if not self._is_root:
            return
        for record in records:
            if type(record) is StreamRecord and record.stream == Stream.EVENTS:
                if record.key == APPLIED:
                    self._note_applied(record)
                elif record.key in ALERT_KEYS:
                    self.tell_later(AlertReported(record.origin, record.key, record.payload))
                elif record.key in securityevents.KEYS:
                    self._note_key(record)

    def _note_key(self, record: StreamRecord) -> None:
        report = securityevents.report_of(record.origin, record.key, record.payload)
        if report is not None:
            self.tell_later(report)

    def _note_applied(self, record: StreamRecord) -> None:
        report = report_of(record.origin, record.payload)
        if report is not None:
            self.census.note(record.origin, report.number, record.at, report.candidates)
            self.tell_later(report)

    def note_told(self, channel: str, code: str, proved: bytes | None, now: Now) -> None:
        """Note that a refusal was reported; it is not reported again for a minute."""
        if len(self._refusal_told_at) >= REFUSAL_KINDS_MAX:
            del self._refusal_told_at[next(iter(self._refusal_told_at))]
        self._refusal_told_at[channel, code, proved] = now.mono

    def _refuse(self, source: Source, frames: list[bytes], error: PeerError, now: Now) -> None:
        self.quarantine.keep(source, frames, error, now)
        channel = source.channel
        key = (channel, error.code)
        if key not in self.refused and len(self.refused) >= REFUSAL_KINDS_MAX:
            key = (channel, "other")
        self.refused[key] += 1
        told_at = self._refusal_told_at.get((*key, source.proved))
        if told_at is None or now.mono - told_at >= REFUSAL_EVENT_NS:
            self.note_told(*key, source.proved, now)
            self._queue.append(Tell(InputRefused(channel, error.code, error.why, error.shown.hex(), self.refused[key])))
