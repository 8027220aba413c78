"""Whole catalogs and services in virtual time: datagrams that are lost, doubled and late, connections that stall and break.

    net = Net(seed=7, loss=0.05)
    net.add("thermo", interval_ms=1000)                    # a service of the library, on a host of its own
    net.run(10)
    net.crash("broker", disk="kept"); net.run(1); net.start("broker")
    net.cut("thermo"); net.run(60); net.heal()
    assert net.states() == {"thermo": "ACTIVE"}
    assert net.ops("thermo") == [...]                      # (op, seconds), as the broker published it

Everything is one thread, one clock and one seed: the same net does the same again. `say` speaks to the ROUTER as any peer
would; `answering` are endpoints that answer a ping, though nothing else is there.
"""

import heapq
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Effect, Persist, Reply, Send, SendFailed, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now, seconds
from weft.base.records import Record
from weft.cores.catalog import context
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import CatalogSettings, Ports, Stop
from weft.cores.service import messages as service
from weft.cores.service.core import Service
from weft.wire.catalog.messages import HEARTBEAT, PING, PONG, REGISTRATION, Beat, Beats, Message, Publication

WALL: Final = 1_795_227_299 * SECOND
BEATS_PORT, EVENTS_PORT = 5_246, 5_247
NODE: Final = b"broker of tests!"
TIME: Final = bytes.fromhex("fd01d64e")
"""Of 1795227299, as existing nodes write it."""
HOME: Final = "10.0.0.1"
DEAD_S: Final = 0.2
"""Until a connection is there again, after its other end is."""


class Op(msgspec.Struct, frozen=True):
    """One change as it was published: seconds since the net began."""

    at: float
    op: str
    name: str
    id: str
    index: int
    reason: str = ""


class Machine:
    """One process on one host, or what is left of it."""

    def __init__(self, net: "Net", name: str, ip: str) -> None:
        self.net, self.name, self.ip = net, name, ip
        self.core: Any = None
        self.boot = 0
        self.due_at: int | None = None
        self.wall_offset = 0
        self.is_paused = False
        self.waiting: list[tuple[Any, Source]] = []
        """What came while it stood still."""
        self.told: list[Any] = []
        self.replies: list[Any] = []

    @property
    def is_up(self) -> bool:
        return self.core is not None

    @property
    def now(self) -> Now:
        return Now(self.net.now, WALL + self.net.now + self.wall_offset)


class Broker(Machine):
    """A catalog, its disk, and what it published."""

    def __init__(self, net: "Net", name: str, ip: str, settings: dict[str, Any]) -> None:
        super().__init__(net, name, ip)
        self.settings = CatalogSettings(**{"host": ip, **settings})
        self.disk: list[Record] = []
        self.ops: list[Op] = []
        self.answers: dict[bytes, list[Message]] = {}
        """What was said to peers of `Net.say`, by routing id."""
        self.era = 0

    @property
    def catalog(self) -> Catalog:
        """The running core."""
        core: Catalog = self.core
        return core

    def instances(self) -> Iterable[Instance]:
        """All that it knows."""
        return self.catalog.book.all()


class Host(Machine):
    """A service, and its connection."""

    def __init__(self, net: "Net", name: str, ip: str, settings: service.ServiceSettings) -> None:
        super().__init__(net, name, ip)
        self.settings = settings
        self.line: Line | None = None

    @property
    def endpoint(self) -> bytes:
        """Where it serves."""
        return f"{self.ip}:{self.settings.record.get('port', 0)}".encode()


class Line:
    """One DEALER of a service: to whom, and its routing id there as long as both live."""

    def __init__(self, host: Host, endpoint: str, tag: bytes) -> None:
        self.host, self.endpoint, self.tag = host, endpoint, tag
        self.is_open = True
        self.boot = 0
        """Of the broker that it is connected to."""
        self.peer = b""
        self.unsent: list[Message] = []
        self.last_at = 0


