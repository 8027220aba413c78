"""Which node a program means: an endpoint, a state directory, a name, or the only one that runs here.

Every node writes the endpoint of its chains into `<state directory>/chains.endpoint`: a socket whose path would be too
long for the kernel stands elsewhere. A state directory without that file has its socket in `chains.sock`.
"""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from weft.base.errors import UserError
from weft.client.limits import PROBE_S, SOCKET_PATH_BYTES_MAX

Node = str | os.PathLike[str] | Callable[..., Any] | None
"""What `node=` may be; a callable opens connections itself (`weft.client.link.sockets.Opener`)."""
DOOR: Final = "chains"
VARIABLE: Final = "WEFT_NODE"
MEND: Final = f"weft up, or an endpoint, a state directory or a node's name as --node, node= or {VARIABLE}="


def locate(node: str | os.PathLike[str] | None) -> str | Path:
    """Which node is meant: an endpoint, or its state directory; UserError that names what was found and what to say."""
    word = os.fspath(node) if node is not None else os.environ.get(VARIABLE, "")
    if "://" in word:
        return word
    if os.sep in word or Path(word or "-").is_dir():
        return Path(word).absolute()
    return _only([path for path in _directories() if word in ("", path.name)], word)


def endpoint_of(place: str | Path) -> str:
    """The endpoint of a place that was located, as it is now; UserError if nothing is there."""
    return place if isinstance(place, str) else _of_directory(place)


def find(node: str | os.PathLike[str] | None) -> str:
    """The endpoint of the chains of a node; UserError as for `locate`."""
    return endpoint_of(locate(node))


def _of_directory(directory: Path) -> str:
    found = endpoint_in(directory)
    if found is None:
        text = f"{directory} is the state directory of no node: it has neither {DOOR}.endpoint nor {DOOR}.sock"
        raise UserError("unavailable", text, MEND)
    return found


def endpoint_in(directory: Path, door: str = DOOR) -> str | None:
    """What a state directory says of one of its node's doors, as the shell calls it; None: it says nothing."""
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
    """Whether anybody listens there."""
    scheme, _, address = endpoint.partition("://")
    try:
        if scheme == "ipc":
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(PROBE_S)
                probe.connect(address)
        else:
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), PROBE_S).close()
    except (OSError, ValueError):
        return False
    return True


def state_base() -> Path:
    """Where the nodes of this user keep their state, one directory per fleet and node."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "weft"


def _directories() -> Iterator[Path]:
    return (path for path in sorted(state_base().glob("*/*")) if path.is_dir())


def _only(directories: list[Path], name: str) -> Path:
    found = [path for path in directories if (endpoint := endpoint_in(path)) and is_live(endpoint)]
    if len(found) == 1:
        return found[0]
    if not found:
        who = f"no node called {name!r}" if name else "no node"
        raise UserError("unavailable", f"{who} answers below {state_base()}", MEND)
    text = f"{len(found)} nodes run here: {', '.join(str(path) for path in found)}"
    names = [path.name for path in found]
    word = found[0].name if names.count(found[0].name) == 1 else str(found[0])
    raise UserError("several-nodes", text, f"--node {word}; in a program node={word!r}; for all {VARIABLE}={word}")
