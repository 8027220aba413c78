"""Whole store cores on links that lose, double, delay and mix up what is said, in virtual time, from one seed.

    net = Net(["a", "b", "c"], seed=7, loss=0.1)
    net.found("a")
    net.run(30)
    net.cut({"a"}, {"b", "c"})
    net["a"].write("x.y", 1)
    net.heal()
    net.settle()
    assert net.are_equal()

`link="mqtt"` joins them by one broker, whose cuts nobody is told of; `link="mesh"` by the mesh, which notices. A node that
is killed keeps what was durable; `fail_at_next_write` stops it in the midst of a turn.
"""

import heapq
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from weft.base.chance import Chance
from weft.base.changes import Event, Path
from weft.base.effects import Effect, Perform, Persist, Reply, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now, seconds
from weft.base.ranges import RangeSet
from weft.base.records import Record
from weft.base.spool import Journaled
from weft.cores.kit.refusals import Refusal
from weft.cores.store.bus import MESH, MQTT
from weft.cores.store.core import JOIN, ORDERS, Store
from weft.cores.store.mesh import HEARD
from weft.cores.store.messages import ConflictResolved, Found, LinkDown, LinkUp, StoreSettings
from weft.cores.store.states import State
from weft.wire.store import bus as codec
from weft.wire.store.messages import Message, Ping, Publication
from weft.wire.store.pack import pack

WALL = 1_800_000_000 * SECOND
TOLD_MAX = 10_000


def path_of(path: str | Path) -> Path:
    """`"a.b"` for short."""
    return tuple(part for part in path.split(".") if part) if isinstance(path, str) else path


class Heard:
    """One thing that was said, when, by whom, to whom: for tests that read along."""

    def __init__(self, at: float, node: str, topic: str, to: str, messages: list[Message]) -> None:
        self.at, self.node, self.topic, self.to, self.messages = at, node, topic, to, messages

    def __repr__(self) -> str:
        return f"{self.at:.3f} {self.node} {self.topic} to {self.to or 'all'}: {self.messages}"


class Node:
    """One node: its core, its disk, and what it said to people."""

    def __init__(self, net: "Net", name: str, endpoint: str) -> None:
        self.net, self.name, self.endpoint = net, name, endpoint
        self.disk: list[Record] = []
        self.told: list[Any] = []
        self.replies: list[Any] = []
        self.acked: list[Event] = []
        self.written: list[Event] = []
        """What it has durably written, acknowledged or not."""
        self.wall_offset = 0
        self.boot = 0
        self.core: Store | None = None
        self.due_at: int | None = None
        self.fails: str = ""
        """At the next write: `before` its records are durable, or `after`, before anything leaves."""

    @property
    def is_up(self) -> bool:
        return self.core is not None

    @property
    def store(self) -> Store:
        assert self.core is not None, f"{self.name} is down"
        return self.core

    @property
    def state(self) -> State:
        return self.store.membership.state

    @property
    def now(self) -> Now:
        return Now(self.net.now, WALL + self.net.now + self.wall_offset)

    def write(self, path: str | Path, value: Any = None, *, is_raw: bool = False) -> Event | None:
        """Write as a client would, or delete (no value); None: refused, or failed before it was acknowledged."""
        return self._write(path_of(path), value if is_raw else pack(value))

    def delete(self, path: str | Path) -> Event | None:
        """None also where there is nothing to delete."""
        return self._write(path_of(path), None)

    def _write(self, path: Path, value: bytes | None) -> Event | None:
        if self.core is None or not self.core.membership.serves:
            return None
        self.core.context.now = self.now
        try:
            written = self.core.replica.write(path, value)
        except Refusal:
            return None
        fails = self.fails
        is_done = self.net.do_turn(self)
        if not written.changed:
            return None
        if is_done or fails == "after":
            self.written.append(written.event)
        if not is_done:
            return None
        self.acked.append(written.event)
        return written.event

    def take_ping(self, ping: Ping) -> None:
        """This is its current ping from now on, whoever said it."""
        self.store.context.now = self.now
        self.store.pinging._accept(ping)
        self.net.do_turn(self)

    def get(self, path: str | Path) -> bytes | None:
        """The raw value, None without one."""
        event = self.store.replica.tree.get(path_of(path))
        return event.value if event else None

    def entries(self) -> dict[Path, tuple[Any, ...]]:
        """All that there is, tombstones included, as two equal nodes have it."""
        return {event.path: (event.chain.head, event.tock, event.value) for event in self.store.replica.tree.walk(())}


