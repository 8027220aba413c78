"""The board's HTTP: two pages, the state, a stream of states, and what operators enter (JAM-020, SEC-046).

    GET /             for viewers      GET /state.json   the state, once
    GET /entry        for operators    GET /events       server-sent events, id = the log's check
                                       POST /ops         an entry, see entering.py

`/events?view=hall` leaves out what only operators need.

Nothing of it is for other sites: the Host must be ours, there is no CORS, and a page may load nothing from elsewhere.
Who may see it and who may enter stands in gate.py.
h11 parses, so nothing here is clever.
"""

import asyncio
import contextlib
import socket
from typing import Final, NamedTuple

import h11
import msgspec

from weft.base.errors import UserError
from weft.shell.http import body_of, next_event
from weft.web.entering import BODY_BYTES_MAX, Desk, Outcome, refusal
from weft.web.feed import Feed
from weft.web.gate import Gate
from weft.web.pages import Page

CONNECTIONS_MAX: Final = 256
HEAD_BYTES_MAX: Final = 8 << 10
PATIENCE_S: Final = 10.0
STALLED_S: Final = 30.0  # a viewer that takes nothing for so long is gone
STILL_HERE_S: Final = 10.0  # so often something is said to a viewer, or the page believes that we are gone
UNSENT_BYTES: Final = 16 << 10
"""What the kernel holds for a viewer before we wait: a state or two (JAM-020: never more than eight)."""
HALL: Final = "view=hall"
OPS: Final = "/ops"
ERROR: Final = 400
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
EVENTS: Final = "text/event-stream"
STILL_HERE: Final = b"event: still\ndata: here\n\n"
RETRY: Final = b"retry: 1000\n\n"


class Reply(NamedTuple):
    """What a request is answered; its length is known."""

    status: int
    content_type: str
    body: bytes
    policy: str = "default-src 'none'"
    more: tuple[tuple[str, str], ...] = ()
    """Further headers."""


class Said(NamedTuple):
    """A request, as far as it is looked at."""

    method: bytes
    path: str
    query: str
    headers: dict[str, str]
    peer: str
    """The address it came from."""


class Stream(NamedTuple):
    """It is answered with states as they come."""

    is_whole: bool


NOT_FOUND: Final = Reply(404, TEXT, b"there are /, /entry, /state.json, /events, and POST /ops\n")
NOT_ALLOWED: Final = Reply(405, TEXT, b"GET only, POST for /ops\n")
STRANGER: Final = Reply(421, TEXT, b"this board is called by its address\n")
ASKS_KEY: Final = Reply(
    401,
    "text/html; charset=utf-8",
    b"<!doctype html><title>Scoreboard</title><form>This board asks for its key: <input name=key> <button>Go</button></form>",
    "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
)
BUSY: Final = Reply(503, TEXT, b"too many viewers\n")


