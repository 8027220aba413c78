"""Finds the store that a program uses: by host:port, state directory or node's name, or the one that runs here.

A node with the store writes the endpoint for clients into `<state directory>/store.endpoint`.
"""

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from weft.client.link.finding import Door, directory_of, is_live, state_base
from weft.client.store.errors import Unreachable

Node = str | os.PathLike[str] | int | None
"""What `node=` may be; a number is a port of this machine."""


class Grouped(NamedTuple):
    """A node, and the group whose codecs it uses for this client."""

    node: Node
    group: str


DOOR: Final = Door("store", "WEFT_STORE")
PORT_MAX: Final = 65_535
PORT: Final = 27_505
PORT_AT_END: Final = re.compile(":[0-9]+$")
DEFAULT: Final = f"127.0.0.1:{PORT}"


def address_of(node: Node) -> tuple[str, int]:
    """The store's current host and port; Unreachable if no store of that name is found.

    >>> address_of("10.0.0.7:27505"), address_of(27515)
    (('10.0.0.7', 27505), ('127.0.0.1', 27515))
    """
    host, _, port = endpoint_of(node).rpartition(":")
    return host.strip("[]"), int(port)


def endpoint_of(node: Node) -> str:
    """As `address_of`, as `host:port`."""
    word = (str(node) if isinstance(node, int) else DOOR.name_of(node)).removeprefix("tcp://")
    if not word:
        return _only_one() or DEFAULT
    if word.isascii() and word.isdecimal() and not Path(word).is_dir():
        word = f"127.0.0.1:{word}"
    if _is_endpoint(word):
        return word
    directory = directory_of(word)
    return _by_name(word) if directory is None else _of_directory(directory)


def _of_directory(directory: Path) -> str:
    found = endpoint_in(directory)
    if found is None:
        raise Unreachable(
            f"{directory} is the state directory of no node with a [store]: it has no {DOOR.name}.endpoint"
        )
    return found


def _by_name(name: str) -> str:
    found = _noted(name)
    alive = [endpoint for endpoint in found if len(found) == 1 or is_live(endpoint)]
    if len(alive) == 1:
        return alive[0]
    if alive:
        raise Unreachable(f"several nodes are called {name!r}: {', '.join(alive)}")
    if PORT_AT_END.search(name):
        raise Unreachable(f"{name!r} is not a valid host:port: a port is a number from 1 to {PORT_MAX}")
    raise Unreachable(f"no node called {name!r} has a [store] below {state_base()}")


def _only_one() -> str | None:
    """The store of the only node that runs here; None if the default port, or more than one, is in use."""
    found = _noted()
    if DEFAULT in found or not found:
        return None
    alive = [endpoint for endpoint in found if is_live(endpoint)]
    return alive[0] if len(alive) == 1 else None


def _noted(name: str = "") -> list[str]:
    return [endpoint for endpoint in DOOR.noted(name).values() if _is_endpoint(endpoint)]


def endpoint_in(directory: Path) -> str | None:
    """The endpoint in a state directory; None if there is none."""
    written = DOOR.endpoint_in(directory)
    return written if written is not None and _is_endpoint(written) else None


def _is_endpoint(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and os.sep not in host and port.isascii() and port.isdecimal() and 0 < int(port) <= PORT_MAX