class Net:
    """`loss`, `doubling`: shares of datagrams; `delay`: from, to, in seconds; datagrams may overtake one another."""

    def __init__(  # tidy: each is one way in which networks are bad
        self,
        *,
        seed: object = 0,
        loss: float = 0.0,
        doubling: float = 0.0,
        delay: tuple[float, float] = (0.0005, 0.003),
        buffer: int = 100_000,
        is_logged: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.seed, self.loss, self.doubling = seed, loss, doubling
        self.delay = (seconds(delay[0]), seconds(delay[1]))
        self.buffer = buffer
        """Datagrams that wait for who stands still; more are lost (BEA-025)."""
        self.now = SECOND
        self.machines: dict[str, Machine] = {}
        self.answering: set[bytes] = set()
        self.do_hosts_answer = True
        """Whether a service that runs answers a ping."""
        self.is_lost: Callable[[str, str], bool] = lambda sender, hearer: False
        """Datagrams that never arrive, besides those lost by chance."""
        self.log: list[str] | None = [] if is_logged else None
        """Every effect, for who compares two nets."""
        self.crash_after: int | None = None
        """After so many effects of brokers since the net began, the broker dies in the midst of a turn."""
        self.effects_done = 0
        self._random = Chance(f"{seed}/links").random
        self._heap: list[tuple[int, int, Any, tuple[Any, ...]]] = []
        self._serial = self._peers = 0
        self._cut: set[str] = set()
        self._brokers: list[Broker] = []
        self._hosts: list[Host] = []
        self._at: dict[bytes, Host] = {}
        self._by_ip: dict[bytes, list[Host]] = {}
        self._broker_at: dict[str, Broker] = {}
        self._lines: dict[bytes, Line] = {}
        self._open_lines: dict[Line, None] = {}
        self.add_broker("broker", "10.9.9.9", **(settings or {}))

    # Who is there

    def add_broker(self, name: str, ip: str, **settings: Any) -> Broker:
        """A catalog, started."""
        broker = Broker(self, name, ip, settings)
        self.machines[name] = broker
        self._brokers.append(broker)
        self._broker_at[f"{ip}:{broker.settings.port}"] = broker
        self.start(name)
        return broker

    def add(self, name: str, ip: str = "", *, key: str = "", is_started: bool = True, **settings: Any) -> Host:
        """A service; without an ip on a host of its own. `key`: what it is called here, if several have its name."""
        number = len(self._hosts) + 1
        ip = ip or f"10.0.{number // 250}.{number % 250 + 1}"
        mine = {"name": name, "id": key or name, "record": {"ip": ip, "port": 20_000 + number}, **settings}
        host = Host(self, key or name, ip, service.ServiceSettings(**mine))
        self.machines[host.name] = self._at[host.endpoint] = host
        self._by_ip.setdefault(ip.encode(), []).append(host)
        self._hosts.append(host)
        if is_started:
            self.start(host.name)
        return host

    @property
    def broker(self) -> Broker:
        """The first one."""
        return self._brokers[0]

    @property
    def catalog(self) -> Catalog:
        """Its core."""
        return self.broker.catalog

    def __getitem__(self, key: str) -> Host:
        host = self.machines[key]
        assert isinstance(host, Host), key
        return host

    # What becomes of them

    def start(self, name: str) -> None:
        """A new process, with what the disk has."""
        machine = self.machines[name]
        machine.boot += 1
        machine.due_at, machine.is_paused = None, False
        machine.waiting.clear()
        chance = Chance(f"{self.seed}/{name}/{machine.boot}")
        if isinstance(machine, Broker):
            machine.era = self.now + machine.boot
            machine.core = core = Catalog(machine.settings, NODE, machine.era, chance)
            core.restore(list(enumerate(machine.disk, 1)), machine.now)
            core.command(Ports(BEATS_PORT, EVENTS_PORT), machine.now)
        elif isinstance(machine, Host):
            machine.core = Service(machine.settings, chance)
            machine.core.command(service.Start(), machine.now)
        self._end_turn(machine)
        for line in list(self._open_lines):
            self._push(seconds(DEAD_S), self._connect, line)

    def crash(self, name: str, disk: str = "kept") -> None:
        """`kill -9`; what was durable stays, or is `lost`."""
        machine = self.machines[name]
        machine.core = None
        if isinstance(machine, Broker) and disk == "lost":
            machine.disk.clear()
        if isinstance(machine, Host) and machine.line is not None:
            self._hang_up(machine.line)

    def stop(self, name: str) -> None:
        """It is told to stop, does, and what it said last is still on its way."""
        machine = self.machines[name]
        machine.core.command(Stop() if isinstance(machine, Broker) else service.Stop(), machine.now)
        self._end_turn(machine)
        machine.core = None

    def pause(self, name: str) -> None:
        """SIGSTOP, or a machine that sleeps."""
        self.machines[name].is_paused = True

    def resume(self, name: str) -> None:
        """It goes on, and hears all that came meanwhile before it looks at its timers."""
        machine = self.machines[name]
        machine.is_paused = False
        waiting, machine.waiting = machine.waiting, []
        for message, source in waiting:
            self._hear(machine, message, source)
        if machine.core is not None:
            self._wake_if_due(machine)

    def cut(self, *names: str) -> None:
        """These hear nobody, and nobody hears them; connections stall."""
        self._cut |= set(names)

    def heal(self) -> None:
        """All hear all; what stalled goes on a little later."""
        self._cut = set()
        for line in list(self._open_lines):
            self._push(seconds(DEAD_S), self._connect, line)

    # What they say

    def say(self, ip: str, message: Message, *, kind: str = "REQ", peer: bytes = b"") -> list[Message]:
        """Any peer on the ROUTER of the first broker says something; what is said to it within the same turn."""
        peer = peer or b"%s/%s" % (kind.encode(), ip.encode())
        before = len(self.broker.answers.setdefault(peer, []))
        self._hear(self.broker, message, Source(context.ROUTER, peer, kind=f"{kind} {ip}"))
        return self.broker.answers[peer][before:]

    def beat(self, ip: str, *beats: Beat) -> None:
        """Somebody sends the first broker a datagram, that arrives at once."""
        self._hear(self.broker, Beats(beats), Source(context.BEATS, f"{ip}:40000".encode()))

    # What is so

    def states(self, broker: str = "broker") -> dict[str, str]:
        """State by instance id."""
        there = self.machines[broker]
        assert isinstance(there, Broker)
        return {instance.id: instance.state.name for instance in there.instances()}

    def ops(self, instance_id: str = "", *, since: float = 0.0) -> list[tuple[str, float]]:
        """What the first broker published of an instance, or of all: op and seconds."""
        return [
            (change.op, round(change.at, 3))
            for change in self.broker.ops
            if change.id == (instance_id or change.id) and change.at >= since
        ]

    def count(self, op: str, *, since: float = 0.0) -> int:
        """How many such changes were published."""
        return sum(change.op == op and change.at >= since for change in self.broker.ops)

    @property
    def time(self) -> float:
        """Seconds since the net began."""
        return (self.now - SECOND) / SECOND

    # Time

    def run(self, span_s: float) -> None:
        """Let time pass; what is due now is done in no time."""
        heap, end = self._heap, self.now + seconds(span_s)
        while heap and heap[0][0] <= end:
            at, _, do, what = heapq.heappop(heap)
            self.now = max(self.now, at)
            do(*what)
        self.now = end

    def _push(self, after_ns: int, do: Callable[..., object], *what: Any) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (self.now + after_ns, self._serial, do, what))

    # Turns

    def _hear(self, machine: Machine, message: Any, source: Source) -> None:
        if machine.core is None:
            return
        if machine.is_paused:
            is_datagram = not isinstance(message, Message)
            if not is_datagram or len(machine.waiting) < self.buffer:
                machine.waiting.append((message, source))
            return
        try:
            machine.core.receive(message, source, machine.now)
        except PeerError:
            return
        self._end_turn(machine)

    def _wake(self, machine: Machine, at: int) -> None:
        if machine.due_at == at and machine.core is not None and not machine.is_paused:
            self._wake_if_due(machine)

    def _wake_if_due(self, machine: Machine) -> None:
        machine.due_at = None
        due_at = machine.core.deadline()
        if due_at is not None and due_at <= self.now:
            machine.core.wake(machine.now)
        self._end_turn(machine)

    def _end_turn(self, machine: Machine) -> None:
        """What a core wants done is done, one after another; it may die in the midst."""
        for effect in machine.core.effects():
            if isinstance(machine, Broker) and self._dies(machine):
                return
            if self.log is not None:
                self.log.append(f"{self.now} {machine.name} {effect}")
            self._do(machine, effect)
        due_at = machine.core.deadline()
        if due_at is not None and (machine.due_at is None or due_at < machine.due_at):
            machine.due_at = max(due_at, self.now)
            self._push(machine.due_at - self.now, self._wake, machine, machine.due_at)

    def _dies(self, broker: Broker) -> bool:
        self.effects_done += 1
        if self.crash_after is None or self.effects_done <= self.crash_after:
            return False
        self.crash_after = None
        self.crash(broker.name)
        return True

    def _do(self, machine: Machine, effect: Effect) -> None:
        if isinstance(effect, Persist) and isinstance(machine, Broker):
            machine.disk += effect.records
        elif isinstance(effect, Tell):
            machine.told.append(effect.event)
        elif isinstance(effect, Reply):
            machine.replies.append((effect.ticket, effect.answer))
        elif isinstance(effect, Send):
            SAYERS[effect.channel](self, machine, effect.peer, effect.message)
        elif isinstance(effect, Connect) and effect.channel == service.BROKER:
            self._open(machine, effect)
        elif isinstance(effect, Disconnect) and isinstance(machine, Host) and machine.line is not None:
            self._hang_up(machine.line)

    # Datagrams

    def _is_cut(self, one: Machine, other: Machine) -> bool:
        return (one.name in self._cut) != (other.name in self._cut)

    def _throw(self, sender: Machine, hearer: Machine, message: Any, source: Source) -> None:
        """One datagram: lost, once or twice, whenever."""
        if self._is_cut(sender, hearer) or self.is_lost(sender.name, hearer.name):
            return
        least, most = self.delay
        for _ in range(2 if self.doubling and self._random() < self.doubling else 1):
            if not (self.loss and self._random() < self.loss):
                self._push(
                    least + int(self._random() * (most - least)), self._catch, hearer, hearer.boot, message, source
                )

    def _catch(self, hearer: Machine, boot: int, message: Any, source: Source) -> None:
        if hearer.boot == boot:
            self._hear(hearer, message, source)

    def _say_beat(self, machine: Machine, to: bytes, beat: Beat) -> None:
        """A service beats."""
        ip, _, port = to.decode().rpartition(":")
        broker = self._broker_at.get(f"{ip}:5246")
        if broker is not None and port == str(BEATS_PORT):
            source = Source(context.BEATS, f"{machine.ip}:{machine.name}".encode())
            self._throw(machine, broker, Beats((beat,)), source)

    def _answer_beat(self, machine: Machine, to: bytes, beat: Beat) -> None:
        """A broker answers a beat."""
        ip, _, name = to.partition(b":")
        source = Source(service.BEATS, f"{machine.ip}:{BEATS_PORT}".encode())
        for host in self._by_ip.get(ip, ()):
            if host.name.encode() == name:
                self._throw(machine, host, Beats((beat,)), source)

    def _shout(self, machine: Machine, _: bytes, beacon: Any) -> None:
        source = Source(service.BEACONS, machine.ip.encode())
        for host in self._hosts:
            if host.core is not None:
                self._throw(machine, host, beacon, source)

    # Connections

    def _open(self, machine: Machine, effect: Connect) -> None:
        assert isinstance(machine, Host)
        if machine.line is not None:
            self._hang_up(machine.line)
        machine.line = line = Line(machine, effect.endpoint, effect.tag)
        self._open_lines[line] = None
        self._connect(line)

    def _connect(self, line: Line) -> None:
        """Both ends are there: the routing id is a new one, unless this connection never broke."""
        broker = self._broker_at.get(line.endpoint)
        if not line.is_open or broker is None or broker.core is None or self._is_cut(line.host, broker):
            return
        if line.boot != broker.boot:
            self._lines.pop(line.peer, None)
            self._peers += 1
            line.boot, line.peer = broker.boot, b"\0%d" % self._peers
            self._lines[line.peer] = line
        unsent, line.unsent = line.unsent, []
        for message in unsent:
            self._carry(line, message)

    def _hang_up(self, line: Line) -> None:
        """What was said before still arrives."""
        line.is_open = False
        line.host.line = None
        self._open_lines.pop(line, None)
        self._push(self.delay[1], self._lines.pop, line.peer, None)

    def _call(self, machine: Machine, _: bytes, message: Message) -> None:
        """A service says something on its connection."""
        assert isinstance(machine, Host)
        if machine.line is not None:
            self._carry(machine.line, message)

    def _carry(self, line: Line, message: Message) -> None:
        broker = self._broker_at.get(line.endpoint)
        if broker is None:
            return
        if broker.core is None or broker.boot != line.boot or self._is_cut(line.host, broker):
            line.unsent.append(message)
            return
        self._push(self._in_order(line), self._arrive, line, broker, line.boot, message)

    def _arrive(self, line: Line, broker: Broker, boot: int, message: Message) -> None:
        if broker.boot == boot:
            self._hear(broker, message, Source(context.ROUTER, line.peer, kind=f"DEALER {line.host.ip}"))

    def line_of(self, entry: tuple[Any, ...]) -> Any:
        """The connection that carries what stands there; empty for a datagram, None for what is no message."""
        if entry[2] in (self._arrive, self._return):
            return entry[3][0], entry[2]
        return "" if entry[2] == self._catch else None

    def break_off(self, line: Line) -> None:
        """A connection is reset, and made anew a little later; what was under way is lost in both directions."""
        line.boot = 0
        self._heap[:] = [
            entry for entry in self._heap if not (entry[2] in (self._arrive, self._return) and entry[3][0] is line)
        ]
        heapq.heapify(self._heap)
        self._push(seconds(DEAD_S), self._connect, line)

    def _in_order(self, line: Line) -> int:
        least, most = self.delay
        line.last_at = max(line.last_at, self.now + least + int(self._random() * (most - least)))
        return line.last_at - self.now

    def _route(self, machine: Machine, peer: bytes, message: Message) -> None:
        """A broker says something on its ROUTER."""
        assert isinstance(machine, Broker)
        line = self._lines.get(peer)
        if peer in machine.answers:
            machine.answers[peer].append(message)
        elif line is None or line.boot != machine.boot:
            self._push(0, self._unsent, machine, machine.boot, peer)
        elif self._is_cut(machine, line.host):
            self._push(seconds(1), self._route, machine, peer, message)  # TCP tries again
        else:
            source = Source(service.BROKER, line.tag)
            self._push(self._in_order(line), self._return, line, message, source)

    def _return(self, line: Line, message: Message, source: Source) -> None:
        if line.is_open:
            self._hear(line.host, message, source)

    def _unsent(self, machine: Machine, boot: int, peer: bytes) -> None:
        if machine.boot == boot and machine.core is not None and not machine.is_paused:
            machine.core.command(SendFailed(context.ROUTER, peer), machine.now)
            self._end_turn(machine)

    # Calls

    def _ping(self, machine: Machine, to: bytes, message: Message) -> None:
        """A broker calls an endpoint, where somebody may answer."""
        if message.command != PING:
            return
        host = self._at.get(to) if self.do_hosts_answer else None
        if to in self.answering:
            self._pong(machine, to, b"")
        elif host is not None and host.core is not None and not host.is_paused and not self._is_cut(machine, host):
            self._pong(machine, to, host.settings.name.encode())

    def _pong(self, machine: Machine, to: bytes, name: bytes) -> None:
        said = Message(PONG, b"", (name,))
        self._push(2 * self.delay[1], self._catch, machine, machine.boot, said, Source(context.PROBE, to))

    # Events

    def _publish(self, machine: Machine, _: bytes, said: Publication) -> None:
        assert isinstance(machine, Broker)
        if said.topic.startswith(b"catalog/"):
            meta = msgspec.json.decode(said.body[0])
            change = Op(self.time, meta["op"], meta["name"], meta["instance"], meta["index"], meta.get("reason", ""))
            machine.ops.append(change)


