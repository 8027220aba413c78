"""The endpoints of a service: functions that answer calls (CAT-070, CAT-071).

    call    = peer *envelope "" endpoint time *payload
    answer  = peer *envelope "" "o_O" time 1*payload
    failure = peer *envelope "" "(O_O)" time {"Error","code"}       ; failed, unknown-endpoint, busy, or a code of its own

Each call is answered once, even if its function fails or is cancelled.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.client.catalog.errors import CatalogError
from weft.client.catalog.servicelimits import CALLS_MAX, CANCEL_S, ERROR_CHARS_MAX, FRAMES_MAX, GRACE_S
from weft.client.catalog.traffic import Traffic
from weft.wire.catalog import commands, times
from weft.wire.catalog.messages import AWK, DENIED, DENIED_TOO, DISCONNECT, PING, PONG, REPLY, Message

Function = Callable[..., Any]
Say = Callable[[list[bytes]], Any]
ANSWERS: Final = frozenset({REPLY, DENIED, DENIED_TOO, AWK, PONG, DISCONNECT})
"""Commands that are never answered: two services that take each other's answers for calls would go on for ever."""
FRAMES: Final = (bytes, bytearray, memoryview)


class Endpoint:
    """One function that is called by its name, with its statistics."""

    def __init__(self, name: str, function: Function) -> None:
        self.name, self.function = name, function
        self.requests = self.errors = self.processing_ns = 0
        self.last_error = ""
        self.started = time.time()

    def stats(self) -> dict[str, Any]:
        """The statistics, as in `dbp.stats`."""
        return {
            "requests": self.requests,
            "errors": self.errors,
            "last_error": self.last_error,
            "processing_ns": self.processing_ns,
            "started": self.started,
        }

    async def call(self, payload: tuple[bytes, ...]) -> list[bytes]:
        """Call the function; returns the answer, also for an exception."""
        begun = time.monotonic_ns()
        self.requests += 1
        try:
            result = self.function(*payload)
            return payload_of(await result if inspect.isawaitable(result) else result)
        except BaseException as error:
            self.errors += 1
            self.last_error = text_of(error)
            raise
        finally:
            self.processing_ns += time.monotonic_ns() - begun


