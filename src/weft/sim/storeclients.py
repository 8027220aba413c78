"""Clients of the store on a simulated machine: one that asks what the plan says, and some that watch everything.

They speak the client protocol in bytes over a local connection: in order and whole, until the node's process ends or
closes it. Then they reconnect. What they were answered, and what they were shown, are facts.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw

from weft.base.changes import Link, Path
from weft.base.now import MILLISECOND, SECOND
from weft.cores.store.messages import ClientCame, ClientGone, ClientPaused, ClientResumed, Dial, DialFailed
from weft.sim.plan import Action
from weft.wire.store.clients import Answer, ClientHello, Greeting, Links, PathExpander, Request, decode_answer, encode
from weft.wire.store.pack import pack, unpacker
from weft.wire.store.path import text_of

if TYPE_CHECKING:
    from weft.sim.machine import Machine

CHANNEL: Final = "store-clients"
ADDRESS: Final = "127.0.0.1"
REACH_NS: Final = 100_000  # from one end of a connection to the other, on one machine
AGAIN_NS: Final = SECOND  # between two attempts to connect
BOOT_NS: Final = 200 * MILLISECOND
WINDOW: Final = 5  # items that may be under way to a careful watcher


def cut(data: bytes) -> Iterator[bytes]:
    """The messages in bytes that arrived together."""
    reader, begin = unpacker(data), 0
    while begin < len(data):
        reader.skip()
        end = reader.tell()
        yield data[begin:end]
        begin = end


def path_of(number: int) -> Path:
    """The entries of a run, by number."""
    return ("k", str(number))


class StoreClient:
    """One client."""

    def __init__(self, machine: "Machine", name: str) -> None:
        self.machine, self.name = machine, name
        self.peer = b""
        """Its connection, while there is one."""
        self.is_open = False
        """Whether the node has greeted it."""
        self.seq = 0

    @property
    def title(self) -> str:
        """Its name among all clients."""
        return f"{self.name} of {self.machine.name}"

    def begin(self) -> None:
        """Connect."""
        if self.peer:
            return
        self.peer = self.machine.store_clients.next_peer()
        self.machine.obey("store", ClientCame(self.peer, ADDRESS, is_local=True))

    def end(self) -> None:
        """The connection has ended."""
        self.peer, self.is_open = b"", False
        self.ended()

    def ended(self) -> None:
        """What the client does when its connection has ended."""

    def take(self, data: bytes) -> None:
        """Take bytes from the node."""
        for message in map(decode_answer, cut(data)):
            if isinstance(message, Greeting):
                self.is_open = True
                self.greeted()
            elif self.is_open:
                self.hear(message)

    def greeted(self) -> None:
        """The node has greeted it, and it may begin."""

    def hear(self, answer: Answer) -> None:
        """An answer, or an item of a stream."""

    def say(self, request: Request | ClientHello) -> None:
        """Send a request, which arrives after a short delay, unless the process ends before."""
        frames = [encode(request)]
        self.machine.later(REACH_NS, partial(self._arrive, self.peer, frames))

    def _arrive(self, peer: bytes, frames: list[bytes]) -> None:
        if peer == self.peer:
            self.machine.hear(CHANNEL, peer, frames, None)

    def ask(self, **fields: Any) -> int:
        """Send a request with these fields; returns its number."""
        self.seq += 1
        self.say(Request(seq=self.seq, **fields))
        return self.seq

    def note(self, what: str, value: list[Any]) -> None:
        """Record a fact about what it was told."""
        self.machine.fabric.recorder.note(self.machine.name, self.machine.era, "ok", what, value)


class Asker(StoreClient):
    """Writes, deletes and reads as planned."""

    def __init__(self, machine: "Machine") -> None:
        super().__init__(machine, "asker")
        self.asked: dict[int, tuple[Path, Any]] = {}
        """Requests without an answer: path, and the value that was required there."""
        self.heads: dict[Path, Link | None] = {}
        """The last change of each entry that it was told of."""

    def ended(self) -> None:
        self.asked.clear()
        self.heads.clear()

    def obey(self, action: Action) -> None:
        """`how`: put, flood, compare, delete or read; `number`: which entry; `second`: makes the value unique."""
        recorder = self.machine.fabric.recorder
        if not self.is_open:
            recorder.meet("a client that nobody serves")
            return
        path = path_of(action.number)
        fields: dict[str, Any] = {"action": ACTIONS[action.how], "path": path, "nchain": 1}
        if action.how in ("put", "compare", "flood"):
            fields["value"] = Raw(pack(action.second if action.how != "flood" else f"{action.second:0{FLOOD_BYTES}}"))
        wanted: Any = ANY
        if action.how == "compare" and path in self.heads:
            wanted = self.heads[path]
            fields["chain"] = None if wanted is None else Links(*wanted)
        self.asked[self.ask(**fields)] = (path, wanted)
        recorder.counts["store asked"] += 1

    def hear(self, answer: Answer) -> None:
        path, wanted = self.asked.pop(answer.seq, ((), ANY))
        recorder = self.machine.fabric.recorder
        if answer.error:
            recorder.meet(f"a client told {answer.etype}")
            self.heads.pop(path, None)
            return
        head = (answer.chain.node, answer.chain.tick) if isinstance(answer.chain, Links) else None
        is_there = bytes(answer.value) != b"" or answer.changed is not UNSET
        self.heads[path] = head if is_there else None
        if head is not None and answer.tock >= 0:
            self._note_version(text_of(path), head, answer)
        if answer.changed is True and head is not None:
            recorder.counts["store acknowledged"] += 1
            recorder.counts["taken"] += 1
            self.note("stored", [text_of(path), *head, wanted if wanted in (ANY, None) else list(wanted)])

    def _note_version(self, path: str, head: Link, answer: Answer) -> None:
        """Record what it wrote or read, in the order of changes (STO-010): at this node that never goes back."""
        version = [answer.tock, head[1], *(255 - byte for byte in head[0].encode()), 256]
        what = "wrote-version" if answer.changed is True else "read-version"
        self.note(what, [self.title, path, version])


ANY: Final = "any"
FLOOD_BYTES: Final = 20_000  # of a value of a flood
ACTIONS: Final = {
    "put": "set_value",
    "flood": "set_value",
    "compare": "set_value",
    "delete": "delete_value",
    "read": "get_value",
}


class Watcher(StoreClient):
    """Watches all entries, and resumes where it was after a reconnect."""

    def __init__(self, machine: "Machine", number: int) -> None:
        super().__init__(machine, f"watcher {number}")
        self.window = WINDOW if number % 2 else 0
        self.position: Any = None
        self._expander = PathExpander()

    def greeted(self) -> None:
        if self.window:
            self.say(ClientHello(qlen=self.window, seq=0))
        self._expander = PathExpander()
        more: dict[str, Any] = {"fetch": True} if self.position is None else {"since": self.position}
        self.ask(action="watch", path=(), mode="all", nchain=1, empty=True, **more)
        self.note("watching", [self.name, "fresh" if self.position is None else "again", 0])

    def ended(self) -> None:
        self.note("watching", [self.name, "gone", 0])

    def hear(self, answer: Answer) -> None:
        if answer.error:
            self.machine.fabric.recorder.meet(f"a watcher told {answer.etype}")
            self.position = None
            self.machine.later(AGAIN_NS, partial(self.machine.store_clients.drop, self))
            return
        if self.window and answer.wseq:
            self.say(Request(seq=answer.seq, state="ack", ack=answer.wseq))
        lsn = 0
        if answer.position is not UNSET:
            self.position, lsn = answer.position, answer.position[1]
        if answer.state:
            self._turn(answer.state, lsn)
        elif isinstance(answer.path, tuple) and answer.depth is not UNSET:
            path = self._expander.full(answer.depth, answer.path)
            self._shown(path, lsn, answer)

    def _turn(self, state: str, lsn: int) -> None:
        if state == "gap":
            self.machine.fabric.recorder.meet("a watcher that was told of a gap")
            self.position = None
        if state in ("gap", "uptodate"):
            self.note("watching", [self.name, state, lsn])

    def _shown(self, path: Path, lsn: int, answer: Answer) -> None:
        assert isinstance(answer.chain, Links), "asked for one link"
        self.machine.fabric.recorder.counts["store shown"] += 1
        head = [answer.chain.node, answer.chain.tick]
        self.note("shown", [self.name, lsn, text_of(path), *head, answer.tock, bytes(answer.value) == b""])


class StoreClients:
    """All clients of one machine's store."""

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self.asker = Asker(machine)
        self.watchers = [Watcher(machine, number) for number in range(machine.plan.watchers)]
        self._serial = 0
        self._reading_at = 0

    def __iter__(self) -> Iterator[StoreClient]:
        if self.machine.fabric.plan.store is not None:
            yield from (self.asker, *self.watchers)

    def next_peer(self) -> bytes:
        """A name for a new connection."""
        self._serial += 1
        return b"client %d" % self._serial

    def deliver(self, peer: bytes, data: bytes) -> bool:
        """Deliver bytes of the node to a client, after a short delay."""
        self.machine.later(REACH_NS, partial(self._arrive, peer, data))
        return True

    def _arrive(self, peer: bytes, data: bytes) -> None:
        for client in self:
            if client.peer == peer:
                client.take(data)

    def hang_up(self, peer: bytes) -> None:
        """The node closes a connection."""
        self.machine.later(REACH_NS, partial(self._end, peer))

    def _end(self, peer: bytes) -> None:
        for client in self:
            if client.peer == peer:
                client.end()
                self.machine.later(AGAIN_NS, client.begin)

    def drop(self, client: StoreClient) -> None:
        """A client closes its connection and reconnects."""
        if client.peer:
            self.machine.obey("store", ClientGone(client.peer))
            client.end()
            self.machine.later(AGAIN_NS, client.begin)

    def dial(self, work: Dial) -> None:
        """Always fails: there is no MoaT-KV server."""
        self.machine.later(REACH_NS, partial(self.machine.obey, "store", DialFailed(work.tag, "refused")))

    def stall(self, span_ns: int) -> None:
        """The watchers do not read for a while."""
        self._reading_at = max(self._reading_at, self.machine.world.at + span_ns)
        for watcher in self.watchers:
            if watcher.peer:
                self.machine.obey("store", ClientPaused(watcher.peer))
                self.machine.later(span_ns, partial(self.machine.obey, "store", ClientResumed(watcher.peer)))

    def note_start(self) -> None:
        """The node's process has begun."""
        for client in self:
            self.machine.later(self.machine.chance.randint(0, BOOT_NS), client.begin)

    def note_end(self) -> None:
        """It has ended."""
        for client in self:
            client.end()

    def waits(self) -> str:
        """What a client waits for; empty if nothing."""
        if not all(client.is_open for client in self):
            return "a client that is not served"
        if self.machine.world.at < self._reading_at:
            return "a client that does not read"
        return f"{len(self.asker.asked)} answers to a client" if self.asker.asked else ""
