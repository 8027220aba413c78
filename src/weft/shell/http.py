"""What a node shows of itself on its port +6: `/healthz`, `/metrics`, `/status`, `/quarantine` (specs/00, section 7; OBS-005).

And what it can be told there: `POST /order`, by programs of this machine only. No page of a browser may do that: its
form cannot send `application/json`, its script says its `Origin`, and a name that was made to point here is no address.
h11 parses, so nothing here is clever.
"""

import asyncio
import contextlib
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import h11

from weft.base.errors import UserError

CONNECTIONS_MAX: Final = 256
HEAD_BYTES_MAX: Final = 8 << 10
PATIENCE_S: Final = 10.0
PIECE_BYTES: Final = 4 << 10
ORDER: Final = "/order"
ORDER_BYTES_MAX: Final = 8 << 20
ORDERS_MAX: Final = 16  # at once: each may be of 8 MiB
JSON_TYPE: Final = b"application/json"
EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104  # told apart, not bound
HOSTS: Final = (b"127.0.0.1", b"localhost", b"[::1]")


class Page(NamedTuple):
    """What a path answers."""

    status: int
    content_type: str
    body: bytes


Pages = dict[str, Callable[[str], Page | Awaitable[Page]]]
"""What makes the page of a path from its query, the text behind `?`; one that reads the disk is awaited."""
_TEXT: Final = "text/plain; charset=utf-8"
_NOT_FOUND: Final = Page(
    404, _TEXT, b"there are /healthz, /metrics, /status, /quarantine, /flight, /trace, and POST /order\n"
)
_REFUSALS: Final = range(400, 502)  # 503 is what a failed node says of itself
_NOT_ALLOWED: Final = Page(405, _TEXT, b"GET only, POST for /order\n")
_NOT_JSON: Final = Page(415, _TEXT, b"content-type: application/json\n")
_STRANGER: Final = Page(403, _TEXT, b"orders come from programs of this machine\n")
_TOO_LARGE: Final = Page(413, _TEXT, b"an order has at most 8 MiB\n")
_BUSY: Final = Page(503, _TEXT, b"too many orders at once\n")


class Http:
    """A small server for the pages of one node."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.orders: Callable[[bytes], Awaitable[Page]] | None = None
        """Who answers the body of an order; None: nobody."""
        self.refused = 0
        """Connections and requests that got no page: garbage, stalls, other methods, unknown paths, one too many."""
        self._server: asyncio.Server | None = None
        self._open = self._orders = 0

    async def serve(self, host: str, port: int) -> None:
        """Begin to answer, wherever the node is also on loopback: orders come from there."""
        hosts = [host] if host in EVERYWHERE or _is_loopback(host) or host == "localhost" else [host, "127.0.0.1"]
        try:
            self._server = await asyncio.start_server(self._connection, hosts, port, limit=HEAD_BYTES_MAX)
        except OSError as error:
            raise UserError(
                "port-taken",
                f"port {port} of {host} cannot be bound: {error.strerror}",
                "another --port, 10 or more away",
            ) from error

    async def close(self) -> None:
        """Stop listening; open answers are cut."""
        if self._server is not None:
            self._server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= CONNECTIONS_MAX:
                await self._answer(reader, writer)
            else:
                self.refused += 1
        except OSError:  # it has ended, or takes too long
            self.refused += 1
            writer.transport.abort()
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        try:
            async with asyncio.timeout(PATIENCE_S):
                request = await next_event(parser, reader)
            if not isinstance(request, h11.Request):
                return
            made, has_body = self._page(request), request.method != b"HEAD"
            if made is None:
                peer = writer.get_extra_info("peername")
                page = _refusal_of(request, peer[0] if peer else "") or await self._obey(parser, reader, writer)
            else:
                page = made if isinstance(made, Page) else await made
        except h11.RemoteProtocolError as error:
            page, has_body = Page(error.error_status_hint, _TEXT, b""), False
        self.refused += page.status in _REFUSALS
        writer.write(_bytes_of(parser, page, has_body=has_body))
        async with asyncio.timeout(PATIENCE_S):
            await writer.drain()

    async def _obey(self, parser: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Page:
        """Read an order and wait for what comes of it."""
        if self.orders is None:
            return _NOT_FOUND
        if self._orders >= ORDERS_MAX:
            return _BUSY
        self._orders += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                if parser.they_are_waiting_for_100_continue:
                    writer.write(parser.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                body = await body_of(parser, reader, ORDER_BYTES_MAX)
            return _TOO_LARGE if body is None else await self.orders(body)
        finally:
            self._orders -= 1

    def _page(self, request: h11.Request) -> Page | Awaitable[Page] | None:
        """What a request shows; None: it is an order."""
        path, _, query = request.target.decode("ascii", "replace").partition("?")
        if path == ORDER and request.method == b"POST":
            return None
        if request.method != b"GET" or path == ORDER:
            return _NOT_ALLOWED
        make = self.pages.get(path)
        return make(query) if make else _NOT_FOUND


async def next_event(parser: h11.Connection, reader: asyncio.StreamReader) -> Any:
    """What comes next on a connection."""
    while (event := parser.next_event()) is h11.NEED_DATA:
        parser.receive_data(await reader.read(PIECE_BYTES))
    return event


async def body_of(parser: h11.Connection, reader: asyncio.StreamReader, bytes_max: int) -> bytes | None:
    """All of the body; None if it is too large. A body that breaks off is a RemoteProtocolError."""
    pieces: list[bytes] = []
    left = bytes_max
    while isinstance(event := await next_event(parser, reader), h11.Data):
        left -= len(event.data)
        if left < 0:
            return None
        pieces.append(bytes(event.data))
    return b"".join(pieces)


def _refusal_of(request: h11.Request, peer: str) -> Page | None:
    """Why an order is not even read: it comes from elsewhere, or a browser's page may have sent it."""
    headers = dict(request.headers)
    host = headers.get(b"host", b"")
    if not _is_loopback(peer) or host.removesuffix(b":" + host.rpartition(b":")[2]) not in HOSTS:
        return _STRANGER
    if headers.get(b"origin", b"http://" + host) != b"http://" + host:
        return _STRANGER
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != JSON_TYPE:
        return _NOT_JSON
    length = headers.get(b"content-length", b"0")
    return _TOO_LARGE if int(length) > ORDER_BYTES_MAX else None


def _is_loopback(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _bytes_of(parser: h11.Connection, page: Page, *, has_body: bool) -> bytes:
    headers = [
        ("content-type", page.content_type),
        ("content-length", str(len(page.body))),
        ("content-security-policy", "default-src 'self'"),
        ("connection", "close"),
    ]
    pieces: list[h11.Event] = [h11.Response(status_code=page.status, headers=headers)]
    if has_body:
        pieces.append(h11.Data(data=page.body))
    return b"".join(parser.send(piece) or b"" for piece in (*pieces, h11.EndOfMessage()))
