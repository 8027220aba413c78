"""Brokers of several networks in virtual time, joined by bridges that can be cut.

net = Bridged(green={"exports": ("*",)}, blue={"imports": ("*",), "bridge_to": ("green",)})
net.register("green", "thermo")
net.run(1)
assert ["thermo@green"] == net.names("blue")
"""

import json
from collections import deque
from typing import Any

from weft.base.chance import Chance
from weft.base.effects import Disconnect, Perform, Persist, Send, Source, Tell
from weft.base.identity import next_era
from weft.base.now import SECOND, Now, seconds
from weft.base.records import Record
from weft.cores.catalog.context import BRIDGE, CALLS, DIAL, EVENTS, RELAY, ROUTER
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.messages import CatalogSettings, CloseRelay, Garbled, OpenRelay, Ports, RelayOpened
from weft.wire.catalog import bridges as wire
from weft.wire.catalog import commands, publications
from weft.wire.catalog.messages import BRIDGE as BRIDGE_WORD
from weft.wire.catalog.messages import REPLY, Message, Publication, Taken

WALL = 1_795_227_299 * SECOND
TIME = bytes.fromhex("fd01d64e")
DELAY_NS = 1_000_000
ALL: dict[str, Any] = {"exports": ("*",), "imports": ("*",), "export_topics": ("*",), "import_topics": ("*",)}


class Node:
    """One broker."""

    def __init__(self, number: int, name: str, settings: dict[str, Any], at: int) -> None:
        to = tuple(f"{other}:5249" for other in settings.pop("bridge_to", ()))
        usual = {"net": name, "bridge_to": to, "pause_ns": 10 * SECOND}
        self.name, self.number = name, number
        self.settings = CatalogSettings(**{**usual, **settings})
        self.era = 0
        self.disk: list[Record] = []
        self.core: Catalog
        self.published: list[tuple[bytes, tuple[bytes, ...]]] = []
        self.answers: list[tuple[bytes, Message]] = []
        self.relayed: list[tuple[bytes, Message]] = []
        self.called: list[tuple[str, Message]] = []
        self.told: list[Any] = []
        self.doors: dict[bytes, int] = {}
        self.start(at)

    def start(self, at: int) -> None:
        self.era = next_era(WALL + at, self.era)  # as large as a real one: numbers are made from it
        self.core = Catalog(self.settings, bytes([self.number] * 16), self.era, Chance(f"{self.name}/{self.era}"))
        self.core.restore(list(enumerate(self.disk, 1)), Now(at, WALL + at))
        self.core.command(Ports(5246, 5247, 5248, 5249), Now(at, WALL + at))


