"""`weft.chain_client`: a program's place in the chains of its node (CLI-020)."""

import asyncio
import logging
import os
from asyncio import Future
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from msgspec.structs import replace

from weft.base.errors import UserError
from weft.client.chain.addressing import AFTER_ALL, PARENTS_OF_LOCAL, destination
from weft.client.chain.checking import check_name, check_registration
from weft.client.chain.connection import Connection
from weft.client.chain.finding import Node, endpoint_of, locate
from weft.client.chain.limits import AWAY_S, FRAMES_MAX, HELLO_S, PAYLOAD_BYTES_MAX, TYPE_CHARS_MAX
from weft.client.chain.links import CAUSE, Handler, Link
from weft.client.chain.message import Receipt, SendFailed
from weft.client.chain.outgoing import Outgoing
from weft.client.chain.payloads import to_frames
from weft.client.chain.recording import Recording
from weft.client.chain.sending import Pending, Sends
from weft.client.link.dealer import dealer
from weft.client.link.keyring import Given, Keyring
from weft.client.link.opening import Curve, Target
from weft.client.link.sockets import Opener
from weft.wire import clients

LOG: Final = logging.getLogger("weft.client")
H = TypeVar("H", bound=Handler)
LATE: Final = frozenset({"expired", "not-holding"})


class Decorator(Protocol):
    """Registers a handler, and leaves it as it is."""

    def __call__(self, handler: H, /) -> H: ...


MENDS: Final = {
    "bad-type": "1 to 64 of a-z 0-9 . _ -; `*`, or an end in `.*`, for all that match",
    "bad-position": "place= 1 to 4,294,967,294, weft.BEFORE_ALL or weft.AFTER_ALL",
    "confirm-on-out": 'on="in": only what has arrived can be confirmed',
    "denied": "reads: what begins with weft. is not rewritten by programs; others may what [[chains.allow]] of the node says",
    "limit": "fewer registrations, or higher limits in the node's [chains]",
}


