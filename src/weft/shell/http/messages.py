"""Requests, responses, streams of events, and routes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"
EVENTS: Final = "text/event-stream"
POLICY: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
"""What a page may do by default: load from this server, run no inline script."""


class Request(NamedTuple):
    """A request, as a handler sees it."""

    method: str
    path: str
    query: str = ""
    """The text behind `?`, unchanged."""
    headers: dict[str, str] = {}
    """By name in lower case."""
    peer: str = ""
    """The address of the client."""
    ports: tuple[int, int] = (0, 0)
    """The ports of both ends of the connection: the client's, and the server's."""
    host: str = ""
    """The address at which the request arrived."""
    body: bytes = b""


class Response(NamedTuple):
    """An answer of known length."""

    status: int
    content_type: str
    body: bytes
    policy: str = POLICY
    """Content-Security-Policy."""
    more: tuple[tuple[str, str], ...] = ()
    """Further headers; they replace the usual ones of the same name."""


class Stream(NamedTuple):
    """Server-sent events. The next one is made when the viewer has received the one before.

    So nothing is queued, and a slow viewer gets the newest state next, if the iterator yields that.
    """

    events: AsyncIterator[bytes]


Answer = Response | Stream
Handler = Callable[[Request], Answer | Awaitable[Answer]]


class Route(NamedTuple):
    """How one method of a path is answered; other methods are refused. `PATH/*` stands for any one name below PATH."""

    handle: Handler
    method: str = "GET"
    """`GET` reads, `POST` writes; the gate demands more for writing."""
    body_bytes_max: int = 0
    """The largest body of a POST, which must be JSON."""


Routes = dict[str, Route]
"""Routes by exact path; all other paths do not exist."""


def event(data: bytes, *, name: str = "", number: str = "") -> bytes:
    r"""One server-sent event; `data` contains no line break.

    >>> event(b"{}", number="7")
    b'id: 7\ndata: {}\n\n'
    """
    head = (f"event: {name}\n" if name else "") + (f"id: {number}\n" if number else "")
    return head.encode() + b"data: " + data + b"\n\n"


def json_response(value: Any, status: int = 200) -> Response:
    """Anything that msgspec can encode, as JSON on one line."""
    return Response(status, JSON, msgspec.json.encode(value) + b"\n")


def refusal(status: int, code: str, text: str, mend: str = "") -> Response:
    """A refusal: a code, a sentence, and what to do."""
    return json_response({"answer": "refused", "error": code, "text": text, "mend": mend}, status)
