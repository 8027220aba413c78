"""Finds nodes of this machine: by a name from the caller or the environment, or by the state directories of this user.

A door is a socket of a node for programs: `chains`, `store`, `catalog` or `doc`. A node writes the endpoint of each into
`<state directory>/<door>.endpoint`, because a socket whose path would be too long for the kernel is in another
directory. Without that file the door is the socket `<door>.sock`, if there is one.
"""

import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from weft.client.link.limits import LIVE_S, SOCKET_PATH_BYTES_MAX

VARIABLE: Final = "WEFT_NODE"
"""The environment variable that names the node for all commands and clients: an endpoint of its chains, a state directory,
or a name."""


class Door(NamedTuple):
    """One of a node's sockets for programs."""

    name: str
    variable: str = VARIABLE
    """The environment variable for this door alone; it has precedence over `WEFT_NODE`."""

    def name_of(self, node: str | os.PathLike[str] | None) -> str:
        """The name from the caller or the environment; empty: neither names a node."""
        if node is not None:
            return os.fspath(node)
        word = os.environ.get(VARIABLE, "")
        if self.variable == VARIABLE:
            return word
        # an endpoint in WEFT_NODE is that of the chains, so no other door can use it
        return os.environ.get(self.variable, "") or ("" if "://" in word else word)

    def endpoint_in(self, directory: Path) -> str | None:
        """The endpoint in a state directory; None if there is none."""
        return endpoint_in(directory, self.name)

    def noted(self, name: str = "", beside: Iterable[Path] = ()) -> dict[Path, str]:
        """The endpoints that nodes have written, by state directory; with `name` only of nodes with that name.

        `beside`: further state directories to look into, besides those of this user.
        """
        places = [*sorted(state_base().glob("*/*")), *beside]
        found = {path: self.endpoint_in(path) for path in places if path.is_dir() and name in ("", path.name)}
        return {path: endpoint for path, endpoint in found.items() if endpoint}

    def alive(self, name: str = "", beside: Iterable[Path] = ()) -> dict[Path, str]:
        """Like `noted`, but only nodes that listen."""
        return {path: endpoint for path, endpoint in self.noted(name, beside).items() if is_live(endpoint)}


def directory_of(word: str) -> Path | None:
    """The state directory, if the word is a path or names an existing directory; else None."""
    return Path(word).absolute() if word and (os.sep in word or Path(word).is_dir()) else None


def shortest(directories: Iterable[Path]) -> str:
    """What to type for the first of several nodes: its name, or its state directory if another has the same name."""
    found = list(directories)
    names = [path.name for path in found]
    return names[0] if names.count(names[0]) == 1 else str(found[0])


def endpoint_in(directory: Path, door: str) -> str | None:
    """The endpoint of a door, from a node's state directory; None if there is none."""
    try:
        written = (directory / f"{door}.endpoint").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        written = ""
    if written:
        return written
    path = directory / f"{door}.sock"
    is_there = path.is_socket() and len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX
    return f"ipc://{path}" if is_there else None


def is_live(endpoint: str) -> bool:
    """Whether anybody listens at an endpoint; `host:port` needs no scheme."""
    scheme, _, address = endpoint.rpartition("://")
    try:
        if scheme == "ipc":
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(LIVE_S)
                probe.connect(address)
        else:
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), LIVE_S).close()
    except (OSError, ValueError):
        return False
    return True


def state_base() -> Path:
    """The base of this user's state directories, with one directory per fleet and node."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "weft"
