"""`weft.doc.Client`: reads and edits a document that several people edit (JAM-040)."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self
from weakref import WeakSet

import msgspec

from weft.client.doc.errors import DocError, TooLarge, Unanswered, Unreachable
from weft.client.doc.finding import MEND, Node
from weft.client.doc.limits import ENTRIES, ENTRIES_BYTES, ENTRY_BYTES, TIMEOUT_S
from weft.client.doc.link import AFTER, Call, Link
from weft.client.doc.values import Conflict, Operation, Reference, Written, reference_of
from weft.client.doc.watching import Watch
from weft.wire.document.messages import OPERATION_BYTES_MAX

Side = Literal["first", "second", "seen"]
READS = frozenset({"sessions", "status", "peers", "sources", "show", "log", "conflicts", "parked", "element", "digest"})
READS_TOO = frozenset({"board", "import"})
"""Requests that are no reads, but have no further effect if they are sent twice."""


class Client:
    """Reads and edits one session at one node: `async with weft.doc.Client(session="Hall 5") as doc: …`.

    `node` is a state directory, a node's name, or an endpoint; without it `WEFT_DOC`, else the only node with a
    document that runs here. `session` may be left out if the node has only one. Entering it raises Unreachable if no
    node is there. Later it reconnects by itself, and requests wait for that, at most `timeout` seconds.
    """

    def __init__(self, node: Node = None, *, session: str = "", timeout: float = TIMEOUT_S) -> None:
        self._session, self._timeout_s = session, timeout
        self._link = Link(node)
        self._watches: WeakSet[Watch] = WeakSet()

    async def __aenter__(self) -> Self:
        """Connect."""
        try:
            await self._link.open()
        except BaseException:
            self._link.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect: watches end, and pending requests fail with `Closed`."""
        for watch in list(self._watches):
            watch.close()
        self._link.close()

    async def ask(self, verb: str, /, **args: Any) -> Any:
        """Send any request of the table in docs/doc.md, with its arguments; DocError if it is refused."""
        call = Call(repeats=verb in READS or verb in READS_TOO)
        number = self._link.ask(verb, self._session, args, call)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await call.answered
        except TimeoutError:
            if self._link.forget(number):
                text = f"the node has been away for {self._timeout_s:g} s; the request was not sent"
                raise Unreachable(text, mend=MEND) from None
            text = f"no answer within {self._timeout_s:g} s; it may have been done, or be done still"
            raise Unanswered(text, mend=AFTER) from None
        finally:
            self._link.forget(number)

    # Reading

    async def sessions(self) -> list[dict[str, Any]]:
        """The sessions of this node, each with name, state and schema."""
        answer: list[dict[str, Any]] = await self.ask("sessions")
        return answer

    async def status(self) -> dict[str, Any]:
        """The state of the session: name, schema, uuid, endpoint, operations, check, peers by state, conflicts, …."""
        answer: dict[str, Any] = await self.ask("status")
        return answer

    async def peers(self) -> list[dict[str, Any]]:
        """The peers that are, or were, connected with this node."""
        answer: list[dict[str, Any]] = (await self.ask("peers"))["peers"]
        return answer

    async def sources(self) -> list[dict[str, Any]]:
        """All sources of entries, and up to which number this node has each of them."""
        answer: list[dict[str, Any]] = (await self.ask("sources"))["sources"]
        return answer

    async def digest(self) -> dict[str, Any]:
        """`digest` of the document, `check` of the log: two nodes where they are equal have the same (DOC-050)."""
        answer: dict[str, Any] = await self.ask("digest")
        return answer

    async def show(self, where: Reference | None = None, *, eids: bool = True) -> str:
        """The document, or an element of it, as Canonical XML on one line."""
        args = {"eids": eids} | ({} if where is None else {"reference": reference_of(where)})
        while True:
            first = await self.ask("show", **args)
            pieces, size = [first["xml"]], len(first["xml"])
            while size < first["size"]:
                piece = await self._piece(args, first["of"], size)
                if piece is None:
                    break  # the document has changed meanwhile: read it again from the start
                pieces.append(piece["xml"])
                size += len(piece["xml"])
            else:
                return b"".join(pieces).decode()

    async def _piece(self, args: dict[str, Any], of: str, begin: int) -> Any:
        try:
            return await self.ask("show", **args, **{"of": of, "from": begin})
        except DocError as error:
            if error.code == "changed":
                return None
            raise

    async def element(self, where: Reference) -> dict[str, Any]:
        """One element: `xml`, `slot`, and `history`: who wrote which part of it, when, and what was there before."""
        answer: dict[str, Any] = await self.ask("element", reference=reference_of(where))
        return answer

    async def conflicts(self, *, closed: bool = False) -> list[Conflict]:
        """The open conflicts, with `closed` all of them, in the order of the document's history (DOC-040)."""
        answer = await self.ask("conflicts", closed=closed)
        return msgspec.convert(answer["conflicts"], list[Conflict])

    async def parked(self) -> list[Operation]:
        """Entries whose target is not known here yet (DOC-021)."""
        return msgspec.convert((await self.ask("parked"))["parked"], list[Operation])

    async def log(self, *, start: int = 0, source: str = "") -> AsyncIterator[Operation]:
        """The operations that are known without a gap, in the order in which this node got them, from position `start` on."""
        position = start
        while True:
            answer = await self.ask("log", **{"from": position, "source": source})
            for row in answer["operations"]:
                yield msgspec.convert(row, Operation)
            position = answer["next"]
            if position >= answer["total"]:
                return

    async def tail(self, count: int) -> list[Operation]:
        """The last operations that this node got, oldest first."""
        answer = await self.ask("log", tail=count)
        rows = msgspec.convert(answer["operations"], list[Operation])
        if answer["next"] < answer["total"]:
            rows += [operation async for operation in self.log(start=answer["next"])]
        return rows

    async def board(self, at: float | None = None) -> dict[str, Any]:
        """`board`: what a scoreboard shows, now or at an instant of session time (JAM-010); also the keys of `digest`."""
        answer: dict[str, Any] = await self.ask("board", **({} if at is None else {"at": at}))
        return answer

    def watch(self, *, operations: bool = True, events: bool = True) -> Watch:
        """Every change from now on: `async for change in doc.watch(): …`.

        Without `operations` only their effect on the document is reported; without `events` no events around it.
        """
        watch = Watch(self._link, lambda: self._session, {"operations": operations, "events": events})
        self._watches.add(watch)
        return watch

    # Editing

    async def add(  # tidy: each is a separate part of an operation
        self,
        where: Reference,
        xml: str = "",
        *,
        text: str = "",
        by: str = "",
        resolves: str = "",
        force: bool = False,
    ) -> Written:
        """Add elements, e.g. `'<penalty team="home" person="123" code="B"/>'`, or append text (DOC-030)."""
        return await self._edit("add", where, xml=xml, text=text, by=by, resolves=resolves, force=force)

    async def set(  # tidy: as above
        self,
        where: Reference,
        attributes: Mapping[str, Any] | None = None,
        *,
        text: str | None = None,
        by: str = "",
        resolves: str = "",
        force: bool = False,
    ) -> Written:
        """Set attributes, or the text, of an element (DOC-032): `doc.set("period=1 jam=3", {"duration": 90})`."""
        named = {str(name): str(value) for name, value in (attributes or {}).items()}
        return await self._edit("set", where, attributes=named, text=text, by=by, resolves=resolves, force=force)

    async def remove(self, where: Reference, *, by: str = "", resolves: str = "", force: bool = False) -> Written:
        """Remove an element and everything in it (DOC-033)."""
        return await self._edit("remove", where, by=by, resolves=resolves, force=force)

    async def undo(self, entry: str = "", *, by: str = "", force: bool = False) -> Written:
        """Undo an entry by a further one (DOC-055): `SOURCE:N`, or the last one of a person that is in effect.

        DocError `superseded` if somebody else has written there since; `force` undoes it all the same.
        """
        return msgspec.convert(await self.ask("undo", entry=entry, by=by, force=force), Written)

    async def redo(self, *, by: str = "", force: bool = False) -> Written:
        """Redo the last undo of a person, if nothing was entered since."""
        return msgspec.convert(await self.ask("redo", by=by, force=force), Written)

    async def resolve(
        self, conflict: str, side: Side | None = None, *, value: str | None = None, by: str = ""
    ) -> Written:
        """Close a conflict for everybody (DOC-041): as the first or the second party wanted it, or with another value.

        `seen`: leave everything as it is. Which of these is possible depends on the kind of conflict: docs/doc.md.
        """
        args = {"id": conflict, "choice": side or "", "value": value, "by": by}
        return msgspec.convert(await self.ask("resolve", **args), Written)

    async def edit(self, verb: str, words: Sequence[str], **more: Any) -> Written:
        """Make an entry from words as people type them: `doc.edit("set", ["period=1", "jam=3", "duration=90"])`."""
        return await self._entered({"verb": verb, "words": list(words), **more})

    async def chat(self, text: str) -> int:
        """Send a chat line to people at all other nodes; returns the number of nodes."""
        return int((await self.ask("chat", text=text))["told"])

    async def chats(self) -> list[dict[str, Any]]:
        """The chat lines since this node was started, oldest first: at, peer, text."""
        answer: list[dict[str, Any]] = (await self.ask("chat"))["chats"]
        return answer

    async def bring(self, bodies: Iterable[bytes]) -> dict[str, int]:
        """Add operations of other sources to the log, e.g. from an exported one.

        Returns how many were new (`taken`), `known` already, and `refused`.
        """
        counts = {"taken": 0, "known": 0, "refused": 0}
        for batch in batches(bodies):
            answer = await self.ask("import", operations=batch)
            for name in counts:
                counts[name] += answer[name]
        return counts

    async def _edit(self, verb: str, where: Reference, **args: Any) -> Written:
        return await self._entered({"verb": verb, "reference": reference_of(where), **args})

    async def _entered(self, args: dict[str, Any]) -> Written:
        """Send an entry to the node; TooLarge if it cannot fit into one operation."""
        size = len(msgspec.msgpack.encode(args))
        if size > ENTRY_BYTES:
            raise TooLarge(f"{size:,} bytes; an entry has at most {OPERATION_BYTES_MAX:,}", mend="enter it in parts")
        return msgspec.convert(await self.ask("edit", wait=False, **args), Written)


def batches(bodies: Iterable[bytes]) -> Iterable[list[bytes]]:
    """The operations in groups that fit into one request.

    >>> [len(batch) for batch in batches([b"x"] * 120)]
    [50, 50, 20]
    """
    batch: list[bytes] = []
    size = 0
    for body in bodies:
        if batch and (len(batch) == ENTRIES or size + len(body) > ENTRIES_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(body)
        size += len(body)
    if batch:
        yield batch
