"""Queries a running node and gives it orders: by HTTP, on loopback."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Final

from weft.base.errors import UserError

HTTP_PORT: Final = 6
PATIENCE_S: Final = 2.0
ANSWER_S: Final = 40.0  # seconds; an order takes up to 35 s
LOCAL: Final = "127.0.0.1"
MENDS: Final = {"rollback": "weft config history lists the writes, newest first"}
"""The mend for a refused order, by the order's name."""


def status_of(port: int, host: str = "127.0.0.1") -> dict[str, Any]:
    """The status of the node whose port block begins at `port`; UserError `unavailable` if none answers."""
    return page_of(port, "status", host)


def page_of(port: int, name: str, host: str = LOCAL) -> dict[str, Any]:
    """A page of JSON of that node, by its name; UserError `unavailable` if none answers."""
    try:
        told: dict[str, Any] = json.loads(text_of(port, name, host))
    except ValueError:
        raise _nobody(port, host) from None
    return told


def text_of(port: int, name: str, host: str = LOCAL) -> str:
    """A page of that node as text, by its name; UserError `unavailable` if none answers."""
    try:
        with urllib.request.urlopen(
            f"http://{host}:{port + HTTP_PORT}/{name}", timeout=PATIENCE_S
        ) as answer:  # http only, built here
            return str(answer.read(), "utf-8")
    except (urllib.error.URLError, OSError, ValueError, http.client.HTTPException):
        raise _nobody(port, host) from None


def _nobody(port: int, host: str) -> UserError:
    mend = f"weft up, or weft status --port N (asked port {port + HTTP_PORT})"
    return UserError("unavailable", f"no node answers at {host}:{port}", mend)


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


def post(port: int, page: str, said: dict[str, Any], name: str = "") -> dict[str, Any]:
    """Post something to a page of that node; returns the answer.

    Errors as `order`; `name` names the request in messages.
    """
    request = urllib.request.Request(  # http only, built here
        f"http://{LOCAL}:{port + HTTP_PORT}/{page}",
        json.dumps(said).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:  # noqa: S310  # http only, as above
            told: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        raise _refusal(name or page, port, error.code, error.read()) from None
    except (urllib.error.URLError, OSError, ValueError, http.client.HTTPException):
        raise UserError(
            "unavailable",
            f"no node answers at {LOCAL}:{port}",
            f"weft up, or --port N of a node that runs (asked port {port + HTTP_PORT})",
        ) from None
    return told


def _refusal(name: str, port: int, status: int, body: bytes) -> UserError:
    try:
        told = json.loads(body)
        text, root = str(told["text"]), str(told.get("root", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        text, root = body.decode("utf-8", "replace").strip() or f"status {status}", ""
    code = "unavailable" if status in (503, 504) else "refused"
    mend = f"ask the root: {root}; on its machine --port {root.rpartition(':')[2]}"
    if not root:
        mend = MENDS.get(name, f"weft status --port {port} shows what that node is")
    return UserError(code, f"the node at {LOCAL}:{port} refused {name}: {text}", mend)
