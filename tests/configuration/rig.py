"""Nodes that hold one configuration core each, joined by bytes, in virtual time.

A node keeps what its core persists and restores it after a crash. A subscription hears what is published from when it
stands, in order, unless lost. A DEALER and its ROUTER are joined as long as both live; a full queue refuses, a break loses all that is under way. Every pair
that users are told must be as the root had it: each chain as after the number that this node has of it.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import msgspec

from weft.base.chance import Chance
from weft.base.effects import (
    Confirm,
    Confirmed,
    Connect,
    Disconnect,
    Effect,
    Persist,
    Reply,
    Send,
    SendFailed,
    Source,
    Tell,
)
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.paths import is_under
from weft.base.records import Entry, Stream, StreamRecord
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import (
    ConfigurationApplied,
    ConfigurationSettings,
    ConfigurationWiped,
    FollowParent,
    NoteApplied,
    PairsChanged,
    ReplicaResynced,
    TakeRoot,
    Write,
    WriteKeys,
    WriteLost,
)
from weft.cores.configuration.states import State
from weft.wire import replication as codec
from weft.wire.replication import chain_of

WALL = 1_795_000_000 * SECOND
SENSOR_TOPICS = ("/TOPO/root", "/CONFIG/global/", "/CONFIG/web/")
FULL = ("/",)
STEPS_MAX = 400_000
PACKING = frozenset({"a snapshot of one pair is packed"})
Pairs = dict[str, bytes]


class Line:
    """A connection that a node has opened: what is under way in both directions, in order."""

    def __init__(self, number: int, owner: "Machine", effect: Connect) -> None:
        self.owner, self.channel, self.tag, self.topics = owner, effect.channel, effect.tag, effect.topics
        self.target = effect.endpoint.partition(":")[0]
        self.peer = b"%s-%d" % (owner.name.encode(), number)
        self.down: deque[list[bytes]] = deque()
        self.up: deque[list[bytes]] = deque()

    def lose(self) -> None:
        """A subscription loses the next message; a stream breaks: all under way is lost, and it is somebody new then."""
        if self.channel == "updates":
            self.down.popleft()
        else:
            self.shatter()

    def shatter(self) -> None:
        """The connection is gone, and made anew under another id."""
        self.up.clear()
        self.down.clear()
        self.peer += b"+"


class Machine:
    """One node: a disk, and as long as it is up, a core."""

    def __init__(self, world: "World", name: str, **settings: Any) -> None:
        self.world, self.name = world, name
        self.node = name.encode().ljust(16, b".")
        self.settings = ConfigurationSettings(**settings)
        self.disk: list[Entry] = []
        self.place: Any = None
        """The order that puts it into its place again after a start."""
        self.lines: dict[str, Line] = {}
        self.core: Configuration
        self.is_up = False
        self.starts = 0
        self.written = 0
        """The last number that it has written as root."""
        self.told: list[Any] = []
        self.said: list[Send] = []
        self.replies: dict[int, Any] = {}
        self.known: Pairs = {}
        """What users were told."""
        self.dies_before: Callable[[Effect], bool] = lambda effect: False
        self.queue_max = 1_000_000
        self._unsent: Counter[bytes] = Counter()
        self._confirmed: list[Confirmed] = []

    # Life

    def start(self) -> "Machine":
        self.is_up = True
        self.starts += 1
        chance = Chance(f"{self.name}/{self.starts}")
        chance.rare = PACKING if self.name in self.world.packing else frozenset()
        self.core = Configuration(self.settings, self.node, chance)
        self.known = {}
        self.core.restore(list(self.disk), self.world.now)
        if self.place is not None:
            self.order(self.place)
        return self

    def crash(self) -> None:
        """Die: memory and unsaid words are gone; what was under way to and from it too."""
        self.is_up = False
        self._unsent, self._confirmed = Counter(), []
        self.lines.clear()
        for line in self.world.lines():
            if line.target == self.name:
                line.shatter()

    def condense(self) -> None:
        """Let the disk hold what the core condenses, as a journal's snapshot does."""
        self.disk = [(0, record) for record in self.core.condense()]

    def order(self, order: Any) -> None:
        self.core.command(order, self.world.now)
        self.do()

    def do(self) -> None:
        """Carry out effects in order."""
        for effect in self.core.effects():
            if self.dies_before(effect):
                self.dies_before = lambda effect: False
                self.crash()
                return
            self._perform(effect)
            if not self.is_up:
                return
        self._tell_unsent()

    def _tell_unsent(self) -> None:
        """The turn is over: what it asked for is answered, as the shell does."""
        unsent, self._unsent = self._unsent, Counter()
        confirmed, self._confirmed = self._confirmed, []
        for peer, count in unsent.items():
            for _ in range(count):
                self.core.command(SendFailed("serve", peer), self.world.now)
        for answer in confirmed:
            self.core.command(answer, self.world.now)
        if confirmed:
            self.do()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Persist():
                self.disk += enumerate(effect.records, len(self.disk) + 1)
                self.world.remember(self, effect)
            case Send():
                self.said.append(effect)
                if self._unsent[effect.peer] or not self.world.carry(self, effect):
                    self._unsent[effect.peer] += 1
            case Confirm():
                refused = min(effect.count, self._unsent[effect.peer])
                self._confirmed.append(Confirmed("serve", effect.peer, effect.count, effect.token, refused))
            case Connect():
                self.lines[effect.channel] = Line(self.world.next_number(), self, effect)
            case Disconnect():
                self.lines.pop(effect.channel, None)
            case Reply():
                self.replies[effect.ticket] = effect.answer
            case Tell():
                self.told.append(effect.event)
                self._heed(effect.event)

    def _heed(self, event: Any) -> None:
        if isinstance(event, PairsChanged):
            for key, value in event.pairs:
                self.known.pop(key, None) if value is None else self.known.__setitem__(key, value)
            self.world.look_at(self)
        elif isinstance(event, ConfigurationApplied):
            self.world.note_applied(self, event)

    # Looks

    @property
    def pairs(self) -> Pairs:
        return {key: pair.value for key, pair in self.core.store.pairs.items()}

    def changes(self) -> list[PairsChanged]:
        """What users were told, but for the digests."""
        return [msgspec.structs.replace(event, digest=b"") for event in self.events(PairsChanged)]

    def events(self, kind: type) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    def messages(self, kind: type) -> list[Any]:
        """What it has said, out of envelopes."""
        inner = [getattr(send.message, "message", send.message) for send in self.said]
        return [message for message in inner if isinstance(message, kind)]

    @property
    def resyncs(self) -> list[str]:
        return [event.why for event in self.events(ReplicaResynced)]

    def stream_records(self) -> list[StreamRecord]:
        return [record for _, record in self.disk if isinstance(record, StreamRecord)]


