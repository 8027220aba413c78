"""What a node shows of itself on its port +6: `/healthz`, `/metrics`, `/status` (specs/00, section 7; OBS-005).

GET only, loopback only as long as the fabric is open; h11 parses, so nothing here is clever.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, NamedTuple

import h11

from weft.base.errors import UserError

CONNECTIONS_MAX: Final = 256
HEAD_BYTES_MAX: Final = 8 << 10
PATIENCE_S: Final = 10.0
PIECE_BYTES: Final = 4 << 10


class Page(NamedTuple):
    """What a path answers."""

    status: int
    content_type: str
    body: bytes


Pages = dict[str, Callable[[str], Page]]
"""What makes the page of a path from its query, the text behind `?`."""
_TEXT: Final = "text/plain; charset=utf-8"
_NOT_FOUND: Final = Page(404, _TEXT, b"there are /healthz, /metrics and /status\n")
_REFUSALS: Final = range(400, 502)  # 503 is what a failed node says of itself
_NOT_ALLOWED: Final = Page(405, _TEXT, b"GET only\n")


class Http:
    """A small server for the pages of one node."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.refused = 0
        """Connections and requests that got no page: garbage, stalls, other methods, unknown paths, one too many."""
        self._server: asyncio.Server | None = None
        self._open = 0

    async def serve(self, host: str, port: int) -> None:
        """Begin to answer."""
        try:
            self._server = await asyncio.start_server(self._connection, host, port, limit=HEAD_BYTES_MAX)
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
                async with asyncio.timeout(PATIENCE_S):
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
            while (event := parser.next_event()) is h11.NEED_DATA:
                parser.receive_data(await reader.read(PIECE_BYTES))
            if not isinstance(event, h11.Request):
                return
            page, has_body = self._page(event), event.method != b"HEAD"
        except h11.RemoteProtocolError as error:
            page, has_body = Page(error.error_status_hint, _TEXT, b""), False
        self.refused += page.status in _REFUSALS
        writer.write(_bytes_of(parser, page, has_body=has_body))
        await writer.drain()

    def _page(self, request: h11.Request) -> Page:
        if request.method != b"GET":
            return _NOT_ALLOWED
        path, _, query = request.target.decode("ascii", "replace").partition("?")
        make = self.pages.get(path)
        return make(query) if make else _NOT_FOUND


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
