"""Connects the commands of the store with a node, and maps errors to messages and exit status (ADM-020)."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from weft.base.errors import UserError
from weft.cli.asking import order
from weft.cli.kit.exits import DENIED, DONE, NOT_SO, UNCONFIRMED, UNREACHABLE, USAGE, complain
from weft.cli.which import PORT, port_of
from weft.client.store.client import Client
from weft.client.store.errors import StoreError
from weft.client.store.finding import DOOR, Node, endpoint_of

STORE_PORT: Final = 5
"""The store's port, counted from the first of a node's ten."""
PORT_MAX: Final = 65_526
BY_CODE: Final[dict[str, tuple[int, str]]] = {
    "not-found": (NOT_SO, "weft ls"),
    "exists": (NOT_SO, "weft get PATH, or weft set without --new"),
    "chain-mismatch": (NOT_SO, "weft get PATH --chain: who changed it last"),
    "value-mismatch": (NOT_SO, "weft get PATH: what it is now"),
    "unreachable": (UNREACHABLE, "weft up with a [store] in the node's file; or --node HOST:PORT, --port of its ten"),
    "not-ready": (
        UNREACHABLE,
        "weft store found{at}, if this is the first node of the store; weft store state{at} shows what it waits for",
    ),
    "busy": (UNREACHABLE, "the same again, later"),
    "closed": (UNREACHABLE, "the same again"),
    "not-authorised": (DENIED, "another user"),
    "auth-failed": (DENIED, "a store without users; logins are not there yet"),
    "read-only": (DENIED, "weft store state: why; another node takes the write"),
    "storage-full": (DENIED, "make room on the disk of that node; another node takes the write"),
    "tick-exhausted": (DENIED, "another node"),
    "unconfirmed": (UNCONFIRMED, "weft store members: who is linked. The value is written, and still spreads"),
    "unanswered": (UNCONFIRMED, "weft get PATH: whether it happened"),
    "bad-path": (USAGE, "home.kitchen.temp; :12 for a number, :: :. :_ for colon, dot, space; : for the root"),
    "bad-value": (USAGE, "docs/store.md: what a value may be"),
    "type-error": (NOT_SO, "weft store match, weft store type NAME: what a value at that path has to be"),
    "unencodable": (USAGE, "docs/store.md: what a value may be"),
    "too-large": (USAGE, "values of at most 64 KiB"),
}
"""Exit status and mend by an error's code; any other code is wrong usage."""
ELSE: Final = (USAGE, "weft COMMAND --help")
REFUSED: Final[dict[str, str]] = {
    "store-found": "weft store state shows the state of this node",
    "store-restore": "weft store conflicts: their numbers",
    "store-copy": "weft store load FILE, without --as copy; a copy needs a fresh node that joins nobody",
    "store-drop-node": "weft store members lists the nodes; give this order to any other node than the named one",
}
"""What to try when a node refuses an order."""
SUBJECTS: Final[dict[str, str]] = {"too-large": "that is too large", "bad-path": "that is no path"}
"""For errors of nodes that name only what is wrong with it."""
Work = Callable[[Client], Coroutine[Any, Any, int]]


def at_store(node: str | None, port: int | None, work: Work, *, reads: bool = False, group: str = "") -> int:
    """Run a function with a client of a node's store; returns the exit status.

    `reads`: the function writes nothing, so a missing answer means that no node is reached, not that it may have happened.
    """
    if node is not None and port is not None:
        raise UserError("usage", "--node and --port both say which store", "one of them")
    where: Node = node if port is None else checked(port) + STORE_PORT
    try:
        return asyncio.run(_at_store(where, work, group))
    except StoreError as error:
        status, mend = BY_CODE.get(error.code, ELSE)
        if reads and status == UNCONFIRMED:
            status, mend = BY_CODE["unreachable"]
        if port is not None and status == UNREACHABLE and error.code == "unreachable":
            mend = f"weft store state --port {port}; --node HOST:PORT if the node's file says another port in [store]"
        if "{at}" in mend:
            mend = mend.replace("{at}", _at(where))
        return complain(f"{_sentence(error)}\n  try: {mend}", status)
    except KeyboardInterrupt:
        return DONE


def _at(where: Node) -> str:
    """The option that names this node in a command for it; empty if the command means it without an option."""
    endpoint = endpoint_of(where)
    places = [str(place) for place, noted in DOOR.noted().items() if noted == endpoint]
    port = port_of(places[0]) if len(places) == 1 else int(endpoint.rpartition(":")[2]) - STORE_PORT
    return f" --port {port}" if port != PORT else ""


async def _at_store(node: Node, work: Work, group: str) -> int:
    async with Client(node, group=group) as client:
        return await work(client)


def _sentence(error: StoreError) -> str:
    text, subject = error.text or error.code, SUBJECTS.get(error.code, "")
    return text if not subject or "path" in text or "value" in text else f"{subject}: {text}"


def checked(port: int) -> int:
    """The first of ten ports; UserError if it cannot be one."""
    if not 0 < port <= PORT_MAX:
        raise UserError("usage", f"{port} is no first of ten ports", f"--port 27500, of 1 to {PORT_MAX}")
    return port


def ordered(port: int, name: str, **fields: Any) -> dict[str, Any] | int:
    """The node's answer to an order, or the exit status after a complaint."""
    try:
        return order(checked(port), name, **fields)
    except UserError as error:
        if error.code == "usage":
            raise
        if error.code == "unavailable":
            return complain(str(error), UNREACHABLE)
        return complain(f"{error.text}\n  try: {REFUSED.get(name, error.try_this)}", DENIED)
