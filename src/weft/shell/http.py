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


class Page(NamedTuple):
    """What a path answers."""

    status: int
    content_type: str
    body: bytes


Pages = dict[str, Callable[[], Page]]
_NOT_FOUND: Final = Page(404, "text/plain; charset=utf-8", b"there are /healthz, /metrics and /status\n")
_NOT_ALLOWED: Final = Page(405, "text/plain; charset=utf-8", b"GET only\n")


class Http:
    """A small server for the pages of one node."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.refused = 0
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
        except (TimeoutError, ConnectionError, h11.RemoteProtocolError):
            self.refused += 1
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        while (event := parser.next_event()) is h11.NEED_DATA:
            parser.receive_data(await reader.read(4096))
        if not isinstance(event, h11.Request):
            return
        page = self._page(event)
        headers = [
            ("content-type", page.content_type),
            ("content-length", str(len(page.body))),
            ("content-security-policy", "default-src 'self'"),
            ("connection", "close"),
        ]
        pieces = (
            h11.Response(status_code=page.status, headers=headers),
            h11.Data(data=page.body),
            h11.EndOfMessage(),
        )
        writer.write(b"".join(parser.send(piece) or b"" for piece in pieces))
        await writer.drain()

    def _page(self, request: h11.Request) -> Page:
        if request.method != b"GET":
            return _NOT_ALLOWED
        path = request.target.decode("ascii", "replace").partition("?")[0]
        make = self.pages.get(path)
        return make() if make else _NOT_FOUND
