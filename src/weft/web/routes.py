"""What the board of a session answers over HTTP (JAM-020).

    GET /             for viewers      GET /state.json   the state, once
    GET /entry        for operators    GET /events       server-sent events, id = the log's check
                                       POST /ops         an entry, see entering.py

`/events?view=hall` leaves out what only operators need. Who may see it and who may enter: `weft.shell.http.gate`.
"""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from weft.shell.http.messages import HTML, JSON, Request, Response, Route, Routes, Stream, event
from weft.web.entering import BODY_BYTES_MAX, Desk
from weft.web.feed import Feed
from weft.web.pages import Page

HALL: Final = "view=hall"


def routes_of(feed: Feed, desk: Desk, pages: dict[str, Page]) -> Routes:
    """All routes of one board."""

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
    """Each state as it comes, to who takes it; to who does not, the newest when it does."""
    number = 0
    feed.viewers += 1
    try:
        while True:
            shown = await feed.after(number)
            number = shown.number
            yield event(shown.aged(is_whole=is_whole), number=shown.check)
    finally:
        feed.viewers -= 1
