"""Roots that follow one another by the Clone pattern, in virtual time: a snapshot is a connection, an update may be lost.

Each has a disk, which stands for its configuration core: a write is there after a moment, is told, and is answered.
"""

import heapq
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Confirm, Confirmed, Connect, Disconnect, Effect, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND, Now, seconds
from weft.cores.clone.context import ASK, FOLLOW, SERVE
from weft.cores.clone.core import Clone
from weft.cores.clone.messages import CloneSettings, LearnPairs, TakeRoot, Wanted, WritesDone, WritesWanted
from weft.wire import chp

WALL = 1_795_000_000 * SECOND
SYNC_NS = MILLISECOND
PORT = 5_556


class Post(msgspec.Struct, frozen=True):
    """A message under way to one run of a node; `line`: the connection that carries it, empty for a publication."""

    to: "Node"
    run: int
    line: tuple[str, str, bytes] | str
    read: Callable[[list[bytes]], Any]
    frames: list[bytes]
    source: Source

    def __call__(self) -> None:
        if self.to.runs == self.run:
            self.to.hear(self.read(self.frames), self.source)


class Node:
    """One root: its core, its disk, and all that ever stood under each of its keys."""

    def __init__(self, net: "Net", name: str, source: str) -> None:
        self.net, self.name, self.source = net, name, source
        self.settings = CloneSettings(serves=True, source=f"{source}:{PORT}" if source else "", prefix="/up/")
        self.disk: dict[str, tuple[bytes, int]] = {}
        self.number = 0
        self.been: dict[str, set[bytes]] = {}
        self.core: Clone | None = None
        self.runs = 0
        self.tag: bytes = b""
        """Of its present question."""
        self.follows = False

    @property
    def pairs(self) -> dict[str, bytes]:
        """What its disk has."""
        return {key: value for key, (value, _) in self.disk.items()}

    @property
    def below(self) -> dict[str, bytes]:
        """What it has of the one that it follows."""
        return {key.removeprefix("/up"): value for key, value in self.pairs.items() if key.startswith("/up/")}

    def start(self) -> None:
        self.runs += 1
        self.core = Clone(self.settings, self.name.encode().ljust(16, b"."))
        self.follows, self.tag = False, b""
        pairs = tuple((key, value) for key, (value, _) in self.disk.items())
        self.core.command(LearnPairs(pairs, self.number, tuple(n for _, n in self.disk.values())), self.net.now)
        self.core.command(TakeRoot(), self.net.now)
        self.take()

    def crash(self) -> None:
        self.core = None
        self.runs += 1

    def hear(self, message: Any, source: Source) -> None:
        if self.core is not None:
            with suppress(PeerError):
                self.core.receive(message, source, self.net.now)
            self.take()

    def order(self, order: Any) -> None:
        if self.core is not None:
            self.core.command(order, self.net.now)
            self.take()

    def write(self, writes: tuple[Wanted, ...]) -> None:
        """Durable, then told: pair for pair, with the next number each."""
        changed: list[tuple[str, bytes | None]] = []
        for key, value, *_ in [(write.key, write.value) for write in writes]:
            if self.pairs.get(key, b"") != value:
                self.number += 1
                self.been.setdefault(key, set()).add(value)
                self.disk[key] = value, self.number
                if not value:
                    del self.disk[key]
                changed.append((key, value or None))
        if changed:
            numbers = tuple(range(self.number - len(changed) + 1, self.number + 1))
            self.order(LearnPairs(tuple(changed), self.number, numbers))

    def take(self) -> None:
        while self.core is not None and (effects := self.core.effects()):
            for effect in effects:
                self.net.do(self, effect)
        if self.core is not None and (due := self.core.deadline()) is not None:
            run = self.runs
            self.net.at(max(due, self.net.mono), lambda: self.wake(run))

    def wake(self, run: int) -> None:
        due = self.core.deadline() if self.core is not None and self.runs == run else None
        if self.core is not None and due is not None and due <= self.net.mono:
            self.core.wake(self.net.now)
            self.take()


class Net:
    """`chain`: each follows the one before it."""

    def __init__(self, seed: int, chain: tuple[str, ...], most_ns: int) -> None:
        self.mono = SECOND
        self.most_ns = most_ns
        """How long a message is under way at most."""
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.cut: set[str] = set()
        self._random = Chance(f"{seed}/clone").random
        self._serial = 0
        self._last: dict[Any, int] = {}
        self.nodes = {name: Node(self, name, source) for name, source in zip(chain, ("", *chain), strict=False)}
        for node in self.nodes.values():
            node.start()

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    def at(self, due: int, do: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self.heap, (due, self._serial, do))

    def run(self, span_s: float) -> None:
        """Let time pass."""
        end = self.mono + seconds(span_s)
        while self.heap and self.heap[0][0] <= end:
            due, _, do = heapq.heappop(self.heap)
            self.mono = max(self.mono, due)
            do()
        self.mono = end

    def do(self, node: Node, effect: Effect) -> None:
        match effect:
            case Send(channel="clone-publish"):
                for other in self.nodes.values():
                    if other.source == node.name and other.follows:
                        frames = chp.encode_update(effect.message)
                        source = Source(FOLLOW, FOLLOW.encode())
                        self.post(node, Post(other, other.runs, "", chp.decode_update, frames, source))
            case Send(channel="clone-ask"):
                server, line = self.nodes[node.source], (node.name, node.source, node.tag)
                frames = chp.encode_ask(effect.message)
                source = Source(SERVE, b"%s/%s" % (node.name.encode(), node.tag))
                self.post(node, Post(server, server.runs, line, chp.decode_ask, frames, source))
            case Send(channel="clone-serve"):
                name, _, tag = effect.peer.partition(b"/")
                other, frames = self.nodes[name.decode()], chp.encode_answer(effect.message)
                line = (node.name, other.name, tag)
                self.post(node, Post(other, other.runs, line, chp.decode_answer, frames, Source(ASK, tag)))
            case Confirm():
                done = Confirmed(effect.channel, effect.peer, effect.count, effect.token, 0)
                self._later(node, lambda: node.order(done))
            case Connect(channel="clone-ask"):
                node.tag = effect.tag
            case Connect() | Disconnect():
                node.follows = isinstance(effect, Connect)
            case Tell(event=WritesWanted() as wanted):
                self._later(node, lambda: self._write(node, wanted))
            case _:
                pass

    def _write(self, node: Node, wanted: WritesWanted) -> None:
        node.write(wanted.writes)
        node.order(WritesDone(wanted.ticket))

    def _later(self, node: Node, do: Callable[[], None]) -> None:
        run = node.runs
        self.at(self.mono + SYNC_NS, lambda: do() if node.runs == run else None)

    def post(self, sender: Node, post: Post) -> None:
        """On its way, unless a cable is out or nobody is there."""
        if post.to.core is None or (sender.name in self.cut) != (post.to.name in self.cut):
            return
        due = self.mono + 1 + int(self._random() * self.most_ns)
        if post.line:
            due = self._last[post.line] = max(due, self._last.get(post.line, 0))
        self.at(due, post)


def line_of(entry: tuple[Any, ...]) -> Any:
    """The connection that carries what stands in the heap, empty for a publication, None for what is no message."""
    return entry[2].line if isinstance(entry[2], Post) else None
