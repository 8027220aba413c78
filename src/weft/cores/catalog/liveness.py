"""Decides which instances are alive: beats, silence, and their consequences (BEA-010 to BEA-023).

An instance has at most one timer in the heap, and a beat does not change it: a beat only notes until when silence is
allowed. A timer that finds that this instant has moved is set again. Costs: O(1) per beat, O(log n) per silence.

All instants here, except `Instance.heard_at`, are of a clock that stopped while the broker stood still, so a pause of
an hour is one addition (BEA-022). Times that other nodes report decide nothing (CAT-012).
"""

import heapq
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

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
JITTER_BUCKETS: Final = 16  # powers of two of a millisecond, up to half a minute
STALE_MIN: Final = 64  # stale timers, before it is worth removing them
TURN_MAX: Final = 512  # timers in one turn: if each evicts, that takes 30 ms (CAT-081)


class Registrar(Protocol):
    """The part of `registry.Registry` that liveness needs: the only place that changes an instance's state."""

    @property
    def is_busy(self) -> bool:
        """Whether this turn has made enough changes."""

    @property
    def free_at(self) -> int:
        """When waiting changes may go on, monotonic ns; 0: nothing waits."""

    def move(self, instance: Instance, on: On, reason: str = "") -> None:
        """An input for an instance: do what the table says."""

    def leave(self, instance: Instance, reason: str = ...) -> None:
        """It sent a goodbye that can be trusted."""

    def remove(self, instance: Instance, reason: str) -> None:
        """Remove it from the catalog."""

    def of_beat(self, name: str, instance_id: str | None, asker_owner: str) -> Instance | None:
        """The one instance that a beat of this owner means."""


class Pusher(Protocol):
    """The part of `serving.Serving` that liveness needs: messages to the DEALER that an instance is bound to."""

    def push(self, instance: Instance, message: Message) -> bool:
        """Send a message. False: it is bound to no DEALER, or that is closed.

        If `message` has no time, it gets one in the peer's format.
        """


class Watch(msgspec.Struct, eq=False, gc=False):
    """The liveness of one instance, besides the fields of the instance itself; as there, nothing leads back to it."""

    instance: Instance
    began_at: int
    last_at: int
    armed_at: int = NEVER
    """Instant of its only valid timer; other timers in the heap are stale."""
    critical_at: int = NEVER
    """Since when its health has been critical, if that matters."""
    udp_at: int = -NEVER
    """Instant of its last beat by UDP."""
    tcp_at: int = -NEVER
    """Instant of its last command or beat over a connection."""
    answered_at: int = -NEVER
    """When one of its UDP beats was last answered."""
    is_over_tcp: bool = False
    """It was asked over its connection, or beats over it; when UDP works again it is told."""
    beats: int = 0
    jitter: dict[int, int] = {}
    """Beats by how far they were off (MON-008); by bucket, of twice the width each."""
    round_trip_ns: int = 0

    def note_beat(self, clock: int) -> None:
        """Note how regularly it beats (MON-008)."""
        off = abs(clock - self.last_at - self.instance.interval_ns) // MILLISECOND
        bucket = min(off.bit_length(), JITTER_BUCKETS - 1)
        self.jitter[bucket] = self.jitter.get(bucket, 0) + 1
        self.last_at = clock
        self.beats += 1


class Timer(msgspec.Struct, order=True, gc=False):
    """When to look at an instance; no two have one serial number."""

    at: int
    serial: int
    watch: Watch


