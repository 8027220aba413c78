"""`python -m weft.web.board`: the scoreboard of a session in the browser, as a program of its own (JAM-020, JAM-021).

A node starts it for a session with `serve`. It can also be started by hand, beside any node. It ends with its parent.
"""

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import IO, Final

import msgspec

from weft.base.errors import UserError
from weft.shell.http.gate import Gate
from weft.shell.http.messages import HTML, JSON, Request, Response, Route, Routes, Stream, event
from weft.shell.http.server import Server
from weft.web.entering import BODY_BYTES_MAX, Desk
from weft.web.feed import Feed
from weft.web.pages import Page, pages_of
from weft.web.settings import Settings, settings_of

HALL: Final = "view=hall"


def routes_of(feed: Feed, desk: Desk, pages: dict[str, Page]) -> Routes:
    """All routes of one board (JAM-020).

        GET /             for viewers      GET /state.json   the state, once
        GET /entry        for operators    GET /events       server-sent events, id = the log's check
                                           POST /ops         an entry, see entering.py

    `/events?view=hall` leaves out what only operators need. Who may see it and who may enter: `weft.shell.http.gate`.
    """

    def state(_: Request) -> Response:
        return Response(200, JSON, feed.newest.aged(is_whole=True))

    def events(request: Request) -> Stream:
        return Stream(_states(feed, is_whole=request.query != HALL))

    async def enter(request: Request) -> Response:
        outcome = await desk.enter(request.headers.get("idempotency-key", ""), request.body)
        return Response(outcome.status, JSON, msgspec.json.encode(outcome.body))

    return {
        **{path: _page(page) for path, page in pages.items()},
        "/state.json": Route(state),
        "/events": Route(events),
        "/ops": Route(enter, "POST", BODY_BYTES_MAX),
    }


def _page(page: Page) -> Route:
    reply = Response(200, HTML, page.body, page.policy)
    return Route(lambda _: reply)


async def _states(feed: Feed, *, is_whole: bool) -> AsyncIterator[bytes]:
    """Each new state; a browser that reads too slowly gets only the newest."""
    number = 0
    feed.viewers += 1
    try:
        while True:
            shown = await feed.after(number)
            number = shown.number
            yield event(shown.aged(is_whole=is_whole), number=shown.check)
    finally:
        feed.viewers -= 1


LOOK_S: Final = 0.5  # how often to check that the parent still runs
ORPHANED_S: Final = 10.0  # a child of a node ends when the node has been silent for so long
TOKEN_BYTES: Final = 18


class Board:
    """One board while it runs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.feed = Feed(settings.node, settings.session)
        self.desk = Desk(lambda: self.feed.client)
        token = settings.token or secrets.token_urlsafe(TOKEN_BYTES)
        shown = "" if settings.token else token
        self.gate = Gate(token, is_loopback=settings.is_loopback, always_token=True)
        self.server = Server(routes_of(self.feed, self.desk, pages_of(shown, settings.open)), self.gate)
        self.url = ""

    async def start(self) -> None:
        """Listen; UserError `port-taken`."""
        settings = self.settings
        port = await self.server.serve(settings.host, settings.port)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"http://{host}:{port}/"
        if settings.note:
            _write(Path(settings.note), self.url)

    async def run(self, until: asyncio.Event) -> None:
        """Follow the session and serve it until `until` is set, or the parent has ended."""
        following, stopped = asyncio.ensure_future(self.feed.run()), asyncio.ensure_future(until.wait())
        try:
            while not (stopped.done() or following.done() or self._is_orphan()):
                await asyncio.wait([stopped, following], timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            following.cancel()
            stopped.cancel()
            await self.server.close()
            await asyncio.gather(following, stopped, return_exceptions=True)
        if not following.cancelled():
            following.result()  # it never ends by itself, so this raises its error

    def _is_orphan(self) -> bool:
        """Whether the parent has ended; if this is not its child process, a silent node counts as that."""
        parent = self.settings.parent
        if not parent or os.getppid() == parent:
            return False
        return not _is_there(parent) or time.monotonic() - self.feed.heard > ORPHANED_S


def _write(file: Path, url: str) -> None:
    file.write_text(url + "\n", "utf-8")


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _serve(settings: Settings, out: IO[str]) -> None:
    board, until = Board(settings), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, until.set)
    await board.start()
    view = "" if settings.is_loopback else f"?key={board.gate.view}"
    ready = {"event": "ready", "url": f"{board.url}{view}", "entry": f"{board.url}entry{view}"}
    print(msgspec.json.encode(ready).decode(), file=out, flush=True)
    await board.run(until)


def main(words: Sequence[str] | None = None) -> int:
    """Run a board; returns 2 if it cannot use its settings."""
    try:
        settings = settings_of(sys.argv[1:] if words is None else words, sys.stdin)
        asyncio.run(_serve(settings, sys.stdout))
    except UserError as error:
        sys.stderr.write(f"weft.web.board: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
