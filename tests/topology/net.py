"""A fleet of topology cores in memory: virtual time, delays, loss, cuts, crashes; and a stand-in of the store.

The stand-in answers `RecordsWanted`, hands its pairs to those who follow it, beats, and says when a parent is silent.
What leaves a node behind a `Persist` leaves when that is durable; a crash in between loses both.
"""

import heapq
import json
from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from tests.weather import Frames
from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Effect, Persist, Reply, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import CoreRecord, Entry
from weft.cores.topology.core import Topology
from weft.cores.topology.memory import Promised, from_record
from weft.cores.topology.messages import (
    Announcement,
    Answer,
    Asked,
    Control,
    LearnPairs,
    ParentIs,
    PlaceAssigned,
    PlaceLost,
    RecordsWanted,
    RecordWritten,
    RootLeft,
    RootTaken,
    TopologySettings,
)
from weft.wire import discovery
from weft.wire.replication import NO_QUORUM, counter_of, epoch_of, number_of, refusal

SYNC_NS = 1 * MILLISECOND
FRESH_NS = 50 * MILLISECOND
"""So long after its connection a PUB still loses what it says."""
FOREVER = 1 << 62


class Posted(msgspec.Struct, frozen=True):
    """A message of a core that is under way: what happens when it arrives."""

    arrive: Callable[[], None]

    def __call__(self) -> None:
        self.arrive()