class ChainClient:
    """A client of a node's chains, to be used with `async with`, in one event loop.

    While the node is away, sends wait and registrations are kept; both are sent again when it is back (CLI-022).
    """

    def __init__(self, name: str, node: Node = None, curve: Given = None, *, record: str | Path | None = None) -> None:
        check_name(name)
        self._tape = None if record is None else Recording(record)
        self.name = name
        self.counts: Counter[str] = Counter()
        """How often something failed without ending the client: `late answers`, `handlers failed`, `copies lost`, …"""
        self.session: clients.Welcome | None = None
        """The node's welcome on the current connection; None while the node is away."""
        self.here: clients.Welcome
        """The node's name, address, level, parent and children, as it said them last."""
        self._node, self._curve = node, curve
        self.links: dict[int, Link] = {}
        self._sends, self._outgoing = Sends(), Outgoing()
        self._tag = self._reg = 0
        self._is_flush_due = False

    async def __aenter__(self) -> Self:
        """Attach; UserError if no node is found, or none answers within ten seconds."""
        self._loop = asyncio.get_running_loop()
        self._standing: Future[None] = self._loop.create_future()
        self._end: Future[None] = self._loop.create_future()
        hello = clients.Hello(v=clients.VERSION, role="client", name=self.name, id=os.urandom(16), pid=os.getpid())
        self._connection = Connection(_opener(self._node, self._curve), hello, self, self.counts, self._tape)
        self._connection.open()
        try:
            async with asyncio.timeout(HELLO_S):
                await self._standing
        except TimeoutError:
            self._connection.close()
            text = f"no node answered {self.name!r} within {HELLO_S:g} s"
            raise UserError("unavailable", text, "weft status, or another --node (node= in a program)") from None
        except BaseException:
            self._connection.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave: queued messages are sent; for unanswered ones the node follows their `fail`; open sends fail, `closing`."""
        self.flush()
        links, self.links = list(self.links.values()), {}
        for link in links:
            link.stop()
        self._connection.close()
        self._sends.fail(SendFailed("closing"))
        if self._tape is not None:
            self._tape.close()
        self.session = None
        self.close()
        for link in links:
            await link.finish()

    # ------------------------------------------------------------------------------------------------- asking

    def send(  # tidy: the documented shape (CLI-020)
        self,
        type: str,  # noqa: A002  # the field's word
        payload: Any,
        *,
        to: Any = PARENTS_OF_LOCAL,
        want: str = "spool",
        fmt: str | None = None,
        keep: str = "disk",
        expires: int = 0,
    ) -> "Future[Receipt]":
        """Send a message; await it for the Receipt, or SendFailed with the reason (CHN-030).

        It is queued at once, in order, and leaves as soon as the node's credit allows. `want` says when the Receipt comes:
        `spool` when this node has the message on disk, `dest` when the next node has it, `none` at once. `keep`: `disk` or
        `memory`; `expires`: nanoseconds since 1970, 0 for never. The payload is bytes, text, a tuple of frames, or values
        for JSON (`weft.client.chain.payloads`). Sent in a handler, it names the handler's message as its cause.
        """
        future: Future[Receipt] = self._loop.create_future()
        frames, fmt = to_frames(payload, fmt)
        whereto = destination(to)
        why = "closing" if self._end.done() else _refusal(type, frames, whereto)
        if why:
            future.set_exception(SendFailed(why))
            return future
        self._tag += 1
        cause = CAUSE.get()
        is_known = cause is not None and cause.session is self.session
        item = clients.SendItem(
            tag=self._tag,
            type=type,
            to=whereto,
            want=want,
            cause=cause.id if cause is not None and is_known else None,
            fmt=fmt,
            keep=keep,
            exp=expires,
            n=len(frames),
        )
        self._sends.add(Pending(item, frames, self.here.boot, future))
        self._schedule()
        return future

    def reads(  # tidy: the documented shape (CLI-020)
        self,
        type: str,  # noqa: A002  # the field's word
        *,
        on: str = "in",
        place: int | str = AFTER_ALL,
        confirm: bool = False,
        parallel: int = 1,
        window: int = 64,
        noself: bool = False,
        away: float = AWAY_S,
    ) -> Decorator:
        """Register a handler that gets copies.

        With `confirm` it gets each message at least once: a message is confirmed when the handler has returned without an
        error (CHN-019). The node remembers the reader by the client's name, and keeps what arrives while the program is
        away, for `away` seconds. `parallel`: how many calls of an `async` handler may run at once. `window`: how many
        messages the node offers before it waits for answers. `noself`: without this client's own messages.
        """
        reg = clients.Reg(
            reg=0,
            dir=on,
            type=type,
            at=place,
            confirm=confirm,
            window=max(window, parallel),
            noself=noself,
            away=round(away * 1_000),
        )
        return lambda handler: self._register(reg, handler, parallel)

    def rewrites(  # tidy: the documented shape (CLI-020)
        self,
        type: str,  # noqa: A002  # the field's word
        *,
        on: str = "in",
        place: int | str = AFTER_ALL,
        fail: str = "open",
        timeout: float = 5.0,
        ordered: bool = False,
        window: int = 64,
        parallel: int = 1,
        noself: bool = False,
    ) -> Decorator:
        """Register a handler through which every message of the type goes.

        It returns the message, `message.replace(…)` or `weft.drop(why)`. Any other result, an exception, or no result
        within `timeout` seconds is a failure; `fail` says what the node then does with the message. With `ordered`
        messages leave in the order in which they came.
        """
        reg = clients.Reg(
            reg=0,
            dir=on,
            type=type,
            at=place,
            access="rw",
            fail=None if fail == "open" else fail,
            timeout=round(timeout * 1_000),
            window=max(window, parallel),
            noself=noself,
            ordered=ordered,
        )
        return lambda handler: self._register(reg, handler, parallel)

    async def ready(self) -> None:
        """Wait until the node has accepted all registrations; UserError for one that it refused."""
        for link in list(self.links.values()):
            await link.standing

    async def run(self) -> None:
        """Run the handlers until `close`; UserError if the node refuses the client or a registration."""
        await asyncio.shield(self._end)

    def close(self) -> None:
        """Let `run` return."""
        if not self._end.done():
            self._end.set_result(None)

    # ------------------------------------------------------------------------------------------------- hearing

    def stand(self, welcome: clients.Welcome) -> None:
        """Attached: send registrations first, then messages without a status, then the rest."""
        self.session = self.here = welcome
        self._sends.credit, self._sends.credit_bytes = welcome.credit, welcome.credit_bytes
        for link in self.links.values():
            self._connection.say(clients.encode(link.reg))
        self._sends.repeat(welcome.boot)
        if not self._standing.done():
            self._standing.set_result(None)

    def fall(self) -> None:
        """Detached: messages that handlers hold are abandoned, and must not be answered any more."""
        self.session = None
        self._outgoing.forget()
        for link in self.links.values():
            link.abandon()

    def give_up(self, error: UserError) -> None:
        """The node refuses this client: all pending operations fail."""
        self._end_with(error)
        self._sends.fail(SendFailed(error.code))
        if not self._standing.done():
            self._standing.set_exception(error)

    def hear(self, message: clients.Answered) -> None:
        """A message of the node while the client is attached."""
        HEARD[type(message)](self, message)

    def flush(self) -> None:
        """Send everything that may be sent."""
        self._is_flush_due = False
        connection = self._connection
        if not connection.is_clear:
            return
        for pending in self._sends.ready():
            self._outgoing.send(pending.item, pending.frames, pending.size)
        if self._outgoing:
            for frames in self._outgoing.take():
                connection.say(frames)

    def is_busy(self) -> bool:
        """Whether many messages wait for handlers."""
        return any(link.is_busy for link in self.links.values())

    def answer(self, op: str, reg: int, item: Any, frames: tuple[bytes, ...] = ()) -> None:
        """A handler's answer."""
        self._outgoing.answer(op, reg, item, frames)
        self._schedule()

    def leave(self, reg: int) -> None:
        """Remove a registration."""
        link = self.links.pop(reg)
        link.stop()
        if self.session is not None:
            self._connection.say(clients.encode(clients.Unreg(reg)))

    def _schedule(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self.flush)

    def _register(self, reg: clients.Reg, handler: H, parallel: int) -> H:
        check_registration(reg, parallel)
        self._reg += 1
        link = self.links[self._reg] = Link(replace(reg, reg=self._reg), handler, parallel, self)
        if self.session is not None:
            self._connection.say(clients.encode(link.reg))
        return handler

    def _end_with(self, error: UserError) -> None:
        if not self._end.done():
            self._end.set_exception(error)
            self._end.exception()  # marks it as seen: a program that never calls `run` finds the error in the log

    def _take(self, rec: clients.Rec) -> None:
        link = self.links.get(rec.reg)
        if link is None:
            self.counts["of nobody"] += len(rec.m)
        else:
            link.take(rec)

    def _settle(self, status: clients.Status) -> None:
        for item in status.m:
            if not self._sends.settle(item):
                self.counts["statuses of nothing"] += 1

    def _note_done(self, done: clients.Done) -> None:
        link = self.links.get(done.reg)
        if link is not None and not link.standing.done():
            link.standing.set_result(done)

    def _note_credit(self, credit: clients.Credit) -> None:
        self._sends.credit, self._sends.credit_bytes = credit.credit, credit.credit_bytes

    def _note_place(self, place: clients.Place) -> None:
        self.here = replace(self.here, level=place.level, parent=place.parent, children=place.children)

    def _note_error(self, error: clients.Error) -> None:
        """An error of the node. A late answer is only counted: the node went on without it, as `fail` says (CLI-022)."""
        if error.why in LATE:
            self.counts["late answers"] += 1
            return
        self.counts[f"{error.about} {error.why}"] += 1
        LOG.error("the node refused %s: %s", error.about, f"{error.why} {error.text}".rstrip())
        link = self.links.get(error.reg or 0)
        if error.about == "reg" and link is not None:
            self._refuse(link, error)

    def _refuse(self, link: Link, error: clients.Error) -> None:
        text = f"the node does not register {link.reg.type!r} on {link.reg.dir!r}: {error.why} {error.text}".rstrip()
        refusal = UserError(error.why, text, MENDS.get(error.why, "weft chain show"))
        if not link.standing.done():
            link.standing.set_exception(refusal)
            link.standing.exception()  # `run` raises it too
        self._end_with(refusal)