SAYERS: Final[dict[str, Callable[[Net, Machine, bytes, Any], None]]] = {
    service.BROKER: Net._call,
    service.BEATS: Net._say_beat,
    context.ROUTER: Net._route,
    context.EVENTS: Net._publish,
    context.BEATS: Net._answer_beat,
    context.BEACON: Net._shout,
    context.PROBE: Net._ping,
}
"""Who carries what, by channel."""


# Peers of the first broker that are no service of the library


def register(net: Net, name: str, peer: str = HOME, **record: Any) -> list[Message]:
    """As a REQ, that beats by itself or not at all."""
    where = {"ip": peer} if "port" in record else {}
    body = json.dumps({"name": name, "id": name, "heartbeat": 1000, **where, **record}).encode()
    return net.say(peer, Message(REGISTRATION, TIME, (body,)))


def beat(net: Net, name: str, ip: str = HOME, word: bytes = HEARTBEAT, **said: Any) -> None:
    """By UDP, of no certain time."""
    net.beat(ip, Beat(word, name, 0.0, **said))


def pinged(net: Net) -> list[tuple[float, bytes]]:
    """When which endpoint was called, by a net that keeps a log."""
    assert net.log is not None
    found = []
    for line in net.log:
        at, _, effect = line.split(" ", 2)
        if "catalog-probe" in effect and "b'ping'" in effect:
            found.append(((int(at) - SECOND) / SECOND, effect.split("peer=b'")[1].split("'")[0].encode()))
    return found


def of(net: Net, name: str) -> Instance:
    """The instance with this name and id."""
    found = net.catalog.book.get(name, name)
    assert found is not None
    return found


def dropped(net: Net, reason: str) -> int:
    """How much was dropped for this reason."""
    return net.catalog.context.counters["dropped", reason]
