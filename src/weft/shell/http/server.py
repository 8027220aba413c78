"""Serves HTTP connections, one request each: a head of limited size, perhaps a body, then an answer or a stream of events.

h11 parses. Bytes that are not a request end the connection with at most a status.
"""

import asyncio
import contextlib
import inspect
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

import h11

from weft.base.errors import UserError
from weft.shell.http.gate import Gate
from weft.shell.http.limits import (
    BODIES_MAX,
    CONNECTIONS_MAX,
    FAREWELL_S,
    HEAD_BYTES_MAX,
    PATIENCE_S,
    PIECE_BYTES,
    STALLED_S,
    STILL_HERE_S,
    STREAMS_MAX,
    TOLD_MAX,
    UNSENT_BYTES,
)
from weft.shell.http.messages import (
    EVENTS,
    POLICY,
    TEXT,
    Answer,
    Request,
    Response,
    Route,
    Routes,
    Stream,
    event,
    refusal,
)
from weft.shell.listening import stop_listening

REFUSALS: Final = range(400, 502)
"""Status codes that count as refused; 503 is also the regular answer of a failed node."""
NOT_MODIFIED: Final = 304
STILL_HERE: Final = event(b"here", name="still")
RETRY: Final = b"retry: 1000\n\n"
BUSY: Final = Response(503, TEXT, b"too many connections\n")
TOO_MANY: Final = refusal(503, "busy", "too many requests at once", "again in a moment")
FAILED: Final = refusal(500, "our-fault", "this page could not be made", "the node's log says why; report it")


