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
    """A request, as far as a handler may see it."""

    method: str
    path: str
    query: str = ""
    """The text behind `?`, unchanged."""
    headers: dict[str, str] = {}
    """By name in lower case."""
    peer: str = ""
    """The address of the client."""
    ports: tuple[int, int] = (0, 0)
    """Address and port of both ends of the connection: the client's, and the server's."""
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
    """Server-sent events: the next one is requested when the viewer has taken the one before.

    So a slow viewer gets the newest state next, if that is what the iterator yields; nothing is queued.
    """

    events: AsyncIterator[bytes]


Answer = Response | Stream
Handler = Callable[[Request], Answer | Awaitable[Answer]]


class Route(NamedTuple):
    """How one method of a path, or of any one name behind `PATH/*`, is answered; every other method is refused."""

    handle: Handler
    method: str = "GET"
    """`GET` reads, `POST` writes; the gate demands more for writing."""
    body_bytes_max: int = 0
    """Of the body of a POST, which must be JSON."""


Routes = dict[str, Route]
"""By exact path. A path that is not in it does not exist."""


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
    """A refused write: a code, a sentence, what helps."""
    return json_response({"answer": "refused", "error": code, "text": text, "mend": mend}, status)
