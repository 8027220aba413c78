"""One connection to the client port of a store: the server's greeting, requests out, answers in (CLN-001).

Requests of one turn of the loop leave in one write. No request is sent before the greeting has arrived.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final, cast

import msgpack
from msgspec import UNSET

from weft.base.errors import PeerError
from weft.client.link.opening import Target, open_stream
from weft.client.store.errors import AuthFailed, StoreError, Unreachable, error_of
from weft.client.store.finding import Grouped, Node, address_of
from weft.client.store.limits import FRAME_BYTES_MAX, GREETING_S
from weft.wire.store import clients

WATCH_SINCE: Final = "watch.since"


class Frames:
    """Cuts a stream of bytes into MessagePack objects, without decoding them. O(bytes)."""

    def __init__(self) -> None:
        self._walker = msgpack.Unpacker(max_buffer_size=2 * FRAME_BYTES_MAX)
        self._held = bytearray()
        self._begin = 0

    @property
    def rest(self) -> int:
        """Bytes of the object that is not complete yet."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """The objects that `data` completes; ValueError for bytes that are not MessagePack, or an object that is too long."""
        self._held += data
        if len(self._held) > 2 * FRAME_BYTES_MAX:
            raise ValueError(f"an answer of more than {FRAME_BYTES_MAX:,} bytes")
        self._walker.feed(data)
        found, begin, base = [], self._begin, self._begin
        try:
            while True:
                self._walker.skip()
                end = self._walker.tell()
                found.append(bytes(self._held[begin - base : end - base]))
                begin = end
        except msgpack.OutOfData:
            del self._held[: begin - base]
            self._begin = begin
        return found


class Link(asyncio.Protocol):
    """An open connection. `hear` is called with each answer; after `stand`, `fall` is called when it has ended."""

    def __init__(self, hear: Callable[[clients.Answer], None]) -> None:
        self.greeting: clients.Greeting | None = None
        self.heard_at = 0.0
        """When anything came last, in seconds by the clock of the loop."""
        self._hear = hear
        self._fall: Callable[[str], None] = _ignore
        self._loop = asyncio.get_running_loop()
        self._greeted: asyncio.Future[clients.Greeting] = self._loop.create_future()
        self._frames = Frames()
        self._unsaid: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._is_held = False

    @property
    def can_resume(self) -> bool:
        """Whether the server can continue a watch at a position."""
        weft = self.greeting.weft if self.greeting is not None else UNSET
        return weft is not UNSET and WATCH_SINCE in weft.get("caps", ())

    async def greet(self) -> None:
        """Wait for the greeting; Unreachable if it does not come, AuthFailed if the server demands a login."""
        try:
            async with asyncio.timeout(GREETING_S):
                greeting = await asyncio.shield(self._greeted)
        except TimeoutError:
            raise Unreachable(
                "something listens there but sends no greeting: it is no store, or its node hangs"
            ) from None
        if greeting.auth is not UNSET and greeting.auth and greeting.auth[0] is not None:
            raise AuthFailed(f"this store demands a login ({greeting.auth[0]}), which this client does not support")

    def stand(self, fall: Callable[[str], None]) -> None:
        """Call `fall` with the reason when the connection ends; Unreachable if it has ended already."""
        if self._transport is None:
            raise Unreachable("the server has ended the connection")
        self._fall = fall

    def say(self, request: bytes) -> None:
        """Send an encoded request at the end of this turn, together with all others."""
        if not self._unsaid:
            self._loop.call_soon(self._flush)
        self._unsaid.append(request)

    def hold(self) -> None:
        """Stop reading until `read_on`; TCP makes the server wait."""
        if self._transport is not None and not self._is_held:
            self._is_held = True
            self._transport.pause_reading()

    def read_on(self) -> None:
        """Read again."""
        if self._transport is not None and self._is_held:
            self._is_held = False
            self._transport.resume_reading()

    def close(self) -> None:
        """Send what is unsent, and close; `fall` is not called."""
        self._fall = _ignore
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abandon(self) -> None:
        """Like `close`, but in the next turn of the loop; may be called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.close)

    def abort(self, why: str) -> None:
        """Close a connection that does not work any more; `fall` is called."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
            self._end(why)

    def _flush(self) -> None:
        unsaid, self._unsaid = self._unsaid, []
        if unsaid and self._transport is not None:
            self._transport.write(unsaid[0] if len(unsaid) == 1 else b"".join(unsaid))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # tidy: asyncio calls it
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:  # tidy: asyncio calls it
        self.heard_at = self._loop.time()
        try:
            for frame in self._frames.feed(data):
                self._take(frame)
        except (PeerError, ValueError, msgpack.UnpackException) as error:
            what = "what listens there is no store" if self.greeting is None else "an answer cannot be read"
            self.abort(f"{what}: {error}")

    def _take(self, frame: bytes) -> None:
        answer = clients.decode_answer(frame)
        if isinstance(answer, clients.Greeting):
            self.greeting = answer
            if not self._greeted.done():
                self._greeted.set_result(answer)
        elif self.greeting is not None:
            self._hear(answer)
        elif answer.error and not self._greeted.done():  # a refused client gets the reason
            self._refuse(error_of(answer.etype, answer.error))

    def connection_lost(self, error: Exception | None) -> None:  # tidy: asyncio calls it
        if self._transport is not None:
            self._transport = None
            self._end(str(error) if error else "the server has ended the connection")

    def _end(self, why: str) -> None:
        if not self._greeted.done():
            self._refuse(Unreachable(why))
        self._fall(why)

    def _refuse(self, error: StoreError) -> None:
        self._greeted.set_exception(error)
        self._greeted.exception()  # marks it as seen, so that asyncio does not complain if nobody waits


def _ignore(_: Any) -> None:
    """In place of `fall` while nobody wants to know of the end."""


async def connect(node: Node | Grouped, hear: Callable[[clients.Answer], None], fall: Callable[[str], None]) -> Link:
    """A connection to the store that is meant, with its greeting; Unreachable says what was tried."""
    node, group = node if isinstance(node, Grouped) else (node, "")
    host, port = address_of(node)
    try:
        async with asyncio.timeout(GREETING_S):
            link = await open_stream(lambda: Link(hear), Target(f"tcp://{host}:{port}"))
    except (OSError, TimeoutError) as error:
        raise Unreachable(f"no store answers at {host}:{port}: {_reason(error)}") from None
    try:
        await link.greet()
        link.stand(fall)
        if group:
            link.say(clients.encode(clients.ClientHello(seq=0, conv=group)))
    except StoreError as error:
        link.close()
        raise type(error)(f"{host}:{port}: {error.text}", error.code) from None
    except BaseException:
        link.close()
        raise
    return link


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if isinstance(number, int) and number > 0 else str(error) or "no answer"
