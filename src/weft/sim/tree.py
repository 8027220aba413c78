"""A few whole nodes in one process, without faults: chains and carrier of each, joined at once, in virtual time.

    tree = Tree({"A": "B", "B": "C", "C": ""})
    tree.advance(seconds)

Every message travels as bytes, arrives at once and in order; every record is durable when it is written. Clients of a
node are objects with `hear`; a node may be killed, which loses what it had not kept, and started again. For faults of
links and disks there is `weft.sim.fabric`.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from weft.base.effects import Connect, Disconnect, Perform, Persist, Reply, Source, Tell
from weft.base.identity import NODE_ID_BYTES, next_era
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import Entry, StreamRecord
from weft.base.spool import FetchRecords, RecordsFetched
from weft.cores.carrier.messages import AssignParent
from weft.cores.chains.settings import FilterSpec
from weft.node.assembly import build_node
from weft.node.node import Node, NodeEffect, Transmit
from weft.node.settings import NodeSettings, NodeTable
from weft.wire import clients

CLIENTS: Final = "clients"
RUNS: Final = ("chains", "carrier")
EPOCH_NS: Final = 1_763_800_000 * SECOND
STEPS_MAX: Final = 1_000_000  # without time passing: a world that does not settle is a finding


class Hearer(Protocol):
    """A client of a simulated node."""

    def hear(self, message: clients.Answered) -> None:
        """A message of the node."""


class Tree:
    """Nodes by name; `parents` names each one's parent, empty for the root."""

    def __init__(self, parents: Mapping[str, str], filters: Mapping[str, Sequence[FilterSpec]] | None = None) -> None:
        self.now = Now(SECOND, EPOCH_NS)
        self.parents = dict(parents)
        self._queue: deque[tuple[str, Source, list[bytes]]] = deque()
        """Messages under way, in order."""
        self._filters = dict(filters or {})
        self.places: dict[str, Place] = {name: Place(name, number, self) for number, name in enumerate(self.parents, 1)}
        for name in sorted(self.parents, key=self._depth):
            self.start(name)

    def __getitem__(self, name: str) -> "Place":
        return self.places[name]

    def _depth(self, name: str) -> int:
        parent = self.parents[name]
        return 1 + self._depth(parent) if parent else 0

    def settings_of(self, name: str) -> NodeSettings:
        """What the file of a node would say."""
        parent = self.parents[name]
        has_children = name in self.parents.values()
        level = ("collector" if has_children else "sensor") if parent else "root"
        table = NodeTable(name=name, level=level, parent=parent, host="127.0.0.1", runs=RUNS)
        return NodeSettings(node=table, filters=tuple(self._filters.get(name, ())))

    def start(self, name: str) -> None:
        """Start a node on what it has kept."""
        self.places[name].start()
        if parent := self.parents[name]:
            self.command(name, "carrier", AssignParent(f"{parent}:0", parent))
        self.settle()

    def kill(self, name: str) -> None:
        """End a node now: what it has not kept is lost, and nobody hears a goodbye."""
        self.places[name].kill()
        self._queue = deque(item for item in self._queue if item[0] != name)

    def command(self, name: str, core: str, order: Any) -> None:
        """Give an order to a core of a node, and play everything that follows."""
        self.places[name].running.command(core, order, self.now)
        self.settle()

    def attach(self, name: str, peer: bytes, client: Hearer) -> None:
        """Open a client's socket to a node; `peer` is its routing id, never used before."""
        self.places[name].clients[peer] = client

    def say(self, name: str, peer: bytes, message: clients.Asked) -> None:
        """Send a message of a client to its node, and play everything that follows."""
        self.post(name, Source(CLIENTS, peer), clients.encode(message))
        self.settle()

    def post(self, name: str, source: Source, frames: list[bytes]) -> None:
        """Put a message under way; it is received after everything before it."""
        self._queue.append((name, source, frames))

    def settle(self) -> None:
        """Play until no node has anything to do without time passing."""
        for _ in range(STEPS_MAX):
            for place in self.places.values():
                place.act()
            if not self._queue:
                return
            name, source, frames = self._queue.popleft()
            node = self.places[name].node
            if node is not None:
                node.receive(source, frames, self.now)
        raise AssertionError("the tree does not settle")

    def advance(self, span_ms: int) -> None:
        """Let time pass; everybody is woken when it asked to be."""
        end = self.now.mono + span_ms * MILLISECOND
        for _ in range(STEPS_MAX):
            self.settle()
            dues = [due for place in self.places.values() if (due := place.due()) is not None]
            due = min(dues, default=None)
            if due is None or due > end:
                break
            self._pass(max(due, self.now.mono))
            for place in self.places.values():
                place.wake()
        else:
            raise AssertionError("somebody wants to be woken again and again")
        self._pass(end)

    def _pass(self, mono: int) -> None:
        self.now = Now(mono, self.now.wall + mono - self.now.mono)


