"""Decides which node a program uses for documents.

A node with documents writes the endpoint for programs into `<state directory>/doc.endpoint`.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.client.doc.errors import Unreachable
from weft.client.link.finding import Door, directory_of, shortest, state_base

Node = str | os.PathLike[str] | None
"""What `node=` may be: a state directory, a node's name, or an endpoint."""
VARIABLE: Final = "WEFT_DOC"
DOOR: Final = Door("doc", VARIABLE)
MEND: Final = f"weft doc join SESSION starts one; --node NAME or DIRECTORY, or {VARIABLE}= says which"


def endpoint_of(node: Node) -> str:
    """The node's current endpoint; Unreachable if it cannot be found, which says what was found instead."""
    word = DOOR.name_of(node)
    if "://" in word:
        return word
    if (directory := directory_of(word)) is None:
        return _only(word)
    if (found := DOOR.endpoint_in(directory)) is None:
        text = f"{directory} is the state directory of no node with a document: it has no {DOOR.name}.endpoint"
        raise Unreachable(text, mend=MEND)
    return found


def alive(name: str = "") -> dict[Path, str]:
    """The nodes with documents that run here, by state directory; with `name` only those with that name."""
    return DOOR.alive(name, sorted(_elsewhere().glob("*")))


def note(document: Mapping[str, Any]) -> None:
    """Make a node findable by name whose state directory is not among those of this user.

    This writes a symbolic link with the node's name, and removes links whose target is gone. If that fails, the node is
    found by its directory only. `document`: the node's settings.
    """
    node = document.get("node", {})
    name, state = str(node.get("name", "")), node.get("state")
    if not (state and name) or not document.get("doc") or Path(name).name != name:
        return
    if Path(state).absolute().parent.parent == state_base():
        return  # nodes there are found anyway
    link, aside = _elsewhere() / name, _elsewhere() / f".{name}.{os.getpid()}"
    with contextlib.suppress(OSError):
        _elsewhere().mkdir(parents=True, exist_ok=True)
        for old in _elsewhere().iterdir():
            if not old.exists():
                old.unlink(missing_ok=True)
        aside.symlink_to(Path(state).absolute())
        aside.replace(link)


def _elsewhere() -> Path:
    return state_base() / "doc" / "elsewhere"


def _only(name: str) -> str:
    found = alive(name)
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        who = f"no node called {name!r} with a document" if name else "no node with a document"
        raise Unreachable(f"{who} runs here", mend=MEND)
    text, word = f"{len(found)} nodes with documents run here: {', '.join(map(str, found))}", shortest(found)
    raise Unreachable(text, "several-nodes", f"--node {word}; for all that you type: export {VARIABLE}={word}")
