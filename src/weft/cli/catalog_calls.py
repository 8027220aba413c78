"""Connects the commands of the catalog with a broker, and maps errors to messages and exit status (CAT-073)."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.kit.exits import DENIED, DONE, NOT_SO, UNREACHABLE, USAGE, complain
from weft.client.catalog.client import Client
from weft.client.catalog.errors import CallFailed, CatalogError

BY_CODE: Final[dict[str, tuple[int, str]]] = {
    "inactive": (NOT_SO, "weft catalog ls --all: who is there, and who was"),
    "not-registered": (NOT_SO, "weft catalog ls --all: who is there, and who was"),
    "unknown-endpoint": (NOT_SO, "weft catalog call NAME dbp.info: the endpoints it has"),
    "unreachable": (
        UNREACHABLE,
        "weft catalog serve; or --broker HOST:PORT; in a closed fabric WEFT_KEYS=DIRECTORY, the keys that weft join has made",
    ),
    "timeout": (UNREACHABLE, "weft catalog doctor: what can be reached from here"),
    "closed": (UNREACHABLE, "the same again"),
    "busy": (UNREACHABLE, "the same again, later"),
    "garbled": (UNREACHABLE, "another --broker: the program at this address is no broker"),
    "failed": (DENIED, "the log of the service: weft catalog logs NAME"),
    "name-taken": (DENIED, "another name, or another --id"),
    "not-owner": (DENIED, "the machine that registered it; on the broker's machine weft catalog deregister"),
    "not-authorised": (
        DENIED,
        "on the broker's machine, as the user who runs it; or a key of another role (weft invite --role)",
    ),
    "limit": (DENIED, "weft catalog status: how many there are"),
    "unsupported": (DENIED, "a newer broker; weft catalog status"),
    "bad-broker": (USAGE, "--broker 10.0.0.7:5246, or --broker 5246; the same in WEFT_CATALOG"),
    "bad-argument": (USAGE, "weft catalog query --help: conditions"),
    "bad-name": (USAGE, "1 to 255 bytes that can be printed, without @, not beginning with dbp."),
    "missing-field": (USAGE, "weft catalog register --help; --id, if there are several of that name"),
    "too-large": (USAGE, "records of at most 64 KiB, 64 tags, 64 pairs of metadata"),
    "immutable-field": (USAGE, "weft catalog deregister, and register with the other --id"),
    "reserved-key": (USAGE, "a record without _dbp"),
}
"""Exit status and mend, by the code of an error."""
ELSE: Final = (USAGE, "weft catalog register --help: what a record may hold")
OF_A_SERVICE: Final = (DENIED, "the log of the service: weft catalog logs NAME")
Many = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
Work = Callable[[Client], Coroutine[Any, Any, int]]


def at_catalog(broker: str | None, work: Work) -> int:
    """Run a function with a client of the catalog; returns the exit status."""
    try:
        return asyncio.run(_at_catalog(broker, work))
    except CatalogError as error:
        return failed(error)
    except KeyboardInterrupt:
        return DONE


async def _at_catalog(broker: str | None, work: Work) -> int:
    async with Client(broker) as client:
        return await work(client)


def failed(error: CatalogError) -> int:
    """Print what went wrong and what to try; returns the exit status."""
    status, mend = BY_CODE.get(error.code, OF_A_SERVICE if isinstance(error, CallFailed) else ELSE)
    return complain(f"{error.text}\n  try: {mend}", status)


def pairs(words: tuple[str, ...], what: str) -> dict[str, str]:
    """`KEY=VALUE` as they are typed; UserError.

    >>> pairs(("room=k1", "a="), "--meta")
    {'room': 'k1', 'a': ''}
    """
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UserError("usage", f"{what} {word!r} is no KEY=VALUE".lstrip(), f"{what} room=k1".lstrip())
        found[key] = value
    return found