class Place:
    """One machine: its journal, which outlives its node, and the node while it runs."""

    def __init__(self, name: str, number: int, tree: Tree) -> None:
        self.name, self.tree = name, tree
        self.node_id = bytes([number]) * NODE_ID_BYTES
        self.node: Node | None = None
        self.era = 0
        self.entries: list[Entry] = []
        """Its journal."""
        self.events: list[Any] = []
        self.replies: list[Any] = []
        self.clients: dict[bytes, Hearer] = {}
        self._upward = b""
        self._links = 0

    @property
    def running(self) -> Node:
        """Its node, which runs."""
        assert self.node is not None, f"{self.name} runs"
        return self.node

    def start(self) -> None:
        """Begin on what is in the journal."""
        now = self.tree.now
        self.era = next_era(now.wall, self.era)
        self.node = build_node(self.tree.settings_of(self.name), self.node_id, self.era, self.name)
        self.node.restore(self.entries, len(self.entries) + 1, now)

    def kill(self) -> None:
        """End without a goodbye."""
        self.node, self._upward = None, b""
        self.clients.clear()

    def kept(self, stream: int) -> list[StreamRecord]:
        """The records of a stream in its journal."""
        return [record for _, record in self.entries if isinstance(record, StreamRecord) and record.stream == stream]

    def due(self) -> int | None:
        """When it wants to be woken."""
        return self.node.deadline() if self.node is not None else None

    def wake(self) -> None:
        """Let it look at the clock."""
        due = self.due()
        if self.node is not None and due is not None and due <= self.tree.now.mono:
            self.node.wake(self.tree.now)

    def act(self) -> None:
        """Carry out the node's effects in order; all is durable at once, so nothing waits for a wall."""
        while self.node is not None and (effects := self.node.effects()):
            for effect in effects:
                self._do(effect)

    def _do(self, effect: NodeEffect) -> None:
        match effect:
            case Transmit():
                self._transmit(effect)
            case Persist():
                first = len(self.entries) + 1
                self.entries += enumerate(effect.records, first)
            case Connect():
                self._links += 1
                self._upward = b"%d/%d" % (self.node_id[0], self._links)
            case Disconnect():
                self._upward = b""
            case Perform(work=FetchRecords() as work):
                found = [entry for entry in self.entries if entry[0] > work.after]
                upto = found[-1][0] if found else work.after
                self.running.fetched(RecordsFetched(work.holder, work.after, upto, tuple(found)), self.tree.now)
            case Tell():
                self.events.append(effect.event)
            case Reply():
                self.replies.append(effect.answer)
            case _:
                raise AssertionError(f"nobody here does {effect}")

    def _transmit(self, effect: Transmit) -> None:
        tree = self.tree
        if effect.channel == CLIENTS:
            client = self.clients.get(effect.peer)
            if client is not None:
                client.hear(clients.decode_answered(effect.frames))
        elif effect.channel == "up":
            if self._upward:
                tree.post(tree.parents[self.name], Source("down", self._upward), effect.frames)
        else:
            for place in tree.places.values():
                if place._upward == effect.peer:
                    tree.post(place.name, Source("up", b""), effect.frames)