class Endpoints:
    """All endpoints of a service. Those named `dbp.…` are built in, and cannot be replaced."""

    def __init__(self, name: str) -> None:
        self.table: dict[str, Endpoint] = {}
        self.malformed = self.busy = self.pings = 0
        self._name = name.encode()
        self._builtins: dict[str, Callable[[tuple[bytes, ...]], Any]] = {"dbp.stats": self._stats}
        self._running: set[asyncio.Task[None]] = set()
        self._say: Say = _discard
        self.traffic = Traffic()

    def add(self, function: Function, name: str = "") -> None:
        """Register a function for calls of `name`, by default of the function's own name.

        A coroutine may wait; a plain function must not, because it would delay all other calls. ValueError for a name that
        is taken, too long, or the protocol's own.
        """
        name = name or getattr(function, "__name__", "")
        if not name or len(name.encode()) > commands.ENDPOINT_BYTES_MAX:
            raise ValueError(f"an endpoint needs a name of up to {commands.ENDPOINT_BYTES_MAX} bytes")
        if name.startswith("dbp.") or name.encode() in {*ANSWERS, PING}:
            raise ValueError(f"no endpoint can have the name {name!r}: the protocol uses it itself")
        if name in self.table:
            raise ValueError(f"there is an endpoint {name!r} already")
        self.table[name] = Endpoint(name, function)

    def build_in(self, name: str, function: Callable[[tuple[bytes, ...]], Any]) -> None:
        """Register one of the service's own endpoints, which answers at once with JSON."""
        self._builtins[name] = function

    def open(self, say: Say) -> None:
        """Accept calls from now on; answers go to `say`."""
        self._say = say
        for endpoint in self.table.values():
            endpoint.started = time.time()

    async def close(self) -> None:
        """Wait a moment for running calls, then cancel them. All are answered, except those that ignore the cancellation."""
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE_S)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=CANCEL_S)
        self._say = _discard
        self.traffic.unwatch()

    def hear(self, frames: list[bytes]) -> None:
        """A message from the socket, its routing id first; an invalid one is counted."""
        message: Message | None
        try:
            message = commands.decode_call(frames[1:], FRAMES_MAX)
        except PeerError:
            self.malformed += 1
            message = None
        traffic = self.traffic
        if traffic.on_call is None:
            traffic.calls += 1
        else:
            traffic.on_call(frames, message)
        if message is None or message.command in ANSWERS:
            return
        if message.command == PING:
            self.pings += 1
            self._answer(frames[0], message, PONG, [self._name])
        elif (builtin := self._builtins.get(_text(message.command))) is not None:
            self._answer_builtin(frames[0], message, builtin)
        else:
            self._begin(frames[0], message)

    def _begin(self, peer: bytes, message: Message) -> None:
        endpoint = self.table.get(_text(message.command))
        if endpoint is None:
            text = f"{self._name.decode()} has no endpoint {_text(message.command)!r}"
            self._refuse(peer, message, "unknown-endpoint", text)
        elif len(self._running) >= CALLS_MAX:
            self.busy += 1
            self._refuse(peer, message, "busy", f"{CALLS_MAX:,} calls are under way")
        else:
            task = asyncio.get_running_loop().create_task(self._serve(peer, message, endpoint))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _serve(self, peer: bytes, message: Message, endpoint: Endpoint) -> None:
        try:
            self._answer(peer, message, REPLY, await endpoint.call(message.body))
        except CatalogError as error:
            self._refuse(peer, message, error.code, error.text)
        except asyncio.CancelledError:
            self._refuse(peer, message, "failed", "the call was cancelled")
        except Exception as error:  # noqa: BLE001  # any exception of a program is reported to its caller
            self._refuse(peer, message, "failed", text_of(error))

    def _answer_builtin(self, peer: bytes, message: Message, builtin: Callable[[tuple[bytes, ...]], Any]) -> None:
        try:
            self._answer(peer, message, REPLY, [msgspec.json.encode(builtin(message.body))])
        except CatalogError as error:
            self._refuse(peer, message, error.code, error.text)

    def _refuse(self, peer: bytes, message: Message, code: str, text: str) -> None:
        refusal = {"Error": text[:ERROR_CHARS_MAX], "code": code}
        self._answer(peer, message, DENIED, [msgspec.json.encode(refusal)])

    def _answer(self, peer: bytes, asked: Message, command: bytes, body: list[bytes]) -> None:
        when = times.answer(asked.time, time.time())
        frames = [peer, *asked.envelope, b"", command, when, *body]
        self._say(frames)
        traffic = self.traffic
        if traffic.on_answer is None:
            traffic.answers += 1
        else:
            traffic.on_answer(frames, asked)

    def _stats(self, _: tuple[bytes, ...]) -> dict[str, Any]:
        return {name: endpoint.stats() for name, endpoint in self.table.items()}


def payload_of(result: Any) -> list[bytes]:
    """A function's result as frames: bytes and text as they are, a tuple as several frames, anything else as JSON.

    >>> payload_of("21.5"), payload_of((b"a", "b")), payload_of(None), payload_of({"a": [1]})
    ([b'21.5'], [b'a', b'b'], [b''], [b'{"a":[1]}'])
    """
    if result is None:
        return [b""]
    if isinstance(result, FRAMES):
        return [bytes(result)]
    if isinstance(result, str):
        return [result.encode()]
    if isinstance(result, tuple):
        return [frame for part in result for frame in payload_of(part)] or [b""]
    return [msgspec.json.encode(result)]


def text_of(error: BaseException) -> str:
    """An error in one line: its type and its text.

    >>> text_of(KeyError("a"))
    "KeyError: 'a'"
    """
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")[:ERROR_CHARS_MAX]
    except Exception:  # noqa: BLE001  # the error's own `__str__` failed
        return type(error).__name__


def _text(command: bytes) -> str:
    return command.decode("utf-8", "replace")


def _discard(_: list[bytes]) -> None:
    """Drops answers while the service does not run."""
