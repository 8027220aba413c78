"""How the commands of the store speak with a node, and what they say and return when that fails (ADM-020)."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from weft.base.errors import UserError
from weft.cli.asking import order
from weft.client.store.client import Client
from weft.client.store.errors import StoreError
from weft.client.store.finding import Node

DONE: Final = 0
NOT_SO: Final = 1
"""Not found, or a condition failed."""
USAGE: Final = 2
UNREACHABLE: Final = 3
DENIED: Final = 4
UNCONFIRMED: Final = 5
STORE_PORT: Final = 5
"""Of a node's ten."""
BY_CODE: Final[dict[str, tuple[int, str]]] = {
    "not-found": (NOT_SO, "weft ls"),
    "exists": (NOT_SO, "weft get PATH, or weft set without --new"),
    "chain-mismatch": (NOT_SO, "weft get PATH --chain: who changed it last"),
    "value-mismatch": (NOT_SO, "weft get PATH: what it is now"),
    "unreachable": (UNREACHABLE, "weft up with a [store] in the node's file; or --node HOST:PORT, --port of its ten"),
    "not-ready": (UNREACHABLE, "weft store state: what the node waits for; weft store found, if it is the first"),
    "busy": (UNREACHABLE, "the same again, later"),
    "closed": (UNREACHABLE, "the same again"),
    "not-authorised": (DENIED, "another user"),
    "auth-failed": (DENIED, "a store without users; logins are not there yet"),
    "read-only": (DENIED, "weft store state: why; another node takes the write"),
    "storage-full": (DENIED, "make room on the disk of that node; another node takes the write"),
    "tick-exhausted": (DENIED, "another node"),
    "unanswered": (UNCONFIRMED, "weft get PATH: whether it happened"),
    "bad-path": (USAGE, "home.kitchen.temp; :12 for a number, :: :. :_ for colon, dot, space; : for the root"),
    "bad-value": (USAGE, "docs/store.md: what a value may be"),
    "unencodable": (USAGE, "docs/store.md: what a value may be"),
    "too-large": (USAGE, "values of at most 64 KiB"),
}
"""Exit status and what to try, by the code of an error; any other one is a wrong use."""
ELSE: Final = (USAGE, "weft store state")
Work = Callable[[Client], Coroutine[Any, Any, int]]


def at_store(node: str | None, port: int | None, work: Work, *, reads: bool = False) -> int:
    """Do something with the store of a node; its exit status. `reads`: nothing is written, so no answer is no node."""
    where: Node = node if node is not None or port is None else port + STORE_PORT
    try:
        return asyncio.run(_at_store(where, work))
    except StoreError as error:
        status, mend = BY_CODE.get(error.code, ELSE)
        if reads and status == UNCONFIRMED:
            status, mend = BY_CODE["unreachable"]
        return complain(f"{error.text or error.code}\n  try: {mend}", status)
    except KeyboardInterrupt:
        return DONE


async def _at_store(node: Node, work: Work) -> int:
    async with Client(node) as client:
        return await work(client)


def ordered(port: int, name: str, **fields: Any) -> dict[str, Any] | int:
    """What the node says to an order, or the exit status after a complaint."""
    try:
        return order(port, name, **fields)
    except UserError as error:
        return complain(str(error), UNREACHABLE if error.code == "unavailable" else NOT_SO)


def complain(text: str, status: int) -> int:
    """Say what went wrong; the exit status."""
    print(f"weft: {text}", file=sys.stderr)
    return status
