"""Requests and their answers, over a connection that is renewed whenever it breaks (CLN-030).

When a connection breaks, sent requests without an answer are sent again if doing them twice has the effect of doing
them once: reads, `idem`, conditional writes. Every other one fails with `Unanswered`. Requests not sent yet wait.
"""

import asyncio
import contextlib
from collections import deque

from msgspec.structs import force_setattr

from weft.client.link.backoff import BackOff
from weft.client.store.errors import Closed, ConditionFailed, StoreError, Unanswered, Unreachable, error_of
from weft.client.store.finding import Grouped, Node
from weft.client.store.limits import (
    BACK_OFF_MAX_S,
    BACK_OFF_MIN_S,
    REQUESTS_OPEN_MAX,
    SWEEP_S,
)
from weft.client.store.link import Link, connect
from weft.wire.store import clients


class Asked:
    """A request, and the future of its answer."""

    __slots__ = ("answered", "due", "is_repeated", "repeats", "request")

    def __init__(
        self, request: clients.Request, answered: "asyncio.Future[clients.Answer]", due: float, *, repeats: bool
    ) -> None:
        self.request, self.answered, self.due, self.repeats = request, answered, due, repeats
        self.is_repeated = False

    def fail(self, error: StoreError) -> None:
        """Pass the error to the waiting task, if there is still one."""
        if not self.answered.done():
            self.answered.set_exception(error)


class Caller:
    """Sends requests to one store. Use it in a running loop, between `open` and `close`."""

    def __init__(self, node: Node | Grouped, timeout_s: float) -> None:
        self.greeting: clients.Greeting | None = None
        """The server's greeting on the last connection; None before the first."""
        self._node, self._timeout_s = node, timeout_s
        self._link: Link | None = None
        self._sequence = 0
        self._sent: dict[int, Asked] = {}
        self._unsent: deque[Asked] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._is_closed = False

    async def open(self) -> None:
        """Connect now; Unreachable if no server is there. A connection that is lost later is renewed without an error."""
        self._loop = asyncio.get_running_loop()
        self._stand(await connect(self._node, self._hear, self._fall))

    async def close(self) -> None:
        """Close; pending requests fail."""
        self._is_closed = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reconnecting
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._link is not None:
            self._link.close()
            self._link = None
        for asked in [*self._sent.values(), *self._unsent]:
            asked.fail(Closed("the client has been closed"))

    @property
    def is_up(self) -> bool:
        """Whether there is a connection."""
        return self._link is not None

    def ask(self, request: clients.Request, *, repeats: bool) -> "asyncio.Future[clients.Answer]":
        """Send now, or when the connection is up; the future gets the answer, or a StoreError."""
        if self._is_closed:
            raise Closed("the client has been closed")
        asked = Asked(request, self._loop.create_future(), self._loop.time() + self._timeout_s, repeats=repeats)
        if self._link is not None and not self._unsent and len(self._sent) < REQUESTS_OPEN_MAX:
            self._say(self._link, asked)
        else:
            self._unsent.append(asked)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)
        return asked.answered

    def _say(self, link: Link, asked: Asked) -> None:
        self._sequence += 1
        self._sent[self._sequence] = asked
        force_setattr(asked.request, "seq", self._sequence)  # no other request has this id
        link.say(clients.encode(asked.request))

    def _say_more(self) -> None:
        link = self._link
        while link is not None and self._unsent and len(self._sent) < REQUESTS_OPEN_MAX:
            asked = self._unsent.popleft()
            if not asked.answered.done():
                self._say(link, asked)

    def _hear(self, answer: clients.Answer) -> None:
        asked = self._sent.pop(answer.seq, None)
        if asked is None:
            return
        if not asked.answered.done():
            if answer.error:
                asked.answered.set_exception(_error(answer, asked))
            else:
                asked.answered.set_result(answer)
        if self._unsent:
            self._say_more()

    # The connection

    def _stand(self, link: Link) -> None:
        self._link, self.greeting = link, link.greeting
        self._sequence = 0
        self._say_more()

    def _fall(self, why: str) -> None:
        self._link = None
        sent, self._sent = list(self._sent.values()), {}
        for asked in reversed(sent):
            if asked.repeats:
                asked.is_repeated = True
                self._unsent.appendleft(asked)
            else:
                asked.fail(Unanswered(f"the connection broke before the answer came ({why}); it may have been done"))
        if not self._is_closed and self._reconnecting is None:
            self._reconnecting = self._loop.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        back_off = BackOff(BACK_OFF_MIN_S, BACK_OFF_MAX_S)
        while True:
            await back_off.wait()
            with contextlib.suppress(StoreError):
                link = await connect(self._node, self._hear, self._fall)
                break
        self._reconnecting = None
        self._stand(link)

    # Timeouts

    def _sweep(self) -> None:
        """Fail requests that have waited too long; if nothing at all came meanwhile, the connection counts as broken."""
        self._sweeper = None
        now = self._loop.time()
        late = [asked for asked in self._sent.values() if asked.due <= now]
        for asked in late:
            asked.fail(Unanswered(f"no answer within {self._timeout_s:g} s; it may have been done, or be done still"))
        while self._unsent and self._unsent[0].due <= now:
            self._unsent.popleft().fail(self._unsent_error())
        link = self._link
        if late and link is not None and link.heard_at < now - self._timeout_s:
            link.abort(f"nothing came within {self._timeout_s:g} s")
        if self._sent or self._unsent:
            self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    def _unsent_error(self) -> StoreError:
        if self._link is None:
            return Unreachable(f"the store has been away for {self._timeout_s:g} s; the request was not sent")
        text = f"{REQUESTS_OPEN_MAX} earlier requests had no answer for {self._timeout_s:g} s; this one was not sent"
        return Unreachable(text)


def _error(answer: clients.Answer, asked: Asked) -> StoreError:
    error = error_of(answer.etype, answer.error)
    if isinstance(error, ConditionFailed):
        error.may_be_own = asked.is_repeated
    return error
