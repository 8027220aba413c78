"""Which node a program means when it speaks of a document.

A node with sessions writes the endpoint of their programs into `<state directory>/doc.endpoint`.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.client.doc.errors import Unreachable
from weft.client.finding import VARIABLE as CHAINS_VARIABLE
from weft.client.finding import endpoint_in, is_live, state_base

Node = str | os.PathLike[str] | None
"""What `node=` may be: a state directory, a node's name, or an endpoint."""
DOOR: Final = "doc"
VARIABLE: Final = "WEFT_DOC"
MEND: Final = f"weft doc join SESSION starts one; --node NAME or DIRECTORY, or {VARIABLE}= says which"


def endpoint_of(node: Node) -> str:
    """The endpoint that is meant, as it is now; Unreachable says what was found instead."""
    word = os.fspath(node) if node is not None else _said_outside()
    if "://" in word:
        return word
    if os.sep in word or Path(word or "-").is_dir():
        directory = Path(word).absolute()
        if (found := endpoint_in(directory, DOOR)) is None:
            text = f"{directory} is the state directory of no node with a document: it has no {DOOR}.endpoint"
            raise Unreachable(text, mend=MEND)
        return found
    return _only(word)


def alive() -> dict[Path, str]:
    """The nodes with documents that run here, by their state directories."""
    places = [*sorted(state_base().glob("*/*")), *sorted(_elsewhere().glob("*"))]
    noted = {path: endpoint_in(path, DOOR) for path in places if path.is_dir()}
    return {path: endpoint for path, endpoint in noted.items() if endpoint and is_live(endpoint)}


def note(document: Mapping[str, Any]) -> None:
    """Remember where a node with documents has its state, if that is a directory of its own: a link called as the node is.

    Links to what is gone are forgotten. Who cannot be remembered is found by its directory only.
    """
    node = document.get("node", {})
    name, state = str(node.get("name", "")), node.get("state")
    if not (state and name) or not document.get("doc") or Path(name).name != name:
        return
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
    found = {path: endpoint for path, endpoint in alive().items() if name in ("", path.name)}
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        who = f"no node called {name!r} with a document" if name else "no node with a document"
        raise Unreachable(f"{who} runs here", mend=MEND)
    names = [path.name for path in found]
    word = names[0] if names.count(names[0]) == 1 else str(next(iter(found)))
    text = f"{len(found)} nodes with documents run here: {', '.join(map(str, found))}"
    raise Unreachable(text, "several-nodes", f"--node {word}; for all that you type: export {VARIABLE}={word}")


def _said_outside() -> str:
    """What the environment says: for documents, else a directory or name for everything of a node."""
    word = os.environ.get(CHAINS_VARIABLE, "")
    return os.environ.get(VARIABLE, "") or ("" if "://" in word else word)