class Server:
    """Serves one board."""

    def __init__(self, feed: Feed, desk: Desk, pages: dict[str, Page], gate: Gate) -> None:
        self.feed, self.desk = feed, desk
        self.refused = 0
        """Connections and requests that got no page."""
        self._pages, self._gate = pages, gate
        self._server: asyncio.Server | None = None
        self._open = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, host: str, port: int) -> int:
        """Begin to answer; the port that it is. UserError `port-taken`."""
        try:
            self._server = await asyncio.start_server(self._connection, host, port, limit=HEAD_BYTES_MAX, backlog=256)
        except OSError as error:
            raise UserError(
                "port-taken", f"port {port} of {host} cannot be bound: {error.strerror}", "another --port"
            ) from error
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening; viewers are cut, and come again to whoever is there then."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open += 1
        try:
            await self._answer(reader, writer, is_busy=self._open > CONNECTIONS_MAX)
        except (OSError, asyncio.CancelledError):  # it has ended, or takes too long, or we end
            self.refused += 1
            writer.transport.abort()
        finally:
            self._open -= 1
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_busy: bool) -> None:
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        has_body = True
        try:
            async with asyncio.timeout(PATIENCE_S):
                request = await next_event(parser, reader)
            if not isinstance(request, h11.Request):
                return
            has_body = request.method != b"HEAD"
            reply = BUSY if is_busy else await self._reply(parser, reader, _said(request, writer))
        except h11.RemoteProtocolError as error:
            reply = Reply(error.error_status_hint, TEXT, b"")
        if isinstance(reply, Stream):
            await self._stream(parser, writer, reply)
            return
        self.refused += reply.status >= ERROR
        writer.write(_bytes_of(parser, reply, has_body=has_body))
        async with asyncio.timeout(PATIENCE_S):
            await writer.drain()

    async def _reply(self, parser: h11.Connection, reader: asyncio.StreamReader, said: Said) -> Reply | Stream:
        """What a request is answered."""
        if not self._gate.is_ours(said.headers.get("host", "")):
            return STRANGER
        if (said.path == OPS) != (said.method == b"POST") or said.method not in (b"GET", b"POST"):
            return NOT_ALLOWED
        if said.path == OPS:
            outcome = self._refusal(said.headers) or await self._enter(parser, reader, said.headers)
            return Reply(outcome.status, JSON, msgspec.json.encode(outcome.body))
        if cookie := self._gate.opens(said.query):
            return Reply(303, TEXT, b"", more=(("location", said.path), ("set-cookie", cookie)))
        return self._shown(said) if self._gate.may_see(said.peer, said.headers) else ASKS_KEY

    def _shown(self, said: Said) -> Reply | Stream:
        if said.path == "/events":
            return Stream(is_whole=said.query != HALL)
        if said.path == "/state.json":
            return Reply(200, JSON, self.feed.newest.aged(is_whole=True))
        page = self._pages.get(said.path)
        return Reply(200, "text/html; charset=utf-8", page.body, page.policy) if page is not None else NOT_FOUND

    def _refusal(self, headers: dict[str, str]) -> Outcome | None:
        """Why an entry is not even read."""
        host = headers.get("host", "")
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return Outcome(403, {"error": "not-allowed", "text": "another site's page may enter nothing", "mend": ""})
        if not self._gate.may_enter(headers):
            text = "an entry needs this board's token"
            return Outcome(401, {"error": "token", "text": text, "mend": "Authorization: Bearer TOKEN"})
        if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            return Outcome(415, {"error": "content-type", "text": "an entry is JSON", "mend": f"Content-Type: {JSON}"})
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            return refusal("too-large", f"an entry has at most {BODY_BYTES_MAX:,} bytes")
        return None

    async def _enter(self, parser: h11.Connection, reader: asyncio.StreamReader, headers: dict[str, str]) -> Outcome:
        async with asyncio.timeout(PATIENCE_S):
            body = await body_of(parser, reader, BODY_BYTES_MAX)
        if body is None:
            return refusal("too-large", f"an entry has at most {BODY_BYTES_MAX:,} bytes")
        return await self.desk.enter(headers.get("idempotency-key", ""), body)

    async def _stream(self, parser: h11.Connection, writer: asyncio.StreamWriter, stream: Stream) -> None:
        """Say each state as it comes, to who takes it; to who does not, the newest when it does (JAM-020)."""
        _hold_little(writer)
        writer.write(_head_of(parser) + _piece(parser, RETRY))
        number = 0
        self.feed.viewers += 1
        try:
            while True:
                number, text = await self._next(number, stream)
                writer.write(_piece(parser, text))
                async with asyncio.timeout(STALLED_S):
                    await writer.drain()
        finally:
            self.feed.viewers -= 1

    async def _next(self, number: int, stream: Stream) -> tuple[int, bytes]:
        """The next event for who has seen that number: a state, or that we are still here."""
        try:
            async with asyncio.timeout(STILL_HERE_S):
                shown = await self.feed.after(number)
        except TimeoutError:
            return number, STILL_HERE
        return shown.number, b"id: %s\ndata: %s\n\n" % (shown.check.encode(), shown.aged(is_whole=stream.is_whole))


def _hold_little(writer: asyncio.StreamWriter) -> None:
    """Let what a viewer does not take wait here, where the next state replaces it, and not in buffers behind us."""
    writer.transport.set_write_buffer_limits(high=0)
    found: socket.socket = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT_BYTES)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _said(request: h11.Request, writer: asyncio.StreamWriter) -> Said:
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in request.headers}
    path, _, query = request.target.decode("ascii", "replace").partition("?")
    peer = writer.get_extra_info("peername")
    return Said(request.method, path, query, headers, str(peer[0]) if peer else "")


def _headers(content_type: str, policy: str) -> list[tuple[str, str]]:
    return [
        ("content-type", content_type),
        ("content-security-policy", policy),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
        ("connection", "close"),
    ]


def _head_of(parser: h11.Connection) -> bytes:
    head = h11.Response(status_code=200, headers=_headers(EVENTS, "default-src 'none'"))
    return parser.send(head) or b""


def _piece(parser: h11.Connection, data: bytes) -> bytes:
    return parser.send(h11.Data(data=data)) or b""


def _bytes_of(parser: h11.Connection, reply: Reply, *, has_body: bool) -> bytes:
    headers = [*_headers(reply.content_type, reply.policy), *reply.more, ("content-length", str(len(reply.body)))]
    pieces: list[h11.Event] = [h11.Response(status_code=reply.status, headers=headers)]
    if has_body:
        pieces.append(h11.Data(data=reply.body))
    return b"".join(parser.send(piece) or b"" for piece in (*pieces, h11.EndOfMessage()))
