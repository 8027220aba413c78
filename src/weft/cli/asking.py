"""Asks a running node for its pages and gives it orders, by HTTP on loopback."""

import json
import socket
from itertools import takewhile
from typing import Any, Final, NamedTuple

from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.errors import UserError
from weft.client.link.finding import Door, shortest

PATIENCE_S: Final = 2.0
ANSWER_S: Final = 40.0  # seconds; an order takes up to 35 s
HEADERS_MAX: Final = 64  # of an answer; a node sends eight
LINE_BYTES_MAX: Final = 8 << 10
ANSWER_BYTES_MAX: Final = 1 << 28  # the root's status of a whole fleet has some megabytes
OK: Final = 200
LOGIN: Final = 401
REFUSING: Final = 400
"""From this HTTP status on, an answer is an error, and its body says why."""
LOCAL: Final = "127.0.0.1"
DOOR: Final = Door("http")
MENDS: Final = {
    "rollback": "weft config history lists the writes, newest first",
    "invite": "weft invite --help; the first time with --listen ADDRESS, which gives the root its keys",
    "listen": "an address of this machine in numbers, as `ip -brief address` lists them",
    **dict.fromkeys(
        ("rotate-key", "revoke-key"),
        "weft key ls; if it lists none, the fabric is open: weft invite --listen ADDRESS closes it",
    ),
}
"""The mend for a refused order, by the order's name."""
DEAD_ALERT: Final = "dead-alert"
"""The code of a refusal because an alert could never fire."""
LACKS: Final = {
    f"this node has no {core}": f"{table} in the node's file, then: weft reload FILE; a node without a file: weft up FILE --name NAME"
    for core, table in (("store", "[store]"), ("catalog", "[catalog]"), ("document", "[doc]"))
}
"""The mend where a node does not take part, by what it says."""


def status_of(port: int, host: str = "127.0.0.1") -> dict[str, Any]:
    """The status of the node whose port block begins at `port`; UserError `unavailable` if none answers."""
    return page_of(port, "status", host)


def page_of(port: int, name: str, host: str = LOCAL) -> dict[str, Any]:
    """A page of JSON of that node, by its name; UserError `unavailable` if none answers."""
    try:
        page: dict[str, Any] = json.loads(text_of(port, name, host))
    except ValueError:
        raise _nobody(port, host) from None
    return page


def text_of(port: int, name: str, host: str = LOCAL) -> str:
    """A page of that node as text, by its name; UserError `unavailable` if none answers, `login` if it shows nothing here."""
    try:
        answer = _asked(host, port, f"GET /{name}", PATIENCE_S)
    except (OSError, ValueError):
        raise _nobody(port, host) from None
    if answer.status == LOGIN:
        raise UserError("login", f"the node at {host}:{port} shows itself on its own machine only", "ask it there")
    if answer.status != OK:
        raise _nobody(port, host)
    return str(answer.body, "utf-8")


class _Answer(NamedTuple):
    status: int
    body: bytes


def _asked(host: str, port: int, what: str, patience_s: float, request: bytes = b"") -> _Answer:
    """Send one request and return the whole answer; OSError, or ValueError if what came is no HTTP answer.

    `http.client` is not used because loading it would take a tenth of a command's time; `urllib` would use a proxy even
    for loopback.
    """
    place = f"{host}:{port + HTTP_PORT}"
    head = (
        f"{what} HTTP/1.0\r\nhost: {place}\r\ncontent-type: application/json\r\ncontent-length: {len(request)}\r\n\r\n"
    )
    with (
        socket.create_connection((host.strip("[]"), port + HTTP_PORT), patience_s) as link,
        link.makefile("rb") as file,
    ):
        link.sendall(head.encode("ascii") + request)
        lines = (file.readline(LINE_BYTES_MAX) for _ in range(HEADERS_MAX))
        status, *headers = [*takewhile(bytes.strip, lines)] or [b""]
        parted = (line.partition(b":") for line in headers)
        length = int({name.lower(): value for name, _, value in parted}.get(b"content-length", b""))
        body = file.read(min(max(length, 0), ANSWER_BYTES_MAX))
    if len(body) != length:
        raise ValueError("the answer breaks off")
    return _Answer(int(status.partition(b" ")[2][:3]), body)


def _nobody(port: int, host: str) -> UserError:
    others = [place for place, at in DOOR.alive().items() if at != f"{LOCAL}:{port + HTTP_PORT}"]
    mend = f"--node {shortest(others)}: it runs here" if others else "weft up, or --node or --port of a node that runs"
    return UserError("unavailable", f"no node answers at {host}:{port} (asked port {port + HTTP_PORT})", mend)


def try_status(port: int) -> dict[str, Any] | None:
    """Like `status_of`, but None if no node answers."""
    try:
        return status_of(port)
    except UserError:
        return None


def order(port: int, name: str, /, **fields: Any) -> dict[str, Any]:
    """Give an order to the node of this machine whose port block begins at `port`; returns the answer.

    UserError: `unavailable` if no answer comes in time, `refused` with the sentence of the refusal.
    """
    return post(port, "order", {"order": name, **fields}, name)


def post(port: int, page: str, request: dict[str, Any], name: str = "") -> dict[str, Any]:
    """Post something to a page of that node; returns the answer.

    Errors as `order`; `name` names the request in messages.
    """
    try:
        answer = _asked(LOCAL, port, f"POST /{page}", ANSWER_S, json.dumps(request).encode())
        reply: dict[str, Any] = json.loads(answer.body) if answer.status < REFUSING else {}
    except (OSError, ValueError):
        raise _nobody(port, LOCAL) from None
    if answer.status >= REFUSING:
        raise _refusal(name or page, port, answer.status, answer.body)
    return reply


def _refusal(name: str, port: int, status: int, body: bytes) -> UserError:
    try:
        refusal = json.loads(body)
        text, root = str(refusal["text"]), str(refusal.get("root", ""))
        dead = str(refusal["key"]) if refusal.get("dead") else ""
    except (ValueError, KeyError, TypeError, AttributeError):
        text, root, dead = body.decode("utf-8", "replace").strip() or f"status {status}", "", ""
    sentence = f"the node at {LOCAL}:{port} refused {name}: {text}"
    if dead:
        group = dead.split("/")[2]
        return UserError(DEAD_ALERT, sentence, f"weft config list {group}: its metrics and alerts")
    code = "unavailable" if status in (503, 504) else "refused"
    mend = f"ask the root: {root}; on its machine --port {root.rpartition(':')[2]}"
    if not root:
        mend = MENDS.get(name) or LACKS.get(text) or f"weft status --port {port} shows what that node is"
    return UserError(code, sentence, mend)
