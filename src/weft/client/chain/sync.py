"""`weft.chain_sync`: the client library for scripts that only wait for the next message (CLI-024).

An event loop in a thread of its own talks to the node, so that beats are sent while the script is busy.
"""

import asyncio
import queue
from asyncio import Future
from collections.abc import Callable, Generator
from typing import Any, Final

from weft.base.errors import UserError
from weft.client.chain.addressing import PARENTS_OF_LOCAL
from weft.client.chain.client import ChainClient
from weft.client.chain.finding import Node
from weft.client.chain.message import Dropped, Message, Receipt
from weft.client.link.keyring import Given
from weft.client.link.waiting import Waiting

WINDOW: Final = 64


class Unanswered(Exception):
    """The body of a loop over `rewrites` ended without an answer to its message."""


class PendingMessage(Message):
    """A message that waits for the script's answer."""

    __slots__ = ("_settle",)

    def __init__(self, message: Message, settle: Callable[[Any], None]) -> None:
        super().__init__(message._item, message._frames, message.direction, message.session)
        self._settle: Callable[[Any], None] | None = settle

    def passes(self, payload: Any = None, to: Any = None) -> None:
        """Hand the message on, with another payload or destination if given."""
        self._answer(self.replace(payload, to))

    def drops(self, why: str = "") -> None:
        """Delete the message."""
        self._answer(Dropped(why))

    def end(self) -> None:
        """The loop body has ended: if it gave no answer, report a failure."""
        if self._settle is not None:
            self._answer(Unanswered("no answer in the loop's body"))

    def _answer(self, answer: Any) -> None:
        if self._settle is None:
            raise RuntimeError(f"message {self.id} is already answered")
        settle, self._settle = self._settle, None
        settle(answer)


class SyncChain(Waiting):
    """A client of a node's chains, to be used with `with`, in one thread."""

    def __init__(self, name: str, node: Node = None, curve: Given = None) -> None:
        self._chain = ChainClient(name, node, curve)
        self._queues: set[queue.SimpleQueue[Any]] = set()
        super().__init__(self._chain, f"weft {name}")

    async def _entered(self) -> None:
        await super()._entered()
        self._watch = self._loop.create_task(self._until_end())

    async def _left(self, *why: Any) -> None:
        await super()._left(*why)
        self._watch.cancel()

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
    ) -> Receipt:
        """Send a message and wait for its Receipt; SendFailed with the reason."""

        async def send() -> Receipt:
            return await self._chain.send(type, payload, to=to, want=want, fmt=fmt, keep=keep, expires=expires)

        return self._do(send())

    def reads(self, type: str, **options: Any) -> Generator[Message, None, None]:  # noqa: A002  # the field's word
        """Copies, one after the other, without end; with `confirm` each is confirmed when the loop body has ended."""
        return self._loop_over(self._chain.reads, type, options, lambda message, _: message)

    def rewrites(self, type: str, **options: Any) -> Generator[PendingMessage, None, None]:  # noqa: A002  # the field's word
        """Messages to be answered by `passes` or `drops`; a body that ends without an answer has failed."""
        return self._loop_over(self._chain.rewrites, type, options, PendingMessage)

    def _loop_over(
        self, register: Callable[..., Any], of: str, options: dict[str, Any], make: Callable[..., Any]
    ) -> Generator[Any, None, None]:
        came: queue.SimpleQueue[Any] = queue.SimpleQueue()

        async def hand_over(message: Message) -> Any:
            answered: Future[Any] = self._loop.create_future()
            came.put((message, answered))
            answer = await answered
            if isinstance(answer, Exception):
                raise answer
            return answer

        async def register_handler() -> int:
            register(of, **{"parallel": WINDOW, **options})(hand_over)
            await self._chain.ready()
            return max(self._chain.links)

        self._queues.add(came)
        return self._answered(came, self._do(register_handler()), make)

    def _answered(self, came: queue.SimpleQueue[Any], reg: int, make: Callable[..., Any]) -> Generator[Any, None, None]:
        try:
            while True:
                message, answered = came.get()
                if answered is None:
                    raise message
                yield from self._one(make, message, answered)
        finally:
            self._queues.discard(came)
            self._do(self._leave(reg))

    def _one(self, make: Callable[..., Any], message: Message, answered: "Future[Any]") -> Generator[Any, None, None]:
        """Yield a message to the loop body; when the body has ended or was left without an answer, answer for it."""

        def settle(answer: Any) -> None:
            self._loop.call_soon_threadsafe(_settle, answered, answer)

        made = make(message, settle)
        try:
            yield made
        finally:
            if isinstance(made, PendingMessage):
                made.end()
            else:
                settle(None)

    async def _leave(self, reg: int) -> None:
        """Remove the registration, after the answer of the last loop body was sent."""
        await asyncio.sleep(0)
        self._chain.flush()
        if reg in self._chain.links:
            self._chain.leave(reg)

    async def _until_end(self) -> None:
        try:
            await self._chain.run()
            end: Exception = UserError("closing", "the client has ended", "another weft.chain_sync")
        except UserError as error:
            end = error
        for came in self._queues:
            came.put((end, None))


def _settle(answered: "Future[Any]", answer: Any) -> None:
    if not answered.done():  # cancelled: the connection is lost, and the message with it
        answered.set_result(answer)


def chain_sync(name: str, node: Node = None, curve: Given = None) -> SyncChain:
    """A client of the chains of a node: `with weft.chain_sync("x") as chain: …`."""
    return SyncChain(name, node, curve)