class Server:
    """Serves some routes behind a gate."""

    def __init__(self, routes: Routes, gate: Gate) -> None:
        self.routes = routes
        self.refused = 0
        """Refused connections and requests: garbage, stalls, wrong methods, unknown paths, no permission, too many."""
        self._gate = gate
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._streams: set[asyncio.Task[Any]] = set()
        self._unasked: dict[asyncio.Task[Any], str] = {}
        """Connections whose head is not complete yet, the oldest first, with the address of the other end."""
        self._bodies = 0

    async def serve(self, hosts: str | Sequence[str], port: int) -> int:
        """Begin to answer; returns the port. UserError `port-taken`."""
        try:
            self._server = await asyncio.start_server(
                self._connection, hosts, port, limit=HEAD_BYTES_MAX, backlog=CONNECTIONS_MAX
            )
        except OSError as error:
            shown = hosts if isinstance(hosts, str) else hosts[0]
            text = f"port {port} of {shown} cannot be bound: {error.strerror}"
            raise UserError("port-taken", text, "another --port, 10 or more away") from error
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening; streams are cut, and answers in progress get a moment to finish."""
        if self._server is not None:
            await stop_listening(self._server)
        for task in self._streams:
            task.cancel()
        if answering := self._tasks - self._streams:
            await asyncio.wait(answering, timeout=FAREWELL_S)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio calls it in one"
        self._tasks.add(task)
        if len(self._tasks) > CONNECTIONS_MAX:
            self._make_room()
        try:
            if len(self._tasks) <= CONNECTIONS_MAX + TOLD_MAX:
                await self._answer(reader, writer)
            else:
                self.refused += 1
        except (OSError, asyncio.CancelledError):  # the client is gone or too slow, or the server stops
            self.refused += 1
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            await self._leave(writer)

    def _make_room(self) -> None:
        """End the oldest connection without a complete head, of the address that has most of them (SEC-053)."""
        if self._unasked:
            fullest = Counter(self._unasked.values()).most_common(1)[0][0]
            task = next(task for task, address in self._unasked.items() if address == fullest)
            del self._unasked[task]
            self._tasks.discard(task)
            task.cancel()

    async def _leave(self, writer: asyncio.StreamWriter) -> None:
        """Close a connection: at once, if the other end does not read the rest of its answer in time."""
        writer.close()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await writer.wait_closed()
        except TimeoutError:
            self.refused += 1
            writer.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass  # it has ended

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        is_busy, has_body = len(self._tasks) > CONNECTIONS_MAX, True
        try:
            head = await self._head(parser, reader, writer)
            if not isinstance(head, h11.Request):
                return
            has_body = head.method != b"HEAD"
            answer = (
                BUSY if is_busy else await self._answer_to(_request(head, writer), _Exchange(parser, reader, writer))
            )
        except h11.RemoteProtocolError as error:
            answer, has_body = Response(error.error_status_hint, TEXT, b""), False
        if isinstance(answer, Stream) and len(self._streams) < STREAMS_MAX:
            await self._stream(parser, writer, answer.events)
            return
        answer = TOO_MANY if isinstance(answer, Stream) else answer
        self.refused += answer.status in REFUSALS or answer in (BUSY, TOO_MANY)
        writer.write(_bytes_of(parser, answer, has_body=has_body))
        async with asyncio.timeout(PATIENCE_S):
            await writer.drain()

    async def _head(self, parser: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
        task = asyncio.current_task()
        assert task is not None, "a connection is one"
        self._unasked[task] = str((writer.get_extra_info("peername") or ("",))[0])
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await next_event(parser, reader)
        finally:
            self._unasked.pop(task, None)

    async def _answer_to(self, request: Request, exchange: "_Exchange") -> Answer:
        route = self.routes.get(request.path) or self.routes.get(f"{request.path.rpartition('/')[0]}/*")
        if route is None or route.method != request.method:
            return self._unknown(request, route)
        if route.method == "GET" and (opened := self._opened(request)):
            return opened
        if refused := self._gate.refuses(request, writes=route.method == "POST"):
            return refused
        return await (_made(route, request) if route.method == "GET" else self._obey(route, request, exchange))

    async def _obey(self, route: Route, request: Request, exchange: "_Exchange") -> Answer:
        """Read the body, and let the route answer."""
        if self._bodies >= BODIES_MAX:
            return TOO_MANY
        self._bodies += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                body = await _body_of(request, route, exchange)
            if body is None:
                return refusal(413, "too-large", f"a body has at most {route.body_bytes_max:,} bytes")
            return await _made(route, request._replace(body=body))
        finally:
            self._bodies -= 1

    def _opened(self, request: Request) -> Response | None:
        """A request with a valid key in its address gets a cookie, and a redirect to the address without the key."""
        cookie = self._gate.opens(request.query) if self._gate.is_ours(request.headers.get("host", "")) else ""
        return Response(303, TEXT, b"", more=(("location", request.path), ("set-cookie", cookie))) if cookie else None

    def _unknown(self, request: Request, route: Route | None) -> Response:
        if route is None and request.method == "GET":
            if refused := self._gate.refuses(request, writes=False):
                return refused  # without permission to read, the answer does not show which paths exist
            there = ", ".join(path if found.method == "GET" else f"POST {path}" for path, found in self.routes.items())
            return Response(404, TEXT, f"there are {there}\n".encode())
        allowed = "GET" if route is None else route.method
        return Response(405, TEXT, f"{allowed} only\n".encode(), more=(("allow", allowed),))

    async def _stream(self, parser: h11.Connection, writer: asyncio.StreamWriter, events: AsyncIterator[bytes]) -> None:
        """Send the events; the next one is made after the client has received the one before."""
        task = asyncio.current_task()
        assert task is not None, "asyncio calls it in one"
        self._streams.add(task)
        _hold_little(writer)
        head = h11.Response(status_code=200, headers=_headers(EVENTS, POLICY))
        writer.write((parser.send(head) or b"") + _piece(parser, RETRY))
        pending: asyncio.Task[bytes] | None = None
        try:
            while True:
                pending = pending or asyncio.ensure_future(_next(events))
                done, _ = await asyncio.wait([pending], timeout=STILL_HERE_S)
                piece = pending.result() if done else STILL_HERE
                pending = None if done else pending
                if not piece:
                    break
                writer.write(_piece(parser, piece))
                async with asyncio.timeout(STALLED_S):
                    await writer.drain()
            writer.write(parser.send(h11.EndOfMessage()) or b"")
        finally:
            self._streams.discard(task)
            if pending is not None:
                pending.cancel()
                await asyncio.gather(pending, return_exceptions=True)
            if inspect.isasyncgen(events):
                await events.aclose()


class _Exchange(NamedTuple):
    """One request on its connection."""

    parser: h11.Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def next_event(parser: h11.Connection, reader: asyncio.StreamReader) -> Any:
    """The next event of h11 on a connection."""
    while (found := parser.next_event()) is h11.NEED_DATA:
        parser.receive_data(await reader.read(PIECE_BYTES))
    return found


async def _made(route: Route, request: Request) -> Answer:
    try:
        answer = route.handle(request)
        return answer if isinstance(answer, Response | Stream) else await answer
    except Exception as fault:
        if route.method == "GET":
            _report(fault)
            return FAILED
        context = {"message": "an order failed halfway", "exception": fault}
        asyncio.get_running_loop().call_exception_handler(context)  # some Pythons tell of a task's error much later
        raise ConnectionAbortedError from fault


def _report(fault: Exception) -> None:
    """Log an error in something that only reads: nothing has changed, so the process goes on."""
    context = {"message": "a page could not be made", "exception": fault}
    asyncio.get_running_loop().default_exception_handler(context)


async def _body_of(request: Request, route: Route, exchange: _Exchange) -> bytes | None:
    """The whole body; None if it is too large. RemoteProtocolError if the connection ends before the body does."""
    left = route.body_bytes_max
    if int(request.headers.get("content-length", "0")) > left:  # h11 has read it as a number
        return None
    parser, reader, writer = exchange
    if parser.they_are_waiting_for_100_continue:
        writer.write(parser.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
    pieces: list[bytes] = []
    while isinstance(found := await next_event(parser, reader), h11.Data):
        left -= len(found.data)
        if left < 0:
            return None
        pieces.append(bytes(found.data))
    return b"".join(pieces)


async def _next(events: AsyncIterator[bytes]) -> bytes:
    """The next event; empty: there are no more."""
    try:
        return await anext(events, b"")
    except Exception as fault:  # noqa: BLE001  # whatever it is, it ends this stream only
        _report(fault)
        return b""


def _hold_little(writer: asyncio.StreamWriter) -> None:
    """Keep the send buffer small, so that a slow viewer gets newer events instead of a long queue of old ones."""
    writer.transport.set_write_buffer_limits(high=0)
    found: socket.socket = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT_BYTES)


def _request(head: h11.Request, writer: asyncio.StreamWriter) -> Request:
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
    path, _, query = head.target.decode("ascii", "replace").partition("?")
    peer, here = (writer.get_extra_info(name) or ("", 0) for name in ("peername", "sockname"))
    ports = (int(peer[1]), int(here[1]))
    return Request(head.method.decode("ascii"), path, query, headers, str(peer[0]), ports, str(here[0]))


def _headers(
    content_type: str, policy: str, more: Sequence[tuple[str, str]] = (), length: int | None = None
) -> list[tuple[str, str]]:
    usual = {
        "content-type": content_type,
        "content-security-policy": policy,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "connection": "close",
    }
    return [*(usual | dict(more)).items(), *([] if length is None else [("content-length", str(length))])]


def _piece(parser: h11.Connection, data: bytes) -> bytes:
    return parser.send(h11.Data(data=data)) or b""


def _bytes_of(parser: h11.Connection, response: Response, *, has_body: bool) -> bytes:
    length = None if response.status == NOT_MODIFIED else len(response.body)
    headers = _headers(response.content_type, response.policy, response.more, length)
    pieces: list[h11.Event] = [h11.Response(status_code=response.status, headers=headers)]
    if has_body and response.body:
        pieces.append(h11.Data(data=response.body))
    return b"".join(parser.send(piece) or b"" for piece in (*pieces, h11.EndOfMessage()))
