"""What a request is, what it is answered, and how a path gets its answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"
EVENTS: Final = "text/event-stream"
POLICY: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
"""What a page may do, unless it says otherwise: load from here, run no inline script."""


class Request(NamedTuple):
    """A request, as far as a handler may look at it."""

    method: str
    path: str
    query: str = ""
    """The text behind `?`, as it came."""
    headers: dict[str, str] = {}
    """By names in lower case."""
    peer: str = ""
    """The address it came from."""
    ports: tuple[int, int] = (0, 0)
    """Of the two ends of its connection: where it came from, and where it arrived."""
    host: str = ""
    """The address at which it arrived."""
    body: bytes = b""


class Response(NamedTuple):
    """An answer whose length is known."""

    status: int
    content_type: str
    body: bytes
    policy: str = POLICY
    """Content-Security-Policy."""
    more: tuple[tuple[str, str], ...] = ()
    """Further headers, or other values of the usual ones."""


class Stream(NamedTuple):
    """Server-sent events: the next one is asked for when the viewer has taken the one before.

    Who is slow therefore gets the newest state next, if that is what the iterator yields; nothing is queued.
    """

    events: AsyncIterator[bytes]


Answer = Response | Stream
Handler = Callable[[Request], Answer | Awaitable[Answer]]


class Route(NamedTuple):
    """What a path does with one method; every other method of it is refused."""

    handle: Handler
    method: str = "GET"
    """`GET` reads, `POST` writes; the gate asks more of who writes."""
    body_bytes_max: int = 0
    """Of a POST, which must be JSON."""


Routes = dict[str, Route]
"""By exact path. A path that is not here does not exist."""


def event(data: bytes, *, name: str = "", number: str = "") -> bytes:
    r"""One server-sent event; `data` has no line end in it.

    >>> event(b"{}", number="7")
    b'id: 7\ndata: {}\n\n'
    """
    head = (f"event: {name}\n" if name else "") + (f"id: {number}\n" if number else "")
    return head.encode() + b"data: " + data + b"\n\n"


def json_response(value: Any, status: int = 200) -> Response:
    """Anything that msgspec can encode, as JSON on one line."""
    return Response(status, JSON, msgspec.json.encode(value) + b"\n")


def refusal(status: int, code: str, text: str, mend: str = "") -> Response:
    """Why a write was not done: a word, a sentence, what helps."""
    return json_response({"answer": "refused", "error": code, "text": text, "mend": mend}, status)
