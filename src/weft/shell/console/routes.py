"""The routes below `/console/`.

GET /console/              the page             GET /console/state.json         the picture, once
GET /console/live          server-sent events   GET /console/cell?node=&cell=   which numbers, and why
GET /console/page.html#P   a page of tables     GET /console/tables.json?of=P   what it shows
GET /console/history.json?node=&span=           four metrics of a machine, ten minutes to a year
GET /console/lake.json?ask=NAME                 a question to the lake that has a name
GET /console/document.json?session=&until=|at=|place=  entries around a place of a document, and its conflicts
GET /console/text.json?session=&until=|at=|place=      the document as it was there
GET /console/versions.json?path=PATH            versions of an entry of the store, out of the lake
GET /console/road.json?origin=NODE&number=N     the way of one record to the lake
POST /console/sql.json     {"query": SQL, "as_of": ""}: any question to the lake
POST /console/login        {"who": NAME, "for_s": SECONDS}: a token for a while; GET /console/me: whose it is

A POST needs the same permission as an order (`weft.shell.http.gate`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple
from urllib.parse import parse_qs

import msgspec

from weft.cores.kit.refusals import Refusal
from weft.shell.console import limits
from weft.shell.console.feed import Feed
from weft.shell.console.history import LIVE, SPANS, history
from weft.shell.console.lake import QUESTIONS, Answer, Lake
from weft.shell.console.picture import Console
from weft.shell.console.roads import Roads
from weft.shell.http.assets import assets
from weft.shell.http.gate import Gate
from weft.shell.http.logins import Logins
from weft.shell.http.messages import JSON, TEXT, Request, Response, Route, Routes, Stream, json_response, refusal
from weft.shell.tracing import is_number

if TYPE_CHECKING:
    from weft.shell.console.documents import DocumentReader

PAGES: Final = Path(__file__).parent / "pages"
AT: Final = "/console/"
MOVED: Final = Response(308, TEXT, b"", more=(("location", AT),))
UNKNOWN: Final = Response(404, TEXT, b"/console/cell?node=UUID&cell=NUMBER, of a machine that is shown\n")
NO_PAGE: Final = Response(
    404, TEXT, b"/console/tables.json?of=configuration, alerts, catalog, store, documents, chains, lake, node\n"
)
NO_SPAN: Final = Response(
    404, TEXT, f"/console/history.json?node=UUID&span={', '.join(SPANS)}, of a machine that is shown\n".encode()
)
NO_QUESTION: Final = Response(404, TEXT, f"/console/lake.json?ask={', '.join(QUESTIONS)}\n".encode())
NO_RECORD: Final = Response(404, TEXT, b"/console/road.json?origin=NODE&number=NUMBER\n")
NO_PATH: Final = Response(404, TEXT, b"/console/versions.json?path=home.kitchen.temp\n")
NO_DOCUMENTS: Final = refusal(
    404, "no-documents", "this node has no documents", "weft doc join SESSION starts one that has"
)
SECOND_LOGIN: Final = refusal(
    403, "not-allowed", "who has logged in for a while logs nobody in", "weft console login, on the node's machine"
)
Documents = Callable[[], "DocumentReader | None"]
"""Gives the reader of this node's documents; None: it has none."""
Tables = Callable[[str], dict[str, Any]]
"""A page of tables by its name; KeyError if there is none."""


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a POST to `sql.json`."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=limits.QUERY_BYTES_MAX)]
    as_of: Annotated[str, msgspec.Meta(max_length=64)] = ""


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a POST to `login`."""

    who: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    for_s: Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Sources(NamedTuple):
    """What the routes read."""

    console: Console
    feed: Feed
    lake: Lake
    logins: Logins
    documents: Documents
    tables: Tables | None = None
    roads: Roads | None = None


def routes_of(sources: Sources) -> Routes:
    """All routes of a console."""
    return {
        **assets(AT, PAGES),
        AT.rstrip("/"): Route(lambda _: MOVED),
        **_of_picture(sources.console, sources.feed),
        **_of_lake(sources),
        **_of_documents(sources.documents),
        **_of_logins(sources.logins),
        f"{AT}road.json": Route(lambda request: _road(request, sources.roads)),
        f"{AT}tables.json": Route(lambda request: _page(request, sources.tables)),
    }


def _page(request: Request, tables: Tables | None) -> Response:
    try:
        asked = _query(request)["of"]
        return NO_PAGE if tables is None else json_response(tables(asked))
    except KeyError:
        return NO_PAGE


async def _road(request: Request, roads: Roads | None) -> Response:
    asked = _query(request)
    origin, number = asked.get("origin", ""), asked.get("number", "")
    if roads is None or not (is_number(number, limits.DIGITS_MAX) and 0 < len(origin) <= limits.ORIGIN_CHARACTERS):
        return NO_RECORD
    return json_response((await roads.of(origin, int(number)))._asdict())


def _of_picture(console: Console, feed: Feed) -> Routes:
    def state(_: Request) -> Response:
        feed.refresh()
        return Response(200, JSON, feed.whole())

    def cell(request: Request) -> Response:
        asked = _query(request)
        try:
            found = console.cell(bytes.fromhex(asked["node"]), int(asked["cell"]))
        except (KeyError, ValueError):
            found = None
        return UNKNOWN if found is None else json_response(found)

    return {
        f"{AT}state.json": Route(state),
        f"{AT}live": Route(lambda _: Stream(feed.events())),
        f"{AT}cell": Route(cell),
    }


def _of_lake(sources: Sources) -> Routes:
    console, feed, lake = sources.console, sources.feed, sources.lake

    async def past(request: Request) -> Response:
        asked = _query(request)
        try:
            node, span = bytes.fromhex(asked["node"]), asked.get("span", LIVE)
            feed.refresh()
            if (name := console.name_of(node)) and span in SPANS:
                return json_response(await history(console.values.machines.get(node), name, span, lake, feed.now()))
        except (KeyError, ValueError):
            pass
        return NO_SPAN

    async def named(request: Request) -> Response:
        query = QUESTIONS.get(_query(request).get("ask", ""))
        return NO_QUESTION if query is None else _answered(await lake.ask(query), query)

    async def versions(request: Request) -> Response:
        path = _query(request).get("path", "")[: limits.PATH_CHARACTERS]
        return json_response((await lake.versions(path))._asdict() | {"path": path}) if path else NO_PATH

    async def free(request: Request) -> Response:
        try:
            asked = msgspec.json.decode(request.body, type=Question)
        except (msgspec.DecodeError, RecursionError) as error:
            return refusal(400, "bad-question", str(error), 'weft: {"query": "SELECT ..."}')
        return _answered(await lake.ask(asked.query, asked.as_of), asked.query)

    return {
        f"{AT}history.json": Route(past),
        f"{AT}lake.json": Route(named),
        f"{AT}versions.json": Route(versions),
        f"{AT}sql.json": Route(free, "POST", limits.QUERY_BYTES_MAX),
    }


def _of_documents(documents: Documents) -> Routes:
    async def read(request: Request) -> Response:
        reader = documents()
        if reader is None:
            return NO_DOCUMENTS
        asked = _query(request)
        try:
            is_text = request.path.endswith("text.json")
            return json_response(await reader.text(asked) if is_text else reader.around(asked))
        except Refusal as error:
            return refusal(404, error.code, error.why, error.mend)

    return {f"{AT}document.json": Route(read), f"{AT}text.json": Route(read)}


def _answered(answer: Answer, query: str) -> Response:
    return json_response(answer._asdict() | {"query": query})


def _of_logins(logins: Logins) -> Routes:
    def login(request: Request) -> Response:
        if logins.who(Gate.bearer(request)) is not None:
            return SECOND_LOGIN
        try:
            asked = msgspec.json.decode(request.body, type=Asked)
        except (msgspec.DecodeError, RecursionError) as error:
            return refusal(400, "bad-login", str(error), "weft console login")
        return json_response({"token": logins.add(asked.who, asked.for_s)})

    def me(request: Request) -> Response:
        return json_response({"who": logins.who(Gate.bearer(request))})

    return {f"{AT}login": Route(login, "POST", limits.QUERY_BYTES_MAX), f"{AT}me": Route(me)}


def _query(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(request.query).items()}