class Machine:
    """One node: its core, its disk, and the stand-in of its configuration core."""

    def __init__(self, net: "Net", name: str, endpoint: str, **settings: Any) -> None:
        self.net, self.name, self.endpoint, self.settings = net, name, endpoint, settings
        self.disk: list[Entry] = []
        self.kept: dict[str, bytes] = {}
        self.kept_number = 0
        self.starts = 0
        self.lives = 0
        self.node = self._fresh_node()
        self.up = False
        self.told: list[tuple[int, Any]] = []
        self.replies: list[Any] = []

    def _fresh_node(self) -> bytes:
        self.lives += 1
        return f"{self.name}.{self.lives}".encode().ljust(16, b".")

    # Life

    def start(self) -> None:
        net = self.net
        self.starts += 1
        self.up = True
        host, _, port = self.endpoint.rpartition(":")
        settings = TopologySettings(
            fleet="lab",
            name=self.name,
            base_port=int(port),
            host=host,
            beacons=False,
            heartbeat_ns=net.beat_ns,
            dead_after=net.dead_after,
            **{"level": "auto", **self.settings},
        )
        self.core = Topology(settings, self.node, self.starts, Chance(f"{net.seed}/{self.name}/{self.starts}"))
        self.core.restore(self.disk, net.now)
        self.pairs, self.number = dict(self.kept), self.kept_number
        self.epoch = epoch_of(self.number)
        self.connected: dict[str, int] = {}
        self.following, self.is_root, self.is_acting = "", False, False
        self.heard_at, self.parent_is = net.mono, "heard"
        self.wake_at: int | None = None
        self.place: PlaceAssigned | None = None
        if self.pairs:
            self.core.command(LearnPairs(tuple(sorted(self.pairs.items())), self.number, self.digest), net.now)
        self.turn()
        net.later(net.beat_ns, self.alive(self.beat))

    def crash(self, *, disk_lost: bool = False) -> None:
        self.up = False
        self.starts += 1  # whatever is under way was for the one before
        if disk_lost:
            self.disk, self.kept, self.kept_number = [], {}, 0
            self.node = self._fresh_node()

    def restart(self) -> None:
        """Become what the journal says now, as a node does whose role has changed."""
        self.crash()
        self.net.later(self.net.restart_ns, lambda: None if self.up else self.start())

    def alive(self, action: Callable[[], None]) -> Callable[[], None]:
        """The action, unless this start of the node is over by then."""
        start = self.starts

        def act() -> None:
            if self.up and self.starts == start:
                action()

        return act

    # Turns

    def turn(self) -> None:
        self.perform(self.core.effects())
        due = self.core.deadline()
        if due is not None and (self.wake_at is None or due < self.wake_at or self.wake_at <= self.net.mono):
            self.wake_at = max(due, self.net.mono)
            self.net.at(self.wake_at, self.alive(self.wake))

    def wake(self) -> None:
        due = self.core.deadline()
        if due is not None and due <= self.net.mono:
            self.core.wake(self.net.now)
        self.wake_at = None
        self.turn()

    def hear(self, message: Any, source: Source) -> None:
        try:
            self.core.receive(message, source, self.net.now)
        except PeerError as error:
            self.net.refused.append((self.name, error.code))
        self.turn()

    def order(self, order: Any) -> None:
        self.core.command(order, self.net.now)
        self.turn()

    def perform(self, effects: list[Effect]) -> None:
        wall = next((i for i, effect in enumerate(effects) if isinstance(effect, Persist)), None)
        if wall is None:
            for effect in effects:
                self.carry_out(effect)
            return
        for effect in effects[:wall]:
            self.carry_out(effect)
        self.net.later(SYNC_NS, self.alive(lambda: self.behind_the_wall(effects[wall:])))

    def behind_the_wall(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self.disk += [(len(self.disk) + 1 + i, record) for i, record in enumerate(effect.records)]
        start = self.starts
        for effect in effects:
            if self.starts == start:
                self.carry_out(effect)

    def carry_out(self, effect: Effect) -> None:
        net = self.net
        match effect:
            case Connect(channel="announce"):
                host, _, port = effect.endpoint.rpartition(":")
                self.connected.setdefault(f"{host}:{port}", net.mono)
            case Disconnect():
                self.connected.clear()
            case Send(channel="announce"):
                for endpoint, since in list(self.connected.items()):
                    if net.mono - since >= FRESH_NS:
                        net.announce(self, endpoint, effect.message)
            case Send(channel="call"):
                net.check_said(self, effect.message)
                net.call(self, effect.peer.decode(), effect.message)
            case Send(channel="control"):
                net.answer(self, effect.peer, effect.message)
            case Tell():
                self.told.append((net.mono, effect.event))
                self.note(effect.event)
            case Reply():
                self.replies.append(effect.answer)
            case _:
                pass

    # The stand-in

    def note(self, event: Any) -> None:
        net = self.net
        match event:
            case RecordsWanted():
                net.check_wanted(self, event)
                net.later(net.write_ns, self.alive(lambda: self.write(event)))
            case RootTaken():
                net.check_taken(self, event)
                if net.restart_ns and event.votes > 1 and not event.is_acting:
                    self.restart()
                    return
                self.following, self.is_root, self.is_acting = "", not event.is_acting, event.is_acting
                self.epoch = event.epoch
                if not event.is_acting and net.configuration and not self.pairs:
                    self.apply(dict(net.configuration), len(net.configuration))
            case RootLeft():
                self.is_root = self.is_acting = False
            case PlaceAssigned():
                self.place = event
                if event.parent != self.following:
                    self.following, self.heard_at, self.parent_is = event.parent, net.mono, "heard"
                    net.later(net.dead_ns // 2, self.alive(self.watch))
                    self.ask_snapshot()
            case PlaceLost():
                self.following, self.place = "", None
            case _:
                pass

    def write(self, wanted: RecordsWanted) -> None:
        if not self.is_root:
            self.order(RecordWritten(wanted.ticket, NO_QUORUM))
            return
        counter = counter_of(self.number)
        changed: dict[str, bytes] = {}
        for key, value in wanted.writes:
            if self.pairs.get(key, b"") != value:
                counter += 1
                changed[key] = value
        self.net.writes += len(changed)
        if changed:
            self.apply(changed, number_of(self.epoch, counter))
        self.order(RecordWritten(wanted.ticket))

    def apply(self, changed: dict[str, bytes], number: int) -> None:
        for key, value in changed.items():
            if value:
                self.pairs[key] = value
            else:
                self.pairs.pop(key, None)
        self.number = number
        self.kept, self.kept_number = dict(self.pairs), number
        self.order(
            LearnPairs(tuple((key, value or None) for key, value in sorted(changed.items())), number, self.digest)
        )
        for child in self.net.followers(self):
            self.net.carry(self, child, child.alive(self.snapshot_for(child)))

    @property
    def digest(self) -> bytes:
        """Of all pairs, where digests are shown."""
        return sha256(repr(sorted(self.pairs.items())).encode()).digest()[:16] if self.net.has_digests else b""

    def ask_snapshot(self) -> None:
        parent = self.net.machines.get(self.following)
        if parent is None:
            return
        child, asked = self, self.following

        def ask() -> None:
            if child.following == asked and parent.up:
                self.net.carry(parent, child, child.alive(parent.snapshot_for(child)))

        self.net.carry(self, parent, parent.alive(ask))
        self.net.later(self.net.beat_ns, self.alive(lambda: self.ask_again(asked)))

    def ask_again(self, asked: str) -> None:
        parent = self.net.machines.get(asked)
        if self.following == asked and parent is not None and parent.up and parent.number != self.number:
            self.ask_snapshot()

    def snapshot_for(self, child: "Machine") -> Callable[[], None]:
        """What the child takes over; a lower epoch than it has seen is refused (CFG-044)."""
        pairs, number, sender = dict(self.pairs), self.number, self.endpoint
        is_led = self.serves

        def adopt() -> None:
            if child.following != sender or not is_led or epoch_of(number) < epoch_of(child.number):
                return
            changed = {key: b"" for key in child.pairs if key not in pairs}
            changed.update((key, value) for key, value in pairs.items() if child.pairs.get(key) != value)
            if changed or number != child.number:
                child.apply(changed, number)

        return adopt

    def beat(self) -> None:
        self.net.later(self.net.beat_ns, self.alive(self.beat))
        if self.following and self.net.mono - self.heard_at > 3 * self.net.dead_ns:
            return  # CFG-045
        if self.serves:
            for child in self.net.followers(self):
                self.net.carry(self, child, child.alive(child.heard_from(self)))

    @property
    def serves(self) -> bool:
        """Whether others may follow this node: it leads, or is a collector."""
        is_collector = self.following != "" and self.place is not None and self.place.level == "collector"
        return self.is_root or self.is_acting or is_collector

    def heard_from(self, parent: "Machine") -> Callable[[], None]:
        def heard() -> None:
            if self.following != parent.endpoint:
                return
            self.heard_at = self.net.mono
            if parent.number != self.number:
                self.ask_snapshot()
            if self.parent_is != "heard":
                self.parent_is = "heard"
                self.order(ParentIs("heard"))

        return heard

    def watch(self) -> None:
        """Quiet after D/2, silent after D and every D."""
        if not self.following:
            return
        silence, dead = self.net.mono - self.heard_at, self.net.dead_ns
        if silence < dead // 2:
            self.net.later(dead // 2 - silence, self.alive(self.watch))
        elif silence < dead:
            self.net.later(dead - silence, self.alive(self.watch))
            if self.parent_is == "heard":
                self.parent_is = "quiet"
                self.order(ParentIs("quiet"))
        else:
            self.net.later(dead, self.alive(self.watch))
            self.parent_is = "silent"
            self.order(ParentIs("silent"))

    @property
    def events(self) -> list[Any]:
        return [event for _, event in self.told]

    @property
    def tree(self) -> dict[str, dict[str, Any]]:
        """Node records by name."""
        found = [json.loads(value) for key, value in self.pairs.items() if "/node/" in key]
        return {record["name"]: record for record in found}


class Net:
    """All machines, and what is between them."""

    def __init__(self, seed: str, *, beat_ns: int = SECOND, loss: float = 0.0, delay_ns: int = 2 * MILLISECOND) -> None:
        self.seed, self.random = seed, Random(seed)
        self.beat_ns, self.dead_after, self.loss, self.delay_ns = beat_ns, 5, loss, delay_ns
        self.dead_ns = self.dead_after * beat_ns
        self.restart_ns = 0
        """How long an elected root takes to start again in its new role; 0: it need not."""
        self.wired = True
        """Whether messages travel as frames."""
        self.weather: Callable[[Frames], Frames] = lambda frames: frames
        """What the cables make of a message."""
        self.altered: list[tuple[Any, Any]] = []
        """What was said, and what was heard instead."""
        self.has_digests = False
        """Whether nodes show the digest of what they hold (FLD-003)."""
        self.write_ns = 3 * MILLISECOND
        self.mono, self.writes = 0, 0
        self.machines: dict[str, Machine] = {}
        self.configuration: dict[str, bytes] = {}
        self.cuts: dict[tuple[str, str], None] = {}
        self.refused: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.roots: dict[int, bytes] = {}
        self.said: list[tuple[int, str, str, Any]] = []
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._tokens: dict[bytes, tuple[Machine, int]] = {}
        self._count = 0

    @property
    def now(self) -> Now:
        return Now(self.mono, 1_795_000_000 * SECOND + self.mono)

    def configure(self, **groups: dict[str, Any]) -> None:
        for group, settings in groups.items():
            for name, value in settings.items():
                self.configuration[f"/CONFIG/{group}/{name}"] = json.dumps(value).encode()

    def add(self, name: str, endpoint: str, **settings: Any) -> Machine:
        self.machines[endpoint] = Machine(self, name, endpoint, **settings)
        return self.machines[endpoint]

    def __getitem__(self, name: str) -> Machine:
        return next(machine for machine in self.machines.values() if machine.name == name)

    # Time

    def at(self, when: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (when, self._count, action))

    def later(self, span: int, action: Callable[[], None]) -> None:
        self.at(self.mono + span, action)

    def run(self, seconds: float) -> None:
        until = self.mono + round(seconds * SECOND)
        while self._queue and self._queue[0][0] <= until:
            self.mono, _, action = heapq.heappop(self._queue)
            action()
        self.mono = until

    def run_until(self, is_so: Callable[[], bool], seconds: float) -> float | None:
        """Seconds until it is so; None: it is not within that time."""
        begin = self.mono
        while not is_so():
            if not self._queue or self._queue[0][0] > begin + round(seconds * SECOND):
                return None
            self.mono, _, action = heapq.heappop(self._queue)
            action()
        return (self.mono - begin) / SECOND

    # Between machines

    def cut(self, one: list[str], other: list[str]) -> None:
        for a in one:
            for b in other:
                self.cuts[a, b] = self.cuts[b, a] = None

    def heal(self) -> None:
        self.cuts.clear()

    def is_open(self, a: Machine, b: Machine) -> bool:
        return (a.name, b.name) not in self.cuts

    def carry(self, a: Machine, b: Machine, action: Callable[[], None], *, loss: float = 0.0) -> None:
        if self.is_open(a, b) and self.random.random() >= loss:
            self.later(self.random.randrange(self.delay_ns // 10, self.delay_ns), action)

    def post(self, a: Machine, b: Machine, action: Callable[[], None]) -> None:
        """A message of the core itself is under way."""
        self.carry(a, b, Posted(action), loss=self.loss)

    def followers(self, machine: Machine) -> list[Machine]:
        return [other for other in self.machines.values() if other.up and other.following == machine.endpoint]

    def announce(self, sender: Machine, endpoint: str, message: Announcement) -> None:
        other = self.machines.get(endpoint)
        if other is not None and other.up:
            heard = self._read(other, message, discovery.seal_announcement, discovery.decode_announcement)
            if heard is not None:
                self.post(sender, other, other.alive(lambda: other.hear(heard, Source("announced", b""))))

    def call(self, sender: Machine, endpoint: str, message: Any) -> None:
        other = self.machines.get(endpoint)
        if other is None or not other.up:
            return
        self._count += 1
        token = b"\x00%d" % self._count
        asked = self._read(other, message, discovery.seal_call, discovery.decode_control)
        self._tokens[token] = sender, sender.starts
        if asked is None:
            self.answer(other, token, Answer((b"",), refusal(PeerError(*self.refused[-1]))))
        else:
            heard = asked if self.wired else Asked((b"",), message)
            self.post(sender, other, other.alive(lambda: other.hear(heard, Source("control", token))))

    def answer(self, sender: Machine, token: bytes, answer: Answer) -> None:
        asker, start = self._tokens[token]
        if asker.up and asker.starts == start:
            said = self._read(asker, answer, discovery.seal_control_answer, discovery.decode_called)
            heard = said if self.wired else answer.message
            if heard is not None:
                source = Source("call", sender.endpoint.encode())
                self.post(sender, asker, asker.alive(lambda: asker.hear(heard, source)))

    def _read(
        self, hearer: Machine, message: Any, seal: Callable[[Any], Frames], decode: Callable[[Frames], Any]
    ) -> Any:
        """What arrives of a message; None: it was refused."""
        if not self.wired:
            return message
        frames = seal(message)
        try:
            heard = decode(self.weather(list(frames)))
        except PeerError as error:
            self.refused.append((hearer.name, error.code))
            return None
        if heard != (said := decode(frames)):
            self.altered.append((said, heard))
        return heard

    # What may never be

    def check_said(self, machine: Machine, message: Any) -> None:
        if not isinstance(message, Control):
            return
        self.said.append((self.mono, machine.name, message.command, message.properties))
        if message.command == "aye":
            kept = [from_record(r) for _, r in machine.disk if isinstance(r, CoreRecord)]
            promises = [promise.epoch for promise in kept if isinstance(promise, Promised)]
            if message.properties["propose"] not in promises:
                self.wrong.append(f"{machine.name} said aye for {message.properties['propose']} before it was durable")

    def check_wanted(self, machine: Machine, wanted: RecordsWanted) -> None:
        if machine.core.context.is_acting:
            self.wrong.append(f"{machine.name} writes while it acts")
        for key, value in wanted.writes:
            if len(key) + len(value) > 400:
                self.wrong.append(f"{machine.name} writes {len(key) + len(value)} bytes")
            if "/node/" in key and value and not is_plain_record(json.loads(value)):
                self.wrong.append(f"{machine.name} writes more than one node: {value!r}")

    def check_taken(self, machine: Machine, taken: RootTaken) -> None:
        if taken.is_acting:
            return
        if self.roots.setdefault(taken.epoch, machine.node) != machine.node:
            self.wrong.append(f"two roots of epoch {taken.epoch}")
        if taken.votes > 1:
            self.check_holds(machine, taken)

    def check_holds(self, machine: Machine, taken: RootTaken) -> None:
        """What a majority of the voters has, the winner has (REC-012)."""
        records = {key.rpartition("/")[2]: json.loads(v) for key, v in machine.pairs.items() if "/node/" in key}
        votes = [node for node, record in records.items() if (record["level"], record["tier"]) == ("branch", 1)]
        votes.append(json.loads(machine.pairs["/TOPO/root"])["uuid"])
        voters = [m for m in self.machines.values() if m.node.hex() in votes]
        numbers = sorted((m.kept_number for m in voters), reverse=True)
        if voters and len(voters) == taken.voters and machine.number < numbers[len(voters) // 2]:
            self.wrong.append(f"{machine.name} won with {machine.number}, a majority has {numbers[len(voters) // 2]}")

    # What shall be

    @property
    def root(self) -> Machine | None:
        roots = [machine for machine in self.machines.values() if machine.up and machine.is_root]
        return roots[0] if len(roots) == 1 else None

    def is_settled(self) -> bool:
        """One root, nobody acting, everybody else has a parent that lives, and knows the root's epoch."""
        root = self.root
        if root is None or any(m.up and m.is_acting for m in self.machines.values()):
            return False
        return all(self.is_home(machine, root) for machine in self.machines.values() if machine.up)

    def is_home(self, machine: Machine, root: Machine) -> bool:
        if machine is root:
            return True
        parent = self.machines.get(machine.following)
        if parent is None or not parent.up or machine.place is None or machine.place.epoch != root.epoch:
            return False
        return parent is root or (parent.place is not None and parent.place.level == "collector")

    def unsettled(self) -> list[str]:
        """Why not, in words."""
        return [
            f"{m.name} up={m.up} root={m.is_root} acting={m.is_acting} role={m.core.role.name} "
            f"standing={m.core.standing.name} following={m.following} place={m.place} parent_is={m.parent_is}"
            for m in self.machines.values()
        ]


def is_plain_record(record: dict[str, Any]) -> bool:
    return {*record} <= RECORD and not any(isinstance(value, dict | list) for value in record.values())


RECORD = {"endpoint", "level", "tier", "parent", "incarnation", "name"}
