"""Requests to a broker and calls to services, and their answers (CAT-024).

A request goes out on a DEALER, with a number in front of it as its envelope. The broker repeats the envelope before its
answer, so many requests can be under way on one socket; and it sends nothing unasked to a peer with an envelope (CAT-005,
CAT-006). Brokers and services of other makes may not repeat an envelope: they get one request at a time, without one.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import zmq

from weft.base.errors import PeerError
from weft.client.catalog.entries import Address
from weft.client.catalog.errors import (
    CallFailed,
    CatalogError,
    CatalogTimeout,
    Closed,
    GarbledAnswer,
    Unreachable,
    error_of,
)
from weft.client.catalog.limits import ANSWER_S, ASKED_MAX, FRAMES_MAX, LINES_IDLE_MAX, TRIES
from weft.client.catalog.lines import Line, Place, target_of
from weft.client.link.opening import BadEndpoint
from weft.wire.catalog import commands, times
from weft.wire.catalog.messages import DENIED, DENIED_TOO, PONG, REPLY, Message

TIME: Final = "f32le"
"""The field that every broker understands; it has no effect (CAT-012)."""
NUMBERS: Final = 1 << 32
"""How many different envelopes there are: after the last number comes the first again."""


class Asker:
    """Sends requests to one broker. A socket that gets no answer is replaced by a new one. Use it in a running loop."""

    def __init__(self, place: Place, *, timeout_s: float = ANSWER_S, tries: int = TRIES) -> None:
        self._place, self._timeout_s, self._tries = place, timeout_s, tries
        self.is_plain = False
        """Whether to send no envelope, and one request at a time."""
        self._line: Line | None = None
        self._number = 0
        self._waiting: dict[bytes, asyncio.Future[Message]] = {}
        self._room = asyncio.Semaphore(ASKED_MAX)
        self._turn = asyncio.Lock()
        self._is_closed = False

    async def ask(self, command: bytes, *body: bytes) -> Message:
        """The answer; CatalogTimeout if none comes in any of the attempts."""
        async with self._turn if self.is_plain else self._room:
            envelope = b"" if self.is_plain else self._next()
            for _ in range(self._tries):
                if self._is_closed:
                    raise Closed("the client has been closed")
                with contextlib.suppress(TimeoutError):
                    return await self._try(envelope, command, body)
        raise CatalogTimeout(f"the broker at {self._shown} has not answered, {self._tries} times {self._timeout_s:g} s")

    async def _try(self, envelope: bytes, command: bytes, body: tuple[bytes, ...]) -> Message:
        line = self._line = self._line or self._open()
        answered: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[envelope] = answered
        message = Message(command, times.write(TIME, time.time()), body, (envelope,) if envelope else ())
        line.say(commands.encode(message))
        try:
            async with asyncio.timeout(self._timeout_s):
                return await answered
        except TimeoutError:
            if self._line is line:  # otherwise another request has already replaced it
                self._line = None
                line.close()
            raise
        finally:
            self._waiting.pop(envelope, None)

    def close(self) -> None:
        """Close; pending requests fail."""
        self._is_closed = True
        if self._line is not None:
            self._line.close()
            self._line = None
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(Closed("the client has been closed"))

    @property
    def _shown(self) -> str:
        return target_of(self._place).endpoint.removeprefix("tcp://")

    def _open(self) -> Line:
        try:
            return Line(zmq.DEALER, self._place, self._hear)
        except BadEndpoint as error:
            raise Unreachable(f"{self._shown} is not a valid address: {error.reason}") from None

    def _next(self) -> bytes:
        self._number = (self._number + 1) % NUMBERS
        return self._number.to_bytes(4, "big")

    def _hear(self, frames: list[bytes]) -> None:
        try:
            message = commands.decode(frames, FRAMES_MAX)
        except PeerError:
            return  # as if nothing had come
        envelope = message.envelope[0] if message.envelope else b""
        answered = self._waiting.get(envelope)
        if answered is not None and not answered.done():
            answered.set_result(message)


class Calls:
    """Calls endpoints of services. A socket has one call at a time, because not every service repeats an envelope."""

    def __init__(self) -> None:
        self._idle: dict[Address, list[Asker]] = {}

    async def call(self, place: Address, command: bytes, body: Sequence[bytes], timeout_s: float) -> Message:
        """The service's answer, or CatalogTimeout. The call is sent once, so that nothing is done twice."""
        idle = self._idle.pop(place, [])
        asker = idle.pop() if idle else Asker(place, tries=1)
        if idle:
            self._idle[place] = idle
        asker.is_plain, asker._timeout_s = True, timeout_s
        try:
            answer = await asker.ask(command, *body)
        except CatalogTimeout:
            asker.close()
            raise CatalogTimeout(
                f"no answer from {place} within {timeout_s:g} s; the call may have been executed, or be executed still"
            ) from None
        except BaseException:
            asker.close()  # a late answer must not be taken for that of the next call
            raise
        self._keep(place, asker)
        return answer

    def _keep(self, place: Address, asker: Asker) -> None:
        idle = self._idle.pop(place, [])  # the most recently used socket is last
        self._idle[place] = [*idle, asker]
        while sum(map(len, self._idle.values())) > LINES_IDLE_MAX:
            oldest = next(iter(self._idle))
            self._idle[oldest].pop(0).close()
            if not self._idle[oldest]:
                del self._idle[oldest]

    def close(self) -> None:
        """Close all sockets."""
        for idle in self._idle.values():
            for asker in idle:
                asker.close()
        self._idle.clear()


def told_by(answer: Message) -> dict[str, Any]:
    """The JSON object of a broker's answer; an error in it is raised."""
    found = object_of(answer)
    if answer.command in (DENIED, DENIED_TOO) or "Error" in found:
        raise error_of(found)
    return found


def object_of(answer: Message) -> dict[str, Any]:
    """The JSON object of a broker's answer, also of a refusal; raises GarbledAnswer."""
    if not answer.body or not answer.body[0]:
        return {}
    try:
        value = msgspec.json.decode(answer.body[0])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise GarbledAnswer("the broker's answer is no JSON") from None
    if not isinstance(value, dict):
        raise GarbledAnswer("the broker's answer is no JSON object")
    return value


def payload_of(answer: Message, service: str) -> tuple[bytes, ...]:
    """The payload of a service's answer; an error in it is raised."""
    if answer.command in (REPLY, PONG):
        return answer.body
    if answer.command not in (DENIED, DENIED_TOO):
        raise GarbledAnswer(f"{service} answered a call with {answer.command!r}", service=service)
    refusal: dict[str, Any] = {}
    with contextlib.suppress(CatalogError, msgspec.DecodeError, IndexError, UnicodeDecodeError):
        found = msgspec.json.decode(answer.body[0])
        refusal = found if isinstance(found, dict) else {}
    raise CallFailed(str(refusal.get("Error") or "it refused"), str(refusal.get("code") or "failed"), service=service)