HEARD: Final[dict[type, Callable[[ChainClient, Any], None]]] = {
    clients.Rec: ChainClient._take,
    clients.Status: ChainClient._settle,
    clients.Done: ChainClient._note_done,
    clients.Credit: ChainClient._note_credit,
    clients.Place: ChainClient._note_place,
    clients.Error: ChainClient._note_error,
}


def chain_client(name: str, node: Node = None, curve: Given = None, *, record: str | Path | None = None) -> ChainClient:
    """A client of the chains of a node: `async with weft.chain_client("tagger") as chain: …`.

    `node`: an endpoint, a state directory, a node's name; None: `WEFT_NODE`, else the only node that runs here.
    `curve`: the directory that `weft join` wrote, or keys; None: `WEFT_KEYS`, else no keys.
    `record`: a file that gets every multipart with its time; `weft chain replay` gives it to handlers again (CLI-025).
    """
    return ChainClient(name, node, curve, record=record)


def _opener(node: Node, keys: Given) -> Opener:
    """How to connect to a node; UserError if it cannot be found. Each connection asks for its current endpoint."""
    if callable(node):
        return node
    place, keyring, tries = locate(node), Keyring.of(keys), count()
    endpoint_of(place)

    def target() -> Target:
        endpoint = endpoint_of(place)
        scheme, _, where = endpoint.partition("://")
        if keyring is None or (scheme != "tcp" and not isinstance(keys, Curve)):
            return Target(endpoint)  # a local socket needs no keys: the kernel decides who may open it
        return keyring.target(endpoint, keyring.turn(where, next(tries)))

    return lambda on_ready, on_end: dealer(target(), on_ready, on_end)


def _refusal(type_: str, frames: tuple[bytes, ...], to: list[Any] | None) -> str | None:
    """Why a message can never be sent; None if it can."""
    if to is None:
        return "bad-destination"
    if not frames:
        return "empty"
    if len(type_) > TYPE_CHARS_MAX:
        return "bad-type"
    is_too_big = len(frames) > FRAMES_MAX or sum(map(len, frames)) > PAYLOAD_BYTES_MAX
    return "too-big" if is_too_big else None
