"""One connection to a node's documents: requests out, answers in; when it breaks it is renewed (JAM-040).

    DOWN ──connect──▶ PROBING ──first answer──▶ UP
      ▲──────────────────┴────────the end────────┘

Requests wait until it is UP, so a request that failed before was certainly not carried out. When the connection breaks,
reads are sent again; other requests may or may not have been carried out, and fail with Unanswered.
"""

import asyncio
from collections import deque
from enum import Enum
from typing import Any

from weft.base.errors import PeerError
from weft.client.doc.errors import Closed, DocError, Unanswered, Unreachable, error_of
from weft.client.doc.finding import MEND, Node, endpoint_of
from weft.client.doc.limits import BACK_OFF_MAX_S, BACK_OFF_MIN_S, OPEN_S, TURN
from weft.client.link.backoff import BackOff
from weft.client.link.channel import Channel
from weft.client.link.dealer import dealer
from weft.client.link.opening import BadEndpoint, Target
from weft.wire.document import programs
from weft.wire.document.clients import Answer, Asked

PROBE: Asked = Asked(b"\0", "sessions")
"""The first request on a connection; its answer shows that a node is there."""


class State(Enum):
    DOWN = "not connected"
    PROBING = "connected, without an answer yet"
    UP = "requests are sent at once"


class Waiter:
    """What waits for the answers to a request."""

    repeats = True
    """Whether it may be sent twice."""

    def hear(self, answer: Answer) -> None:
        """An answer has arrived."""

    def fall(self, error: DocError) -> None:
        """No answer will come."""

    def lost(self) -> bool:
        """The connection broke; returns whether to send the request again."""
        return True


class Call(Waiter):
    """Waits for one answer, or an error."""

    def __init__(self, *, repeats: bool) -> None:
        self.repeats = repeats
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def hear(self, answer: Answer) -> None:
        if not self.answered.done():
            if answer.code:
                self.answered.set_exception(error_of(answer.code, answer.body))
            else:
                self.answered.set_result(answer.body)

    def fall(self, error: DocError) -> None:
        if not self.answered.done():
            self.answered.set_exception(error)

    def lost(self) -> bool:
        if not self.repeats:
            self.fall(Unanswered("the connection broke before the answer came; it may have been done", mend=AFTER))
        return self.repeats


AFTER = "weft doc log --tail 5 shows whether it was entered"


class Link:
    """The connection. Use it in a running loop, between `open` and `close`."""

    def __init__(self, node: Node) -> None:
        self.state = State.DOWN
        self._node = node
        self._channel: Channel | None = None
        self._open: dict[bytes, tuple[Asked, Waiter]] = {}
        """Requests without a final answer, by id."""
        self._unsaid: deque[bytes] = deque()
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        self._back_off = BackOff(BACK_OFF_MIN_S, BACK_OFF_MAX_S)
        self._standing: asyncio.Event = asyncio.Event()
        self._why: DocError | None = None
        self._is_closed = False

    async def open(self) -> None:
        """Connect now; Unreachable if no node is there."""
        self._connect(self._target())
        try:
            async with asyncio.timeout(OPEN_S):
                await self._standing.wait()
        except TimeoutError:
            raise Unreachable(f"the node does not answer within {OPEN_S:g} s", mend=MEND) from None
        if self._why is not None:
            raise self._why

    def close(self) -> None:
        """Close; pending requests fail."""
        self._is_closed = True
        self.state = State.DOWN
        if self._timer is not None:
            self._timer.cancel()
        self._disconnect()
        waiting, self._open = list(self._open.values()), {}
        for _, waiter in waiting:
            waiter.fall(Closed("the client has been closed"))

    def ask(self, verb: str, session: str, args: dict[str, Any], waiter: Waiter) -> bytes:
        """Send a request now, or when the connection is up; returns its id."""
        if self._is_closed:
            raise Closed("the client has been closed")
        self._number += 1
        asked = Asked(self._number.to_bytes(8, "big"), verb, session, args)
        self._open[asked.id] = (asked, waiter)
        if self.state is State.UP:
            self._say(asked)
        else:
            self._unsaid.append(asked.id)
        return asked.id

    def add(self, number: bytes, verb: str, session: str, args: dict[str, Any]) -> None:
        """Send an addition to a request; it is dropped if the connection is not up or the request has ended."""
        if self.state is State.UP and number in self._open:
            self._say(Asked(number, verb, session, args))

    def forget(self, number: bytes) -> bool:
        """Stop waiting for a request; returns whether it was never sent."""
        self._open.pop(number, None)
        return number in self._unsaid

    # The connection

    def _connect(self, target: Target) -> None:
        try:
            self._channel = Channel(
                lambda on_ready, on_end: dealer(target, on_ready, on_end), self._hear, per_turn=TURN, on_end=self._end
            )
        except BadEndpoint as error:
            raise Unreachable(error.text, mend=error.try_this) from None
        self.state = State.PROBING
        self._say(PROBE)

    def _say(self, asked: Asked) -> None:
        if self._channel is not None:
            self._channel.say(programs.encode_request(asked))

    def _hear(self, frames: list[bytes]) -> None:
        try:
            answer = programs.decode_answer(frames)
        except PeerError:
            return  # as if no answer had come
        if self.state is State.PROBING:
            self._stand()
        asked = self._open.get(answer.id) if answer.more else self._open.pop(answer.id, None)
        if asked is not None:
            asked[1].hear(answer)

    def _stand(self) -> None:
        self.state, self._why = State.UP, None
        self._back_off.reset()
        self._standing.set()
        unsaid, self._unsaid = self._unsaid, deque()
        for number in unsaid:
            if number in self._open:
                self._say(self._open[number][0])

    def _end(self) -> None:
        """The connection has ended, or could not be made; everything that came has been read."""
        was = self.state
        self._disconnect()
        if self._is_closed:
            return
        self.state = State.DOWN
        if was is State.PROBING and not self._standing.is_set():
            self._why = Unreachable("no program listens at the node's endpoint", mend=MEND)
            self._standing.set()
            return
        unsaid = set(self._unsaid)
        for number, (_, waiter) in list(self._open.items()):
            if number in unsaid:
                continue
            if waiter.lost():
                self._unsaid.append(number)
            else:
                self._open.pop(number, None)
        self._reconnect_later()

    def _reconnect_later(self) -> None:
        def again() -> None:
            try:
                self._connect(self._target())
            except DocError:
                self._reconnect_later()

        if not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(self._back_off.next_s(), again)

    def _disconnect(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _target(self) -> Target:
        """The node's current address: after a restart it may listen elsewhere."""
        return Target(endpoint_of(self._node))