class Liveness:
    """The timers of all instances."""

    def __init__(self, context: Context, book: Book, registry: Registrar, serving: Pusher) -> None:
        self._context, self._registry, self._serving = context, registry, serving
        self._book = book
        self.probing = Probing(context)
        self.holding = Holding(context, book)
        self._liveness = context.settings.liveness
        self._stood_ns = 0
        """Total time that the broker stood still."""
        self._watches: dict[Instance, Watch] = {}
        self._heap: list[Timer] = []
        self._serial = 0
        self._returning: Instance | None = None
        """The instance that `move` is just bringing back; it is the same process as before."""
        if context.settings.reap_critical_ns:
            context.listeners.append(self._note_health)

    @property
    def is_held(self) -> bool:
        """Whether evictions are held (BEA-023)."""
        return self.holding.state == HELD

    @property
    def _clock(self) -> int:
        return self._context.now.mono - self._stood_ns

    # Calls of the registry

    def began(self, instance: Instance) -> None:
        """It was registered, registered again, came back, or was restored (`is_restored`): start its silence timer."""
        clock = self._clock
        watch = self._watches.get(instance)
        if watch is None:
            watch = self._watches[instance] = Watch(instance, began_at=clock, last_at=clock)
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
        """Start its silence timer; a restored instance gets more time (CAT-051)."""
        instance = watch.instance
        self.holding.forget(instance)
        self.holding.look(clock)
        whole = self._liveness * instance.interval_ns
        more = max(0, limits.RESTORED_NS - whole) if instance.is_restored else 0
        is_suspect = instance.state is State.SUSPECT
        instance.due_at = clock + more + (whole if is_suspect else _suspect_ns(instance))
        instance.probe_at = clock if is_suspect else 0

    def _forget_path(self, watch: Watch) -> None:
        """A registration may come from a new process: its sequence starts again, and its path is unknown."""
        instance = watch.instance
        instance.seq, instance.udp_in_row, instance.path_told = None, 0, ""
        watch.udp_at = watch.tcp_at = -NEVER
        watch.is_over_tcp = False

    def _rest(self, watch: Watch, clock: int) -> None:
        """It is INACTIVE: probe it now and then, unless it said goodbye; forget it after `reap_ns` (BEA-017)."""
        instance, reap_ns = watch.instance, self._context.settings.reap_ns
        instance.due_at = clock + reap_ns if reap_ns else NEVER
        instance.probe_at = 0 if instance.reason == LEFT else clock + _idle_ns(instance)

    # Signs of life

    def heard(self, instance: Instance, via: str, now: Now) -> bool:
        """A sign of life came by `udp` or `tcp`, or it answered a `probe`. O(1).

        False: ignored, since it had said goodbye.
        """
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
        """It was silent and is back. False: another instance has its name by now."""
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
        """Its beats come by UDP again, so it may stop those over TCP (BEA-018)."""
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
            is_in_row = clock - watch.tcp_at <= _suspect_ns(instance)  # a single one may be any other command
            watch.is_over_tcp |= is_in_row and not does_beat
            watch.tcp_at = clock
        if instance.path_told == UDP and clock - watch.udp_at >= self._liveness * instance.interval_ns:
            self._tell_path(instance, TCP)

    def _tell_path(self, instance: Instance, via: str) -> None:
        instance.path_told = via
        self._context.tell(PathChanged(instance.name, instance.id, via))

    # Datagrams

    def beats(self, beats: Beats, peer: bytes, now: Now) -> None:
        """A datagram with beats came.

        Each line counts for at most one instance, of that address; it registers none (BEA-011).
        """
        if beats.malformed:
            self._context.count("udp_malformed", by=beats.malformed)
        owner = peer.rpartition(b":")[0].decode("ascii", "replace")
        for line in beats.lines:
            reason = self._hear_line(line, owner, peer, now)
            if reason:
                self._context.count("dropped", reason)

    def _hear_line(self, line: Beat, owner: str, peer: bytes, now: Now) -> str:
        """Process one line. Returns why it does not count; empty: it counted."""
        if line.word not in (HEARTBEAT, DISCONNECT):
            return "udp-unexpected"
        instance = self._registry.of_beat(line.name, line.id, owner)
        if instance is None:
            return "udp-unknown"
        if line.seq is not None:
            if instance.seq is not None and line.seq <= instance.seq:
                return "udp-old"  # old or repeated: it brings no instance back
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
        """On this machine only the owner can send a goodbye; from elsewhere anybody could have (BEA-013)."""
        if not instance.is_live:
            return "udp-left"
        if owner.startswith("127.") or owner == "::1":
            self._registry.leave(instance)
        elif instance.state is State.ACTIVE:
            self._suspect(self._watches[instance], On.GOODBYE)
            self._arm(self._watches[instance])
        return ""

    def _answer(self, instance: Instance, peer: bytes) -> None:
        """It receives no beacon: answer its beats, but not too often (BEA-020)."""
        watch, clock = self._watches[instance], self._clock
        if clock - watch.answered_at >= instance.interval_ns:
            watch.answered_at = clock
            self._context.send(BEATS, peer, Beat(AWK, instance.name, self._context.wall))

    # Probes

    def probed(self, message: Message, peer: bytes, now: Now) -> None:
        """A probed address answered: whatever the answer is, the instance is alive (BEA-016)."""
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
        """Called first in every turn: a turn later than its deadline shows that the process stood still.

        All deadlines move by that time (BEA-022).
        """
        due_at = self.deadline()
        if due_at is not None and now.mono - due_at > self._context.settings.pause_ns:
            late_ns = now.mono - due_at
            self._stood_ns += late_ns
            self._context.count("pauses")
            self._context.tell(Paused(late_ns))

    def wake(self, now: Now) -> None:
        clock, heap = now.mono - self._stood_ns, self._heap
        self.probing.wake(clock)  # first: an instance that did not answer may then be asked again
        for _ in range(TURN_MAX):  # further timers stay due, for the next turn
            if not heap or heap[0].at > clock or self._registry.is_busy:
                break
            timer = heapq.heappop(heap)
            watch = timer.watch
            if watch.armed_at == timer.at:
                watch.armed_at = NEVER
                self._look(watch, clock)
        for instance in () if self._registry.is_busy else self.holding.released(clock):
            self._give_up(instance)

    def deadline(self) -> int | None:
        """When the next silence, probe, reaping or eviction is due."""
        due_at = self._heap[0].at if self._heap else NEVER
        for other in (self.probing.due_at, self.holding.due_at):
            if other is not None and other < due_at:
                due_at = other
        return None if due_at == NEVER else max(due_at + self._stood_ns, self._registry.free_at)

    def _look(self, watch: Watch, clock: int) -> None:
        """Its timer is due, or was set too early: do what is due and set it again."""
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
        """Make it SUSPECT: it is probed, and has until L intervals after its last sign of life."""
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
        """Set its timer, unless it has one that is early enough."""
        instance = watch.instance
        at = min(instance.due_at, instance.probe_at or NEVER)
        if watch.critical_at != NEVER:
            at = min(at, watch.critical_at + self._context.settings.reap_critical_ns)
        if at >= watch.armed_at:
            return
        watch.armed_at = at
        self._serial += 1
        heapq.heappush(self._heap, Timer(at, self._serial, watch))
        if len(self._heap) > 2 * len(self._watches) + STALE_MIN:
            self._heap[:] = [timer for timer in self._heap if timer.watch.armed_at == timer.at]
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
        """The answer of `dbp.liveness` for an instance (MON-008)."""
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
"""What follows when an instance was silent until `due_at`, by state."""


def _suspect_ns(instance: Instance) -> int:
    return instance.interval_ns * 3 // 2


def _idle_ns(instance: Instance) -> int:
    """Time between two probes of an INACTIVE instance."""
    return min(10 * instance.interval_ns, limits.PROBE_IDLE_NS)


def _share_ms(buckets: dict[int, int], percent: int) -> int | None:
    """The jitter in ms that `percent` of the beats do not exceed; None: no beats yet."""
    wanted, seen = sum(buckets.values()) * percent / 100, 0
    for number, count in sorted(buckets.items()):
        seen += count
        if seen >= wanted:
            return (1 << number) - 1
    return None
