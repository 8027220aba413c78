"""Which instances are there: beats, silence, and what follows from it (BEA-010 to BEA-023).

An instance has one timer at most, in a heap, and a beat does not touch it: it only notes until when its instance is not
missed. A timer that finds that this is later than thought is set again (O(1) per beat, O(log n) per silence).

All instants here, but `Instance.heard_at`, are those of a clock that stood still whenever the broker did: being late by an
hour is one addition (BEA-022). What others say of the time decides nothing (CAT-012).
"""

import heapq
from collections.abc import Callable
from typing import Any, Final, Protocol

from weft.base.now import MILLISECOND, Now
from weft.cores.catalog import limits
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import BEATS, Context
from weft.cores.catalog.holding import HELD, Holding
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.messages import PathChanged, Paused
from weft.cores.catalog.probing import Probing
from weft.cores.catalog.states import On, State
from weft.wire.catalog.messages import AWK, DISCONNECT, HEARTBEAT, Beat, Beats, Message

UDP, TCP, PROBE = "udp", "tcp", "probe"
NEVER: Final = 1 << 62
LEFT: Final = "left"
JITTER_BUCKETS: Final = 16  # powers of two of a millisecond: up to half a minute
STALE_MIN: Final = 64  # timers of who is gone, before it is worth looking for them
TURN_MAX: Final = 512  # timers in one turn: with an eviction each that is 30 ms (CAT-081)


class Registrar(Protocol):
    """What liveness needs of `registry.Registry`: the one place that changes what an instance is."""

    @property
    def is_busy(self) -> bool:
        """Whether enough has changed in this turn."""

    @property
    def free_at(self) -> int:
        """When what waits because of that can go on; 0: nothing waits."""

    def move(self, instance: Instance, on: On, reason: str = "") -> None:
        """Something happened to it: what the table says is done."""

    def leave(self, instance: Instance, reason: str = ...) -> None:
        """It said goodbye, and can be trusted."""

    def remove(self, instance: Instance, reason: str) -> None:
        """It is forgotten."""

    def of_beat(self, name: str, instance_id: str | None, asker_owner: str) -> Instance | None:
        """The one instance that a beat of this owner means."""


class Pusher(Protocol):
    """What liveness needs of `serving.Serving`: words to the DEALER that an instance is bound to."""

    def push(self, instance: Instance, message: Message) -> bool:
        """False: it has none, or that is closed. A message without a time gets one in the peer's format."""


class Watch:
    """What is known of the life of one instance, besides what it shows."""

    __slots__ = (
        "answered_at",
        "armed_at",
        "beats",
        "began_at",
        "critical_at",
        "instance",
        "is_over_tcp",
        "jitter",
        "last_at",
        "round_trip_ns",
        "tcp_at",
        "udp_at",
    )

    def __init__(self, instance: Instance, clock: int) -> None:
        self.instance = instance
        self.armed_at = NEVER
        """Of its one timer that counts; any other in the heap is old."""
        self.critical_at = NEVER
        """Since when its health is critical, if that matters."""
        self.udp_at = self.tcp_at = -NEVER
        """Of its last beat by UDP; of its last command, or beat, over a connection."""
        self.answered_at = -NEVER
        """When a beat by UDP was answered by one."""
        self.is_over_tcp = False
        """It was asked over its connection, or beats over it: once UDP works it is told so."""
        self.began_at = self.last_at = clock
        self.beats = 0
        self.jitter = [0] * JITTER_BUCKETS
        self.round_trip_ns = 0

    def note_beat(self, clock: int) -> None:
        """For who wants to see how regularly it beats (MON-008)."""
        off = abs(clock - self.last_at - self.instance.interval_ns) // MILLISECOND
        self.jitter[min(off.bit_length(), JITTER_BUCKETS - 1)] += 1
        self.last_at = clock
        self.beats += 1


