"""A store on loopback that does what a test tells it: one node, everything in memory, in the loop of the test."""

import asyncio
from typing import Any, NamedTuple, Self

import msgpack
from msgspec import UNSET, Raw

from weft.base.changes import Chain, Path
from weft.wire.store import clients
from weft.wire.store.clients import Answer, Greeting, Request
from weft.wire.store.path import pack_path


class Held(NamedTuple):
    """An entry."""

    path: Path
    value: bytes
    """Empty: deleted."""
    chain: Chain
    tock: int


class Fault(Exception):
    def __init__(self, etype: str, error: str) -> None:
        super().__init__(error)
        self.etype, self.error = etype, error


def raw_of(packed: bytes) -> Raw:
    """The value, or the one object that stands for none."""
    return Raw(packed) if packed else clients.NO_VALUE


class Connection(asyncio.Protocol):
    def __init__(self, server: "FakeStore") -> None:
        self.server = server
        self.transport: Any = None
        self.watches: dict[int, tuple[Request, clients.PathShortener]] = {}
        self.held = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.server.connections.append(self)
        if self.server.greeting is not None:
            transport.write(clients.encode(self.server.greeting))

    def connection_lost(self, error: Exception | None) -> None:
        self.server.connections.remove(self)

    def data_received(self, data: bytes) -> None:
        self.held += data
        walker = msgpack.Unpacker()
        walker.feed(self.held)
        at, answers = 0, []
        try:
            while True:
                walker.skip()
                request = clients.decode_request(self.held[at : walker.tell()])
                at = walker.tell()
                answers += self.server.take(self, request)
        except msgpack.OutOfData:
            self.held = self.held[at:]
        if answers and not self.transport.is_closing():
            self.transport.write(b"".join(map(clients.encode, answers)))

    def say(self, *answers: Answer) -> None:
        self.transport.write(b"".join(map(clients.encode, answers)))