class Net:
    """`loss`, `doubling`: shares of messages; `delay`: from, to, in seconds; `is_mixed`: later ones may overtake."""

    def __init__(  # tidy: each is one way in which links are bad
        self,
        names: Iterable[str],
        *,
        seed: object = 0,
        link: str = "mqtt",
        loss: float = 0.0,
        doubling: float = 0.0,
        delay: tuple[float, float] = (0.001, 0.003),
        is_mixed: bool = False,
        is_traced: bool = False,
        is_started: bool = True,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.seed, self.link, self.loss, self.doubling, self.is_mixed = seed, link, loss, doubling, is_mixed
        self.delay = (seconds(delay[0]), seconds(delay[1]))
        self.settings = settings or {}
        self.now = SECOND
        self.trace: list[Heard] = []
        self.is_traced = is_traced
        self.ears: list[Callable[[str, str, bytes], None]] = []
        """Whoever else listens to the broker: node, topic, payload."""
        self.on_dial: Callable[[Node, Any], None] = lambda node, work: None
        """A node calls somebody's client port, or hangs up."""
        self.on_join: Callable[[Node, bytes, Any], None] = lambda node, tag, said: None
        """A node asks something there."""
        self.said = 0
        self.is_deaf: Callable[[str, str], bool] = lambda sender, hearer: False
        """Links that are broken in one direction."""
        self._chance = Chance(f"{seed}/links")
        self._random = self._chance.random
        self._heap: list[tuple[int, int, Any]] = []
        self._serial = 0
        self._last: dict[tuple[str, str], int] = {}
        self._side: dict[str, int] = {}
        self.nodes: dict[str, Node] = {}
        self._by_endpoint: dict[bytes, Node] = {}
        for name in names:
            self.add(name)
        for node in self.nodes.values():
            if is_started:
                self.start(node.name)

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    # Nodes

    def add(self, name: str) -> Node:
        """A machine; not started yet."""
        node = Node(self, name, f"10.0.0.{len(self.nodes) + 1}:27500")
        self.nodes[name] = node
        self._by_endpoint[node.endpoint.encode()] = node
        return node

    def start(self, name: str, /, **settings: Any) -> Node:
        """Start a node with what its disk has."""
        node = self.nodes[name] if name in self.nodes else self.add(name)
        node.boot += 1
        mesh = {"endpoint": node.endpoint, "peers": tuple(n.endpoint for n in self.nodes.values() if n is not node)}
        mine = {"boot": self.now + node.boot, **(mesh if self.link == "mesh" else {}), **self.settings, **settings}
        node.core = Store(StoreSettings(**{"name": name, **mine}), Chance(f"{self.seed}/{name}/{node.boot}"))
        node.core.restore(list(enumerate(node.disk, 1)), node.now)
        node.due_at = None
        if self.link == "mqtt":
            node.core.command(LinkUp("mqtt"), node.now)
        self.do_turn(node)
        return node

    def kill(self, name: str) -> None:
        """`kill -9`: what was durable stays."""
        self.nodes[name].core = None

    def fail_at_next_write(self, name: str, when: str) -> None:
        """Kill it in its next turn that makes something durable, `before` or `after` it is; nothing of it leaves."""
        self.nodes[name].fails = when

    def lose_disk(self, name: str) -> None:
        """All records of a node that is down are gone."""
        self.nodes[name].disk.clear()

    def up(self) -> list[Node]:
        """All that run."""
        return [node for node in self.nodes.values() if node.is_up]

    def found(self, name: str, value: Any = None) -> Any:
        """Found the store at a node; returns what it answers."""
        return self.command(name, Found(1, pack(value)))

    def command(self, name: str, order: Any) -> Any:
        """Give an order; returns the reply, if it came in the same turn."""
        node = self.nodes[name]
        before = len(node.replies)
        node.store.command(order, node.now)
        self.do_turn(node)
        return node.replies[-1] if len(node.replies) > before else None

    # Links

    def cut(self, *sides: set[str]) -> None:
        """Only who is on one side hears one another; who is on none is alone with all others that are on none."""
        self._side = {name: number for number, side in enumerate(sides, 1) for name in side}

    def heal(self) -> None:
        """Everybody hears everybody; a broker tells nobody so."""
        self._side = {}

    def reconnect(self, *names: str) -> None:
        """The broker was gone for these, and is there again: they are told."""
        for node in [self.nodes[name] for name in names] if names else self.up():
            for order in (LinkDown("mqtt"), LinkUp("mqtt")):
                node.store.command(order, node.now)
            self.do_turn(node)

    def disconnect(self, *names: str) -> None:
        """The broker is gone for these, and they are told."""
        for name in names or [node.name for node in self.up()]:
            self.nodes[name].store.command(LinkDown("mqtt"), self.nodes[name].now)
            self.do_turn(self.nodes[name])

    def jump(self, name: str, span_s: float) -> None:
        """Its wall clock is set."""
        self.nodes[name].wall_offset += seconds(span_s)

    def publish(self, sender: str, topic: str, payload: bytes) -> None:
        """Somebody else says something through the broker."""
        for hearer in self.nodes.values():
            self._carry(sender, hearer, ("said", topic, payload))

    # Time

    def run(self, span_s: float) -> None:
        """Let time pass; what is due now is done in no time."""
        self._run_to(self.now + seconds(span_s))

    def run_until(self, is_so: Callable[[], bool], span_s: float, *, step_s: float = 0.0) -> float:
        """Let time pass until something is so, looked at every `step_s`, or the span is over; returns seconds passed."""
        began, end = self.now, self.now + seconds(span_s)
        step = seconds(step_s) or end - self.now
        while not is_so() and self.now < end:
            self._run_to(min(self.now + step, end))
        return (self.now - began) / SECOND

    def _run_to(self, end: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= end:
            at, _, what = heapq.heappop(heap)
            self.now = max(self.now, at)
            if type(what) is Node:
                self._wake(what, at)
            else:
                self._deliver(*what)
        self.now = end

    def settle(self, span_s: float = 200.0) -> float:
        """Let time pass until all are members, equal and complete; returns the seconds that took."""
        took = self.run_until(self.is_settled, span_s, step_s=0.25)
        assert self.is_settled(), f"not equal after {span_s} s, seed {self.seed}: {self.differences()}"
        return took

    def is_settled(self) -> bool:
        """Everybody is a member, knows of the same changes and has the same, and nothing is missing."""
        is_in_order = all(node.state is State.MEMBER for node in self.up()) and self.are_equal() and not self.missing()
        return is_in_order and all(self.tops()[0] == tops for tops in self.tops())

    def are_equal(self) -> bool:
        """Whether all that run have the same entries."""
        up = self.up()
        if len({len_of(node.store.replica) for node in up}) > 1:
            return False
        expected = up[0].entries() if up else {}
        return all(expected == node.entries() for node in up[1:])

    def missing(self) -> dict[str, dict[str, RangeSet]]:
        """What each lacks of what it knows of."""
        return {node.name: missing for node in self.up() if (missing := node.store.replica.book.missing())}

    def differences(self) -> dict[str, Any]:
        """For whoever has to find out: state, entries and gaps of each."""
        return {
            node.name: (node.state.name, len(node.entries()), node.store.replica.book.missing()) for node in self.up()
        }

    def unexplained(self) -> list[Event]:
        """Acknowledged writes that are neither current, nor covered by what is well explained, nor lost in a conflict that is told or listed."""
        current = {event.chain.head for node in self.up() for event in node.store.replica.tree.walk(())}
        told = [event for node in self.nodes.values() for event in node.told if isinstance(event, ConflictResolved)]
        listed = {conflict.lost.chain.head for node in self.up() for conflict in node.store.replica.conflicts}
        explained = current | listed | {(event.lost["node"], event.lost["tick"]) for event in told}
        by_path: dict[Path, list[Event]] = {}
        for event in sorted((e for node in self.nodes.values() for e in node.written), key=lambda e: -e.tock):
            later = by_path.setdefault(event.path, [])
            if event.chain.head in explained or any(other.chain.covers(event.chain.head) for other in later):
                later.append(event)
        fine = {event.chain.head for events in by_path.values() for event in events}
        return [event for node in self.nodes.values() for event in node.acked if event.chain.head not in fine]

    def tops(self) -> list[dict[str, int]]:
        """The ticks that each node knows of."""
        return [node.store.replica.book.tops() for node in self.up()]

    # Turns

    def _wake(self, node: Node, at: int) -> None:
        if node.core is None or node.due_at != at:
            return
        node.due_at = None
        node.core.wake(node.now)
        self.do_turn(node)

    def _deliver(self, hearer: Node, boot: int, message: Any, source: Source) -> None:
        core = hearer.core
        if core is None or hearer.boot != boot:
            return
        with suppress(PeerError):
            core.receive(message, source, hearer.now)
        self.do_turn(hearer)

    def do_turn(self, node: Node) -> bool:
        """What a node wants done is done; False: it failed in the midst of it."""
        core = node.store
        effects = core.effects()
        if node.fails and any(isinstance(effect, Persist) for effect in effects):
            if node.fails == "after":
                self._keep(node, effects)
            node.core, node.fails = None, ""
            return False
        for effect in effects:
            DOERS.get(type(effect), Net._ignore)(self, node, effect)
        due_at = core.deadline()
        if due_at is not None and (node.due_at is None or due_at < node.due_at):
            node.due_at = max(due_at, self.now)
            self._push(node.due_at, node)
        return True

    def _keep(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                node.disk += effect.records

    def _ignore(self, node: Node, effect: Any) -> None:
        """Work of the outside world that is not played here."""

    def _persist(self, node: Node, effect: Persist) -> None:
        first = len(node.disk) + 1
        node.disk += effect.records
        if Journaled in ORDERS:
            node.store.command(Journaled(first, effect.records), node.now)

    def _perform(self, node: Node, effect: Perform) -> None:
        self.on_dial(node, effect.work)

    def _reply(self, node: Node, effect: Reply) -> None:
        node.replies.append(effect.answer)

    def _tell(self, node: Node, effect: Tell) -> None:
        node.told.append(effect.event)
        del node.told[:-TOLD_MAX]

    def _send(self, node: Node, effect: Send) -> None:
        self.said += 1
        if effect.channel == MQTT:
            self._broadcast(node, effect.message)
        elif effect.channel == JOIN:
            self.on_join(node, effect.peer, effect.message)
        elif effect.channel == MESH:
            hearer = self._by_endpoint.get(effect.peer)
            if hearer is not None:
                self._note(node, effect.message, hearer.name)
                self._carry(node.name, hearer, ("call", node.endpoint.encode(), effect.message))
        elif effect.channel == HEARD and effect.peer in self._by_endpoint:
            hearer = self._by_endpoint[effect.peer]
            self._carry(node.name, hearer, ("answer", node.endpoint.encode(), effect.message))

    def _broadcast(self, node: Node, said: Publication) -> None:
        self._note(node, said, "")
        for ear in self.ears:
            ear(node.name, said.topic, said.payload)
        for hearer in self.nodes.values():
            self._carry(node.name, hearer, ("said", said.topic, said.payload))

    def _note(self, node: Node, said: Any, to: str) -> None:
        if self.is_traced and isinstance(said, Publication) and (to or said.topic not in ("ping", "del")):
            topic = "ping" if said.topic == "wping" else said.topic
            messages = codec.decode(topic, said.payload)
            self.trace.append(Heard((self.now - SECOND) / SECOND, node.name, topic, to, messages))

    def _carry(self, sender: str, hearer: Node, what: tuple[str, Any, Any]) -> None:
        """On its way, or lost; perhaps twice."""
        if hearer.core is None or self._side.get(sender, 0) != self._side.get(hearer.name, 0):
            return
        if self.is_deaf(sender, hearer.name):
            return
        is_own = sender == hearer.name
        kind, peer, message = what
        if kind == "said":
            source, message = Source(MQTT, peer.encode()), Publication(peer, message)
        else:
            source = Source(HEARD if kind == "call" else MESH, peer)
        for _ in range(2 if self.doubling and self._random() < self.doubling else 1):
            if self.loss and not is_own and self._random() < self.loss:
                continue
            self._push(self._arrival(sender, hearer.name), (hearer, hearer.boot, message, source))

    def _arrival(self, sender: str, hearer: str) -> int:
        least, most = self.delay
        at = self.now + least + (int(self._random() * (most - least)) if most > least else 0)
        if not self.is_mixed:
            at = max(at, self._last.get((sender, hearer), 0))
            self._last[sender, hearer] = at
        return at

    def _push(self, at: int, what: Any) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (at, self._serial, what))


def len_of(replica: Any) -> tuple[int, int]:
    """Entries and tombstones."""
    return replica.tree.entries, replica.tree.tombstones


DOERS: dict[type, Callable[[Net, Node, Any], None]] = {
    Perform: Net._perform,
    Persist: Net._persist,
    Send: Net._send,
    Reply: Net._reply,
    Tell: Net._tell,
}