class Liveness:
    """The timers of all instances."""

    def __init__(self, context: Context, book: Book, registry: Registrar, serving: Pusher) -> None:
        self._context, self._registry, self._serving = context, registry, serving
        self._book = book
        self.probing = Probing(context)
        self.holding = Holding(context, book)
        self._liveness = context.settings.liveness
        self._stood_ns = 0
        """How long the broker has stood still altogether."""
        self._watches: dict[Instance, Watch] = {}
        self._heap: list[tuple[int, int, Watch]] = []
        self._serial = 0
        self._returning: Instance | None = None
        """Whom the registry is just told to be back: it is the same as before."""
        if context.settings.reap_critical_ns:
            context.listeners.append(self._note_health)

    @property
    def is_held(self) -> bool:
        """Whether nobody is called dead for now (BEA-023)."""
        return self.holding.state == HELD

    @property
    def _clock(self) -> int:
        return self._context.now.mono - self._stood_ns

    # What the registry says

    def began(self, instance: Instance) -> None:
        """It is registered, registered again, back, or (`is_restored`) known from before this start: it gets its time."""
        clock = self._clock
        watch = self._watches.get(instance)
        if watch is None:
            watch = self._watches[instance] = Watch(instance, clock)
        if instance is not self._returning:
            self._forget_path(watch)
        instance.heard_at = self._context.now.mono
        if instance.state is State.INACTIVE:
            self._rest(watch, clock)
        else:
            self._spare(watch, clock)
        if self._context.settings.reap_critical_ns:
            self._judge_health(watch, clock)
        self._arm(watch)

    def ended(self, instance: Instance) -> None:
        """It is INACTIVE, or removed."""
        watch = self._watches.get(instance)
        if watch is None:
            return
        self.probing.forget(instance)
        self.holding.forget(instance)
        if instance.state is State.INACTIVE and self._book.get(*instance.key) is instance:
            self._rest(watch, self._clock)
            self._arm(watch)
        else:
            watch.armed_at = NEVER
            del self._watches[instance]
        self.holding.look(self._clock)

    def _spare(self, watch: Watch, clock: int) -> None:
        """From now on it is missed; what was restored has some time more (CAT-051)."""
        instance = watch.instance
        self.holding.forget(instance)
        self.holding.look(clock)
        whole = self._liveness * instance.interval_ns
        more = max(0, limits.RESTORED_NS - whole) if instance.is_restored else 0
        is_suspect = instance.state is State.SUSPECT
        instance.due_at = clock + more + (whole if is_suspect else _suspect_ns(instance))
        instance.probe_at = clock if is_suspect else 0

    def _forget_path(self, watch: Watch) -> None:
        """Who registers may be another process: it counts from one, and its beats come as they come."""
        instance = watch.instance
        instance.seq, instance.udp_in_row, instance.path_told = None, 0, ""
        watch.udp_at = watch.tcp_at = -NEVER
        watch.is_over_tcp = False

    def _rest(self, watch: Watch, clock: int) -> None:
        """It is away: sometimes it is asked, unless it said so itself, and one day it is forgotten (BEA-017)."""
        instance, reap_ns = watch.instance, self._context.settings.reap_ns
        instance.due_at = clock + reap_ns if reap_ns else NEVER
        instance.probe_at = 0 if instance.reason == LEFT else clock + _idle_ns(instance)

    # Signs of life

    def heard(self, instance: Instance, via: str, now: Now) -> bool:
        """It gave a sign of life by `udp` or `tcp`, or answered a `probe`: O(1). False: it does not count, it had left."""
        watch = self._watches.get(instance)
        if watch is None or (instance.state is State.INACTIVE and instance.reason == LEFT):
            return False
        clock = now.mono - self._stood_ns
        self._context.count("beats", via)
        if instance.state is not State.ACTIVE and not self._is_back(instance, via):
            return False
        instance.heard_at = now.mono
        instance.is_restored = False
        if via == UDP:
            self._heard_by_udp(watch, clock)
        else:
            self._heard_by_tcp(watch, via, clock)
        if via != PROBE:
            watch.note_beat(clock)
        instance.due_at = clock + _suspect_ns(instance)
        if min(instance.due_at, instance.probe_at or NEVER) < watch.armed_at:
            self._arm(watch)
        return True

    def _is_back(self, instance: Instance, via: str) -> bool:
        """It was missed, and is there, as it was before; False: somebody else has its name by now."""
        self._returning = instance
        self._registry.move(instance, On.PROBED if via == PROBE else On.BEAT)
        self._returning = None
        return instance.state is State.ACTIVE

    def _heard_by_udp(self, watch: Watch, clock: int) -> None:
        instance = watch.instance
        is_in_row = clock - watch.udp_at <= _suspect_ns(instance)
        instance.udp_in_row = instance.udp_in_row + 1 if is_in_row else 1
        watch.udp_at = clock
        instance.probe_at = 0
        if instance.path_told != TCP:
            instance.path_told = instance.via = UDP
        is_elsewhere = watch.is_over_tcp or instance.path_told == TCP
        if is_elsewhere and instance.udp_in_row >= limits.RETURN_BEATS:
            self._return_to_udp(watch)

    def _return_to_udp(self, watch: Watch) -> None:
        """Its beats come by UDP again: those over TCP may end (BEA-018)."""
        instance = watch.instance
        watch.is_over_tcp = False
        instance.udp_in_row = 0
        body = (instance.name.encode(), instance.id.encode(), b"udp")
        self._serving.push(instance, Message(HEARTBEAT, b"", body))
        if instance.path_told == TCP:
            self._tell_path(instance, UDP)
        instance.via = UDP

    def _heard_by_tcp(self, watch: Watch, via: str, clock: int) -> None:
        instance = watch.instance
        does_beat = clock - watch.udp_at <= _suspect_ns(instance)
        if not (does_beat and instance.path_told == UDP):
            instance.via = via
        if via == PROBE:
            instance.probe_at = 0 if does_beat else clock + instance.interval_ns
        else:
            instance.probe_at = 0
            is_in_row = clock - watch.tcp_at <= _suspect_ns(instance)  # one alone may be any other command
            watch.is_over_tcp |= is_in_row and not does_beat
            watch.tcp_at = clock
        if instance.path_told == UDP and clock - watch.udp_at >= self._liveness * instance.interval_ns:
            self._tell_path(instance, TCP)

    def _tell_path(self, instance: Instance, via: str) -> None:
        instance.path_told = via
        self._context.tell(PathChanged(instance.name, instance.id, via))

    # Datagrams

    def beats(self, beats: Beats, peer: bytes, now: Now) -> None:
        """A datagram came: at most one instance per line, of that address, is alive; nobody is registered by it (BEA-011)."""
        if beats.malformed:
            self._context.count("udp_malformed", by=beats.malformed)
        owner = peer.rpartition(b":")[0].decode("ascii", "replace")
        for line in beats.lines:
            reason = self._hear_line(line, owner, peer, now)
            if reason:
                self._context.count("dropped", reason)

    def _hear_line(self, line: Beat, owner: str, peer: bytes, now: Now) -> str:
        """Why it does not count; empty: it did."""
        if line.word not in (HEARTBEAT, DISCONNECT):
            return "udp-unexpected"
        instance = self._registry.of_beat(line.name, line.id, owner)
        if instance is None:
            return "udp-unknown"
        if line.seq is not None:
            if instance.seq is not None and line.seq <= instance.seq:
                return "udp-old"  # late or twice: nobody is raised from the dead by it
            instance.seq = line.seq
        if line.word == DISCONNECT:
            return self._hear_goodbye(instance, owner)
        if not self.heard(instance, UDP, now):
            self._registry.move(instance, On.AFTERWARDS)
            return "udp-left"
        if instance.record.get("beacon") is False:
            self._answer(instance, peer)
        return ""

    def _hear_goodbye(self, instance: Instance, owner: str) -> str:
        """On this machine nobody else says it; from elsewhere anybody may have (BEA-013)."""
        if not instance.is_live:
            return "udp-left"
        if owner.startswith("127.") or owner == "::1":
            self._registry.leave(instance)
        elif instance.state is State.ACTIVE:
            self._suspect(self._watches[instance], On.GOODBYE)
            self._arm(self._watches[instance])
        return ""

    def _answer(self, instance: Instance, peer: bytes) -> None:
        """It hears no beacon: its beats are answered, not too often (BEA-020)."""
        watch, clock = self._watches[instance], self._clock
        if clock - watch.answered_at >= instance.interval_ns:
            watch.answered_at = clock
            self._context.send(BEATS, peer, Beat(AWK, instance.name, self._context.wall))

    # Probes

    def probed(self, message: Message, peer: bytes, now: Now) -> None:
        """Who was asked at that address answers; whatever he says, he is there (BEA-016)."""
        for ping in self.probing.hear(message, peer):
            watch = self._watches.get(ping.instance)
            if watch is not None and self.heard(ping.instance, PROBE, now):
                watch.round_trip_ns = now.mono - self._stood_ns - ping.asked_at

    def _ask(self, watch: Watch, clock: int) -> None:
        instance = watch.instance
        instance.probes += 1
        body = (instance.name.encode(), instance.id.encode())
        if self._serving.push(instance, Message(HEARTBEAT, b"", body)):
            watch.is_over_tcp = True
        else:
            self.probing.ask(instance, clock)
        again = {State.ACTIVE: 0, State.SUSPECT: clock + instance.interval_ns}
        instance.probe_at = again.get(instance.state, clock + _idle_ns(instance))

    # Time

    def note_late(self, now: Now) -> None:
        """Said first in every turn: who is called later than he asked for has stood still, and with him all deadlines (BEA-022)."""
        due_at = self.deadline()
        if due_at is not None and now.mono - due_at > self._context.settings.pause_ns:
            late_ns = now.mono - due_at
            self._stood_ns += late_ns
            self._context.count("pauses")
            self._context.tell(Paused(late_ns))

    def wake(self, now: Now) -> None:
        clock, heap = now.mono - self._stood_ns, self._heap
        self.probing.wake(clock)  # first: who did not answer can be asked again
        for _ in range(TURN_MAX):  # the others are due at once, in the next turn
            if not heap or heap[0][0] > clock or self._registry.is_busy:
                break
            at, _, watch = heapq.heappop(heap)
            if watch.armed_at == at:
                watch.armed_at = NEVER
                self._look(watch, clock)
        for instance in () if self._registry.is_busy else self.holding.released(clock):
            self._give_up(instance)

    def deadline(self) -> int | None:
        """When the next silence, probe, reaping or eviction is due."""
        due_at = self._heap[0][0] if self._heap else NEVER
        for other in (self.probing.due_at, self.holding.due_at):
            if other is not None and other < due_at:
                due_at = other
        return None if due_at == NEVER else max(due_at + self._stood_ns, self._registry.free_at)

    def _look(self, watch: Watch, clock: int) -> None:
        """Its timer is due, or was set too early."""
        instance = watch.instance
        if instance.due_at <= clock:
            DUE[instance.state](self, watch)
        elif watch.critical_at <= clock - self._context.settings.reap_critical_ns:
            self._registry.remove(instance, "critical")
        if self._watches.get(instance) is not watch:
            return
        if instance.probe_at and instance.probe_at <= clock:
            self._ask(watch, clock)
        self._arm(watch)

    def _miss(self, watch: Watch) -> None:
        self._suspect(watch, On.SILENT)

    def _suspect(self, watch: Watch, on: On) -> None:
        """It is asked from now on, and has until L intervals after its last sign of life."""
        instance = watch.instance
        self._registry.move(instance, on)
        instance.due_at += self._liveness * instance.interval_ns - _suspect_ns(instance)
        instance.probe_at = self._clock

    def _overdue(self, watch: Watch) -> None:
        instance = watch.instance
        if self.holding.lets_go(instance, self._clock):
            self._give_up(instance)
        else:
            instance.due_at = NEVER

    def _give_up(self, instance: Instance) -> None:
        self._registry.move(instance, On.OVERDUE, "silent")

    def _reap(self, watch: Watch) -> None:
        self._registry.remove(watch.instance, "reaped")

    def _arm(self, watch: Watch) -> None:
        """Set its timer, if it has none that is early enough."""
        instance = watch.instance
        at = min(instance.due_at, instance.probe_at or NEVER)
        if watch.critical_at != NEVER:
            at = min(at, watch.critical_at + self._context.settings.reap_critical_ns)
        if at >= watch.armed_at:
            return
        watch.armed_at = at
        self._serial += 1
        heapq.heappush(self._heap, (at, self._serial, watch))
        if len(self._heap) > 2 * len(self._watches) + STALE_MIN:
            self._heap[:] = [timer for timer in self._heap if timer[2].armed_at == timer[0]]
            heapq.heapify(self._heap)

    # Health

    def _note_health(self, change: Change) -> None:
        watch = self._watches.get(change.instance)
        if watch is not None:
            self._judge_health(watch, self._clock)
            self._arm(watch)

    def _judge_health(self, watch: Watch, clock: int) -> None:
        is_critical = watch.instance.health == "critical"
        watch.critical_at = min(watch.critical_at, clock) if is_critical else NEVER

    # Shown

    def shown(self, instance: Instance, now: Now) -> dict[str, Any]:
        """What `dbp.liveness` says of an instance (MON-008)."""
        watch = self._watches.get(instance)
        shown = {
            "state": instance.state.name.lower(),
            "via": UDP if instance.via == UDP else TCP,
            "is_probed": instance.via == PROBE,
            "age_ms": (now.mono - instance.heard_at) // MILLISECOND,
            "interval_ms": instance.interval_ns // MILLISECOND,
            "probes": instance.probes,
            "restored": instance.is_restored,
        }
        if watch is None:
            return shown
        clock = now.mono - self._stood_ns
        return shown | {
            "beats_expected": (clock - watch.began_at) // max(instance.interval_ns, 1),
            "beats_received": watch.beats,
            "jitter_ms": {"p50": _share_ms(watch.jitter, 50), "p99": _share_ms(watch.jitter, 99)},
            "probe_ms": watch.round_trip_ns / MILLISECOND if watch.round_trip_ns else None,
        }


DUE: Final[dict[State, Callable[[Liveness, Watch], None]]] = {
    State.ACTIVE: Liveness._miss,
    State.SUSPECT: Liveness._overdue,
    State.INACTIVE: Liveness._reap,
}
"""What it means that nothing was heard of an instance for as long as it may be silent."""


def _suspect_ns(instance: Instance) -> int:
    return instance.interval_ns * 3 // 2


def _idle_ns(instance: Instance) -> int:
    """Between two questions to one that is INACTIVE."""
    return min(10 * instance.interval_ns, limits.PROBE_IDLE_NS)


def _share_ms(buckets: list[int], percent: int) -> int | None:
    """What so many percent of the deviations are at most, in ms; None: there are none yet."""
    wanted, seen = sum(buckets) * percent / 100, 0
    for number, count in enumerate(buckets):
        seen += count
        if count and seen >= wanted:
            return (1 << number) - 1
    return None