class World:
    """The machines, the lines between them, and one virtual clock."""

    def __init__(self, packing: tuple[str, ...] = ()) -> None:
        """`packing`: nodes that pack snapshots of any size."""
        self.mono, self.packing = SECOND, packing
        self.machines: dict[str, Machine] = {}
        self.cut_off: dict[str, None] = {}
        self.history: dict[int, Pairs] = {0: {}}
        """The pairs after each write, by number."""
        self.held: dict[int, int] = {}
        """By first number of a new root: the number that it held."""
        self.voters: tuple[str, ...] = ()
        self.refused: list[str] = []
        self.weather: Callable[[list[bytes]], list[bytes]] = lambda frames: frames
        """What becomes of the frames of a message on any line."""
        self._numbers = 0
        self._tickets = 0

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    # Building

    def root(self, name: str = "root", epoch: int = 0, **settings: Any) -> Machine:
        return self._add(name, TakeRoot(epoch), **settings)

    def collector(self, name: str, parent: str = "root", topics: tuple[str, ...] = FULL, **settings: Any) -> Machine:
        return self._add(name, FollowParent(f"{parent}:27500", topics, True), **settings)

    def sensor(
        self, name: str, parent: str = "root", topics: tuple[str, ...] = SENSOR_TOPICS, **settings: Any
    ) -> Machine:
        return self._add(name, FollowParent(f"{parent}:27500", topics, False), **settings)

    def _add(self, name: str, place: Any, **settings: Any) -> Machine:
        machine = self.machines[name] = Machine(self, name, **settings)
        machine.place = place
        return machine.start()

    def take(self, name: str, epoch: int) -> None:
        """Let a node be the root: it goes on with the counter held."""
        machine = self.machines[name]
        machine.place = TakeRoot(epoch)
        held = machine.core.store.number
        machine.order(machine.place)
        counter = max(codec.counter_of(held), codec.counter_of(machine.core.store.seen)) + 1
        self.held[codec.number_of(epoch, counter)] = held

    # Writing

    def write(self, *writes: tuple[str, str], root: str = "root", ack: str = "local", **extra: Any) -> Any:
        """Write at the root; returns the answer, None while it waits."""
        self._tickets += 1
        machine = self.machines[root]
        wanted = tuple(Write(key, value.encode(), **extra) for key, value in writes)
        machine.order(WriteKeys(self._tickets, wanted, "test", "", ack))
        return machine.replies.get(self._tickets)

    def remember(self, root: Machine, persist: Persist) -> None:
        """A root has written: what the configuration is after each number; they only grow."""
        for record in persist.records:
            if isinstance(record, StreamRecord):
                number = codec.number_of(record.era or 0, record.sequence)
                assert root.written < number, f"{root.name} wrote {number} after {root.written}"
                root.written = number
                before = self.held.get(number, number - 1)
                assert before in self.history, f"{root.name} wrote {number}, which follows nothing"
                after = {key: value for key, value in self.history[before].items() if key != record.key}
                self.history[number] = after | ({record.key: record.payload} if record.payload else {})

    def note_applied(self, machine: Machine, told: ConfigurationApplied) -> None:
        """The event travels up at once."""
        for root in self.machines.values():
            if root.is_up and root.core.root.is_root and root is not machine:
                is_voter = machine.name in self.voters
                voters = len(self.voters) + 1
                candidates = tuple(bytes.fromhex(node) for node in told.candidates)
                report = NoteApplied(machine.node, told.number, is_voter, voters, told.count, told.digest, candidates)
                root.order(report)

    def look_at(self, machine: Machine) -> None:
        """What users know is what the store holds, and each chain is as the root had it at some number."""
        assert machine.pairs == machine.known
        if machine.core.root.is_root:
            return
        for chain, last in machine.core.store.chains.items():
            expected = self.chain_at(chain, last.number)
            actual = {key: value for key, value in machine.known.items() if chain_of(key) == chain}
            assert expected == actual, f"{machine.name} shows {chain} as it never was at {last.number}"

    def chain_at(self, chain: str, number: int) -> Pairs:
        return {key: value for key, value in self.history[number].items() if chain_of(key) == chain}

    # Links

    def lines(self) -> list[Line]:
        return [line for machine in self.machines.values() for line in machine.lines.values()]

    def is_joined(self, line: Line) -> bool:
        parent = self.machines.get(line.target)
        cut = line.owner.name in self.cut_off or line.target in self.cut_off
        return line.owner.is_up and parent is not None and parent.is_up and not cut

    def carry(self, sender: Machine, send: Send) -> bool:
        """Whether its queue took it."""
        if send.channel == "publish":
            frames = codec.seal_update(send.message)
            for line in self.lines():
                wants = line.channel == "updates" and any(frames[0].startswith(topic) for topic in line.topics)
                if line.target == sender.name and wants and self.is_joined(line):
                    line.down.append(frames)
        elif send.channel == "ask":
            line = sender.lines["ask"]
            if self.is_joined(line):
                line.up.append(codec.seal_ask(send.message))
        else:
            return self._answer(sender, send)
        return True

    def _answer(self, sender: Machine, send: Send) -> bool:
        line = next((line for line in self.lines() if line.peer == send.peer and self.is_joined(line)), None)
        if line is None or len(line.down) >= sender.queue_max:
            return False
        line.down.append(codec.seal_answer(send.message))
        return True

    def cut(self, *names: str) -> None:
        """What is under way is lost, and everything until healed."""
        self.cut_off |= dict.fromkeys(names)
        for line in self.lines():
            if not self.is_joined(line):
                line.shatter()

    def heal(self, *names: str) -> None:
        for name in names or tuple(self.cut_off):
            self.cut_off.pop(name, None)

    # Time

    def deliver(self, line: Line) -> None:
        """One message of a line, if there is one."""
        try:
            if line.up:
                message = codec.decode_ask(self.weather(line.up.popleft()))
                self._hear(self.machines[line.target], message, Source("serve", line.peer))
            elif line.down:
                frames = self.weather(line.down.popleft())
                decode = codec.decode_update if line.channel == "updates" else codec.decode_answer
                self._hear(line.owner, decode(frames), Source(line.channel, line.tag))
        except PeerError as error:
            self.refused.append(error.code)
            if line.channel == "ask" and not line.down:
                line.down.append([b"", *codec.wtf_frames(codec.refusal(error))])

    def _hear(self, machine: Machine, message: Any, source: Source) -> None:
        try:
            machine.core.receive(message, source, self.now)
        except PeerError as error:
            self.refused.append(error.code)
        machine.do()

    def busy(self) -> list[Line]:
        return [line for line in self.lines() if line.up or line.down]

    def settle(self) -> None:
        """Deliver everything, and let everybody do what is due, at this instant."""
        for _ in range(STEPS_MAX):
            if busy := self.busy():
                for line in busy:
                    self.deliver(line)
            elif not self._wake():
                return
        raise AssertionError("it does not settle")

    def _wake(self) -> bool:
        woken = False
        for machine in self.machines.values():
            due = machine.core.deadline() if machine.is_up else None
            if due is not None and due <= self.mono:
                machine.core.wake(self.now)
                machine.do()
                woken = True
        return woken

    def advance(self, seconds: float) -> None:
        """Let time pass, from deadline to deadline."""
        end = self.mono + round(seconds * SECOND)
        self.settle()
        while self.mono < end:
            dues = [due for m in self.machines.values() if m.is_up and (due := m.core.deadline()) is not None]
            self.mono = max(min([end, *dues]), self.mono)
            self.settle()

    # Judgement

    def check(self) -> None:
        """Every replica equals the root's store within its topics, and runs."""
        root = next(m for m in self.machines.values() if m.is_up and m.core.root.is_root)
        for machine in self.machines.values():
            if machine is root or not machine.is_up or machine.place is None:
                continue
            topics = ["" if topic == "/" else topic for topic in machine.core.replica.topics]
            expected = {k: value for k, value in root.pairs.items() if any(is_under(k, topic) for topic in topics)}
            assert State.RUN is machine.core.state, f"{machine.name} is {machine.core.state}"
            assert expected == machine.pairs, machine.name
            assert expected == machine.known, machine.name
        assert root.pairs == root.known

    def restarted(self, machine: Machine) -> Configuration:
        """A core as a start from this disk would make it."""
        core = Configuration(machine.settings, machine.node, Chance("restored"))
        core.restore(list(machine.disk), self.now)
        return core

    def restored(self, machine: Machine) -> list[Any]:
        """What a start from this disk would remember."""
        return list(self.restarted(machine).condense())


__all__ = [
    "FULL",
    "SENSOR_TOPICS",
    "ConfigurationSettings",
    "ConfigurationWiped",
    "Machine",
    "Pairs",
    "State",
    "Stream",
    "World",
    "WriteLost",
]
