"""Finds the node whose chains a program uses: by endpoint, state directory or name, or the only one that runs here."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from weft.base.errors import UserError
from weft.client.link.finding import VARIABLE, Door, directory_of, shortest, state_base

Node = str | os.PathLike[str] | Callable[..., Any] | None
"""What `node=` may be; a callable opens connections itself (`weft.client.link.sockets.Opener`)."""
DOOR: Final = Door("chains")
MEND: Final = (
    f"weft up, or an endpoint, a state directory or a node's name as --node, node= or {VARIABLE}=; "
    "a node that was started with --state is called by that directory"
)


def locate(node: str | os.PathLike[str] | None) -> str | Path:
    """The node that is meant, as an endpoint or its state directory; UserError says what was found, and what to type."""
    word = DOOR.name_of(node)
    return word if "://" in word else directory_of(word) or _only(list(DOOR.alive(word)), word)


def endpoint_of(place: str | Path) -> str:
    """The current endpoint of a node that `locate` found; UserError if the node has none."""
    if isinstance(place, str):
        return place
    found = DOOR.endpoint_in(place)
    if found is None:
        text = f"{place} is the state directory of no node: it has neither {DOOR.name}.endpoint nor {DOOR.name}.sock"
        raise UserError("unavailable", text, MEND)
    return found


def find(node: str | os.PathLike[str] | None) -> str:
    """The endpoint of the chains of a node; UserError as for `locate`."""
    return endpoint_of(locate(node))


def _only(found: list[Path], name: str) -> Path:
    if len(found) == 1:
        return found[0]
    if not found:
        who = f"no node called {name!r}" if name else "no node"
        raise UserError("unavailable", f"{who} answers below {state_base()}", MEND)
    text, word = f"{len(found)} nodes run here: {', '.join(map(str, found))}", shortest(found)
    raise UserError("several-nodes", text, f"--node {word}; in a program node={word!r}; for all {VARIABLE}={word}")
