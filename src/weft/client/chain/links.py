"""Registrations and their handlers (CLI-021).

A plain function is called where its message is read. An `async def` handler runs in up to `parallel` tasks beside the
reading; each task takes the next message when it has finished one. While no message waits there are no tasks.
"""

import asyncio
import inspect
import logging
from asyncio import Future
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, Protocol, cast

from weft.client.chain.limits import (
    BUSY,
    CALLS_PER_TURN,
    COPIES_BYTES_MAX,
    COPIES_MAX,
    FRAMES_MAX,
    PAYLOAD_BYTES_MAX,
    WHY_BYTES_MAX,
)
from weft.client.chain.message import Dropped, Message
from weft.wire.clients import Done, GiveUp, NextItem, Rec, Reg

LOG: Final = logging.getLogger("weft.client")
CAUSE: Final[ContextVar[Message | None]] = ContextVar("CAUSE", default=None)
"""The message that the running handler was given: messages that it sends name it as their cause (CLI-022)."""

Handler = Callable[[Message], Any]


class Answering(Protocol):
    """What a registration needs of its client."""

    counts: Counter[str]
    session: Any

    def answer(self, op: str, reg: int, item: Any, frames: tuple[bytes, ...] = ()) -> None:
        """Send the answer soon."""


class Link:
    """One registration."""

    def __init__(self, reg: Reg, handler: Handler, parallel: int, client: Answering) -> None:
        self.reg = reg
        self.standing: Future[Done] = asyncio.get_running_loop().create_future()
        """The node's answer: the place in the chain. Cancelled when the client ends."""
        self._handler, self._parallel, self._client = handler, parallel, client
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004  # the method itself: an object may be asynchronous, too
        )
        self._answers = _rewritten if reg.access == "rw" else _confirmed if reg.confirm else _ignored
        self._is_copied = reg.access == "ro" and not reg.confirm
        self._queue: deque[Message] = deque()
        self._queued_bytes = self._lost = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, rec: Rec) -> None:
        """Hand the messages of one multipart to the handler."""
        direction, session, handler = self.reg.dir, self._client.session, self._handler
        deal = self._enqueue if self._is_async else self._call
        at = 0
        for item in rec.m:
            end = at + item.n
            deal(handler, Message(item, rec.frames[at:end], direction, session))
            at = end
        CAUSE.set(None)  # else the variable would keep the last message in memory

    @property
    def is_busy(self) -> bool:
        """Whether many messages wait for the handler."""
        return len(self._queue) > BUSY

    def abandon(self) -> None:
        """The connection is lost: the node hands unanswered messages to others; copies stay with this client."""
        if not self._is_copied:
            self._queue.clear()
            self._queued_bytes = 0

    def stop(self) -> None:
        """Cancel all handlers."""
        self._queue.clear()
        self.standing.cancel()
        for task in self._tasks:
            task.cancel()

    async def finish(self) -> None:
        """Wait until no handler runs any more."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _call(self, handler: Handler, message: Message) -> None:
        CAUSE.set(message)
        try:
            self._conclude(message, handler(message))
        except Exception as error:  # noqa: BLE001  # any error of a handler is logged, and reported to the node
            self._fail(message, error)

    def _enqueue(self, _: Handler, message: Message) -> None:
        self._queue.append(message)
        self._queued_bytes += message.size
        while self._is_copied and (len(self._queue) > COPIES_MAX or self._queued_bytes > COPIES_BYTES_MAX):
            if len(self._queue) == 1:
                break
            oldest = self._queue.popleft()
            self._queued_bytes -= oldest.size
            self._lost += 1 + oldest.lost
            self._client.counts["copies lost"] += 1
        if len(self._tasks) < self._parallel:
            task = asyncio.get_running_loop().create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        handler = cast("Callable[[Message], Awaitable[Any]]", self._handler)
        calls = 0
        while self._queue:
            message = self._dequeue()
            CAUSE.set(message)
            try:
                self._conclude(message, await handler(message))
            except Exception as error:  # noqa: BLE001  # as for a plain function
                self._fail(message, error)
            calls += 1
            if calls % CALLS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _dequeue(self) -> Message:
        message = self._queue.popleft()
        self._queued_bytes -= message.size
        if self._lost:
            message, self._lost = message.with_losses(self._lost), 0
        return message

    def _conclude(self, message: Message, answer: Any) -> None:
        reply = self._answers(message, answer)
        if reply is not None:
            self._say(message, *reply)

    def _fail(self, message: Message, error: Exception) -> None:
        name = getattr(self._handler, "__qualname__", repr(self._handler))
        self._client.counts["handlers failed"] += 1
        LOG.error("%s failed with message %d, %s: %r", name, message.id, message.type, error, exc_info=error)
        if not self._is_copied:
            self._say(message, "fail", GiveUp(id=message.id, why=_shortened(f"{type(error).__name__}: {error}")), ())

    def _say(self, message: Message, op: str, item: Any, frames: tuple[bytes, ...]) -> None:
        """Answer on the connection on which the message came. If that is lost, the answer is only counted."""
        if message.session is self._client.session:
            self._client.answer(op, self.reg.reg, item, frames)
        else:
            self._client.counts["late answers"] += 1


Reply = tuple[str, Any, tuple[bytes, ...]]


def _ignored(_: Message, answer: Any) -> Reply | None:
    """A reader's result is ignored. A coroutine is an error: a plain function has returned it, and nobody awaits it."""
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("a plain function returned a coroutine: write `async def`")
    return None


def _confirmed(message: Message, answer: Any) -> Reply | None:
    _ignored(message, answer)
    return "conf", message.id, ()


def _rewritten(message: Message, answer: Any) -> Reply | None:
    if isinstance(answer, Message):
        return _handed_back(message, answer)
    if isinstance(answer, Dropped):
        return "drop", GiveUp(id=message.id, why=_shortened(answer.why)), ()
    _ignored(message, answer)
    raise TypeError(f"answered {type(answer).__name__}: return the message, message.replace(…) or weft.drop(why)")


def _handed_back(message: Message, answer: Message) -> Reply:
    if answer.id != message.id or answer.session is not message.session:
        raise ValueError(f"the answer to message {message.id} is message {answer.id}")
    if not answer.is_changed:
        return "next", NextItem(id=message.id, to=answer.new_to), ()
    frames = answer.frames
    if not 1 <= len(frames) <= FRAMES_MAX or sum(map(len, frames)) > PAYLOAD_BYTES_MAX:
        raise ValueError("a payload has 1 to 16 frames, together at most 1 MiB")
    return "next", NextItem(id=message.id, to=answer.new_to, n=len(frames)), frames


def _shortened(text: str) -> str:
    """The beginning of a reason, as much as fits into a header."""
    return text.encode("utf-8", "replace")[:WHY_BYTES_MAX].decode("utf-8", "ignore")
