"""What a node answers below `/console/`.

GET /console/              the page             GET /console/state.json         the picture, once
GET /console/live          server-sent events   GET /console/cell?node=&cell=   which numbers, and why
GET /console/page.html#P   a page of tables     GET /console/tables.json?of=P   what it shows
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from weft.shell.console.feed import Feed
from weft.shell.console.picture import Console
from weft.shell.http.assets import assets
from weft.shell.http.messages import JSON, TEXT, Request, Response, Route, Routes, Stream, json_response

PAGES: Final = Path(__file__).parent / "pages"
AT: Final = "/console/"
MOVED: Final = Response(308, TEXT, b"", more=(("location", AT),))
UNKNOWN: Final = Response(404, TEXT, b"/console/cell?node=UUID&cell=NUMBER, of a machine that is shown\n")
NO_PAGE: Final = Response(
    404, TEXT, b"/console/tables.json?of=configuration, alerts, catalog, store, documents, chains, lake, node\n"
)
Tables = Callable[[str], dict[str, Any]]
"""A page of tables by its name; KeyError if there is none."""


def routes_of(console: Console, feed: Feed, tables: Tables | None = None) -> Routes:
    """All routes of a console."""

    def state(_: Request) -> Response:
        feed.refresh()
        return Response(200, JSON, feed.whole())

    def cell(request: Request) -> Response:
        asked = parse_qs(request.query)
        try:
            found = console.cell(bytes.fromhex(asked["node"][0]), int(asked["cell"][0]))
        except (KeyError, ValueError):
            found = None
        return UNKNOWN if found is None else json_response(found)

    def page(request: Request) -> Response:
        try:
            asked = parse_qs(request.query)["of"][0]
            return NO_PAGE if tables is None else json_response(tables(asked))
        except KeyError:
            return NO_PAGE

    return {
        **assets(AT, PAGES),
        AT.rstrip("/"): Route(lambda _: MOVED),
        f"{AT}state.json": Route(state),
        f"{AT}live": Route(lambda _: Stream(feed.events())),
        f"{AT}cell": Route(cell),
        f"{AT}tables.json": Route(page),
    }