class Bridged:
    """All brokers, and the connections between them: in order, until they are cut."""

    def __init__(self, **nodes: dict[str, Any]) -> None:
        self.now = SECOND
        self.nodes = {
            name: Node(number, name, dict(of), self.now) for number, (name, of) in enumerate(nodes.items(), 1)
        }
        self.cuts: set[frozenset[str]] = set()
        self.said: list[tuple[str, str, Any]] = []
        """From, to, header."""
        self.lose: Any = lambda sender, hearer, header: False
        self.alter: Any = lambda sender, hearer, message: message
        self._wires: deque[tuple[int, str, str, str, bytes, Message]] = deque()
        self._boots: dict[tuple[str, str], int] = {}
        self._numbers: dict[str, int] = {}
        for name in self.nodes:
            self._pump(name)

    def at(self) -> Now:
        return Now(self.now, WALL + self.now)

    # Doing

    def register(self, name: str, service: str, **record: Any) -> None:
        self.say(name, b"UwU", {"name": service, "id": f"{service}1", "heartbeat": 3_600_000, **record})

    def say(self, name: str, command: bytes, *body: Any, peer: bytes = b"p") -> list[Message]:
        """To the ROUTER of a broker; what was answered at once."""
        frames = tuple(part if isinstance(part, bytes) else json.dumps(part).encode() for part in body)
        node = self.nodes[name]
        before = len(node.answers)
        source = Source(ROUTER, peer, None, "REQ 127.0.0.1")
        node.core.receive(Message(command, TIME, frames), source, self.at())
        self._pump(name)
        return [message for to, message in node.answers[before:] if to == peer]

    def ask(self, name: str, *names: bytes) -> Any:
        """The JSON that a lookup at a broker is answered."""
        (answer,) = self.say(name, b"u_U", *names)
        return json.loads(answer.body[0])

    def names(self, name: str, **wanted: Any) -> list[str]:
        """What a broker lists."""
        told = self.ask(name, b"dbp.query", json.dumps({"state": "active", **wanted}).encode())
        return sorted(row["name"] for row in told["records"])

    def deregister(self, name: str, service: str) -> None:
        node = self.nodes[name]
        source = Source(ROUTER, b"admin", None, "REQ ")
        node.core.receive(Message(b"u_U", TIME, (b"dbp.deregister", service.encode())), source, self.at())
        self._pump(name)

    def subscribe(self, name: str, topic: bytes, *, is_on: bool = True) -> None:
        self.nodes[name].core.receive(
            publications.decode([(b"\1" if is_on else b"\0") + topic]), Source(EVENTS, b""), self.at()
        )
        self._pump(name)

    def publish(self, name: str, service: str, *frames: bytes) -> None:
        """A service of a broker publishes."""
        tag = f"{service}\0{service}1\0pub".encode()
        self.nodes[name].core.receive(Taken(frames), Source("catalog-values", tag), self.at())
        self._pump(name)

    def call(self, name: str, door: bytes, endpoint: bytes, *payload: bytes, peer: bytes = b"c") -> None:
        message = commands.decode_call([b"", endpoint, TIME, *payload])
        self.nodes[name].core.receive(message, Source(RELAY, door + b"\0" + peer), self.at())
        self._pump(name)

    def cut(self, one: str, other: str) -> None:
        self.cuts.add(frozenset((one, other)))

    def heal(self) -> None:
        self.cuts.clear()

    def restart(self, name: str, *, disk: bool = True) -> None:
        """The process dies and is back at once."""
        node = self.nodes[name]
        if not disk:
            node.disk = []
        for pair in [pair for pair in self._boots if name in pair]:
            self._boots[pair] += 1
        node.start(self.now)
        self._pump(name)

    def run(self, span_s: float) -> None:
        """Let time pass."""
        until = self.now + seconds(span_s)
        while True:
            dues = [
                (max(due, self.now), name)
                for name, node in self.nodes.items()
                if (due := node.core.deadline()) is not None
            ]
            first = min(dues, default=(until + 1, ""))
            if self._wires and self._wires[0][0] <= min(first[0], until):
                self.now = max(self.now, self._wires[0][0])
                self._deliver(*self._wires.popleft()[1:])
            elif first[0] <= until:
                self.now = first[0]
                self._wake(self.nodes[first[1]])
            else:
                break
        self.now = until

    def _wake(self, node: Node) -> None:
        """At its deadline a broker does what is due, all of it: it wants to be woken later than now."""
        node.core.wake(self.at())
        due = node.core.deadline()
        assert due is None or due > self.now, "it would be woken again at once"
        self._pump(node.name)

    # What is done

    def _pump(self, name: str) -> None:
        node = self.nodes[name]
        for effect in node.core.effects():
            if isinstance(effect, Persist):
                node.disk += effect.records
            elif isinstance(effect, Tell):
                node.told.append(effect.event)
            elif isinstance(effect, Disconnect) and effect.channel == DIAL:
                pair = (name, effect.peer.decode().partition(":")[0])
                self._boots[pair] = self._boots.get(pair, 0) + 1
            elif isinstance(effect, Perform):
                self._work(name, node, effect.work)
            elif isinstance(effect, Send):
                self._send(name, node, effect)
        self.now += 1

    def _work(self, name: str, node: Node, work: Any) -> None:
        if isinstance(work, OpenRelay):
            port = 5_250 + len(node.doors)
            node.doors[work.tag] = port
            node.core.command(RelayOpened(work.tag, "127.0.0.1", port), self.at())
        elif isinstance(work, CloseRelay):
            node.doors[work.tag] = 0

    def _send(self, name: str, node: Node, effect: Send) -> None:
        message: Any = effect.message
        if effect.channel == ROUTER:
            node.answers.append((effect.peer, message))
        elif effect.channel == EVENTS and isinstance(message, Publication):
            node.published.append((message.topic, message.body))
        elif effect.channel == RELAY:
            node.relayed.append((effect.peer, message))
        elif effect.channel == CALLS:
            node.called.append((effect.peer.decode(), message))
        elif effect.channel == DIAL:
            other = effect.peer.decode().partition(":")[0]
            peer = f"{name}/{self._boots.setdefault((name, other), 0)}".encode()
            self._wire(name, other, BRIDGE, peer, message)
        elif effect.channel == BRIDGE:
            other, _, boot = effect.peer.decode().partition("/")
            if self._boots.get((other, name)) == int(boot):
                self._wire(name, other, DIAL, f"{name}:5249".encode(), message)

    def _wire(self, sender: str, hearer: str, channel: str, peer: bytes, message: Message) -> None:
        if frozenset((sender, hearer)) in self.cuts:
            return
        header, _ = wire.read(message)
        if self.lose(sender, hearer, header):
            return
        self.said.append((sender, hearer, header))
        message = self.alter(sender, hearer, message)
        self._wires.append((self.now + DELAY_NS, sender, hearer, channel, peer, message))

    def _deliver(self, sender: str, hearer: str, channel: str, peer: bytes, message: Message) -> None:
        if frozenset((sender, hearer)) in self.cuts:
            return
        core = self.nodes[hearer].core
        if message.command == BRIDGE_WORD:
            core.receive(message, Source(channel, peer, None, "DEALER 127.0.0.1"), self.at())
        else:
            core.command(Garbled(channel, peer, "unknown-command"), self.at())
        self._pump(hearer)

    def answer(self, name: str, number: int, *body: bytes) -> None:
        """A service of a broker answers the call of that number."""
        endpoint, call = self.nodes[name].called[number]
        said = Message(REPLY, TIME, body, call.envelope)
        self.nodes[name].core.receive(said, Source(CALLS, endpoint.encode()), self.at())
        self._pump(name)


def without_sum(message: Message) -> Message:
    """The message as a broker says it that knows no checksums."""
    header, _, _ = message.body[0].rpartition(b',"sum":"')
    header = header.removesuffix(b',"sums":true') + b"}"
    return Message(message.command, message.time, (header, *message.body[1:]))


def pair(**more: Any) -> Bridged:
    """`blue` dials `green`; all may cross."""
    return Bridged(green={**ALL, **more}, blue={**ALL, "bridge_to": ("green",), **more})