class FakeStore:
    """`async with` binds and closes it; `kill` and `start` let it go away and come back, with what it had."""

    def __init__(self) -> None:
        self.port = 0
        self.entries: dict[bytes, Held] = {}
        """By the bytes of their paths: True and 1 are two."""
        self.journal: list[Held] = []
        self.forgotten = 0
        """Positions up to this one are no more."""
        self.tick = self.tock = 0
        self.heard: list[Request] = []
        self.is_mute = False
        """Whether it hears, does, and says nothing."""
        self.dies_at = ""
        """The action after which it breaks the connection instead of answering."""
        self.connections: list[Connection] = []
        weft = {"v": 1, "caps": ["watch.since", "watch.latest"]}
        self.greeting: Greeting | None = Greeting(
            seq=0, version=[0, 71, 40], node="a", tick=1, tock=1, qlen=10, weft=weft
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kill()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.listening = await loop.create_server(lambda: Connection(self), "127.0.0.1", self.port)
        self.port = self.listening.sockets[0].getsockname()[1]

    def kill(self) -> None:
        self.listening.close()
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        for connection in list(self.connections):
            connection.transport.abort()

    def asked(self, action: str) -> int:
        return sum(request.action == action for request in self.heard)

    def put(self, path: Path, value: Any) -> None:
        """Somebody else writes."""
        self._write(path, msgpack.packb(value))

    def drop(self, path: Path) -> None:
        """Somebody else deletes."""
        self._write(path, b"")

    def take(self, connection: Connection, request: Request) -> list[Answer]:
        self.heard.append(request)
        if self.is_mute:
            return []
        try:
            answers = getattr(self, f"do_{request.action}")(connection, request)
        except Fault as fault:
            answers = [Answer(seq=request.seq, tock=self.tock, etype=fault.etype, error=fault.error)]
        except AttributeError:
            answers = [Answer(seq=request.seq, etype="bad-request", error=f"no action {request.action!r}")]
        if self.dies_at == request.action:
            self.dies_at = ""
            connection.transport.abort()
            return []
        return answers  # type: ignore[no-any-return]  # what the methods below say

    def do_get_value(self, _: Connection, request: Request) -> list[Answer]:
        held = self.entries.get(pack_path(request.path))
        if held is None:
            return [Answer(seq=request.seq, tock=self.tock, chain=None if request.nchain else UNSET)]
        chain = clients.links_of(held.chain) if request.nchain else UNSET
        return [Answer(seq=request.seq, tock=held.tock, chain=chain, value=raw_of(held.value))]

    def do_set_value(self, _: Connection, request: Request) -> list[Answer]:
        return [self._change(request, bytes(request.value))]

    def do_delete_value(self, _: Connection, request: Request) -> list[Answer]:
        return [self._change(request, b"")]

    def do_delete_tree(self, _: Connection, request: Request) -> list[Answer]:
        found = [held.path for held in self.entries.values() if self._is_below(held.path, request) and held.value]
        for path in found:
            self._write(path, b"")
        return [Answer(seq=request.seq, tock=self.tock, changed=len(found))]

    def do_enum(self, _: Connection, request: Request) -> list[Answer]:
        depth = len(request.path)
        below = {
            held.path[depth]: True
            for held in self.entries.values()
            if held.path[:depth] == request.path and len(held.path) > depth and (held.value or request.empty is True)
        }
        return [Answer(seq=request.seq, tock=self.tock, result=list(below))]

    def do_get_tree(self, _: Connection, request: Request) -> list[Answer]:
        shortener = clients.PathShortener()
        items = self._snapshot(request, shortener)
        return [Answer(seq=request.seq, state="start"), *items, Answer(seq=request.seq, state="end")]

    def _snapshot(self, request: Request, shortener: clients.PathShortener) -> list[Answer]:
        return [
            self._item(request, shortener, held)
            for _, held in sorted(self.entries.items())
            if self._is_below(held.path, request) and (held.value or request.empty is True)
        ]

    def do_get_state(self, _: Connection, request: Request) -> list[Answer]:
        return [
            Answer(
                seq=request.seq,
                nodes={"a": self.tick} if request.nodes else UNSET,
                missing={} if request.missing else UNSET,
            )
        ]

    def do_watch(self, connection: Connection, request: Request) -> list[Answer]:
        shortener = clients.PathShortener()
        connection.watches[request.seq] = (request, shortener)
        knows = self.greeting is not None and self.greeting.weft is not UNSET
        here: Any = len(self.journal) if knows else UNSET
        start = Answer(seq=request.seq, state="start", position=here)
        uptodate = Answer(seq=request.seq, state="uptodate", position=here)
        if not (knows and isinstance(request.since, int)):
            return [start, *self._snapshot(request, shortener), uptodate] if request.fetch else [start]
        start = Answer(seq=request.seq, state="start", position=request.since)
        if request.since < self.forgotten:
            gap = Answer(seq=request.seq, state="gap")
            return [start, gap, *self._snapshot(request, shortener), uptodate]
        missed = [
            self._item(request, shortener, held, at)
            for at, held in enumerate(self.journal, 1)
            if at > request.since and self._is_below(held.path, request)
        ]
        return [start, *missed]

    def _change(self, request: Request, raw: bytes) -> Answer:
        held = self.entries.get(pack_path(request.path))
        before = held.value if held else b""
        if request.chain is None and before:
            raise Fault("exists", "ClientChainError('Entry already exists')")
        if isinstance(request.chain, clients.Links):
            head = (request.chain.node, request.chain.tick)
            if held is None or held.chain.head != head:
                raise Fault("chain-mismatch", "ClientChainError('Chain is another one')")
        if bytes(request.prev) and bytes(request.prev) != before:
            raise Fault("value-mismatch", "ClientError('Data is another')")
        if before == raw and (request.idem or not raw):
            return Answer(seq=request.seq, tock=self.tock, changed=False)
        held = self._write(request.path, raw)
        is_plain = request.chain is UNSET and not bytes(request.prev)
        chain = clients.links_of(held.chain) if request.nchain else UNSET
        prev = raw_of(before) if is_plain else clients.NO_VALUE
        return Answer(seq=request.seq, tock=held.tock, changed=True, chain=chain, prev=prev)

    def _write(self, path: Path, raw: bytes) -> Held:
        self.tick, self.tock = self.tick + 1, self.tock + 1
        held = self.entries[pack_path(path)] = Held(path, raw, Chain((("a", self.tick),)), self.tock)
        self.journal.append(held)
        for connection in self.connections:
            for request, shortener in connection.watches.values():
                if self._is_below(path, request):
                    connection.say(self._item(request, shortener, held, len(self.journal)))
        return held

    def _item(self, request: Request, shortener: clients.PathShortener, held: Held, at: int = 0) -> Answer:
        depth, rest = shortener.cut(held.path[len(request.path) :])
        knows = self.greeting is not None and self.greeting.weft is not UNSET
        position: Any = at if at and knows else UNSET
        chain = clients.links_of(held.chain) if request.nchain else UNSET
        return Answer(
            seq=request.seq,
            tock=held.tock,
            depth=depth,
            path=rest,
            chain=chain,
            value=raw_of(held.value),
            position=position,
        )

    @staticmethod
    def _is_below(path: Path, request: Request) -> bool:
        length = len(request.path)
        low, high = request.min_depth or 0, request.max_depth
        deep = len(path) - length
        return path[:length] == request.path and low <= deep and (not isinstance(high, int) or deep <= high)
