"""How a command becomes a node; and `weft up FILE` without the libraries of the command line, which would double its start.

It imports nothing that a start does not need. What is wrong in a file, `up` or the node says.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from weft.base.settings import parse_toml
from weft.node.tables import describes_fleet

BY_FILE: Final = "fd:"
"""Tells `weft.shell.serve` the number of an open file with its settings."""


def start(word: str) -> None:
    """Become the node of this file. Returns if that is not plain to do: then `up` does it, or says what is wrong."""
    file = Path(word)
    try:
        document = parse_toml(file.read_text("utf-8"))
        if "doc" in document:  # schemas are read beside the file, and the node is noted where programs look
            return
        if describes_fleet(document):
            document["node"]["config"] = str(file.resolve())
        said = json.dumps(document, allow_nan=False).encode()
    except (OSError, ValueError, TypeError):
        return
    run(said, word, *named(document))


def run(said: bytes, where: str, *names: str) -> NoReturn:
    """Become the node of these settings; `where` they were read and the names are for people who list processes."""
    # A fresh, lean process: the command line's libraries would double a sensor's memory. Its settings come by a file that
    # only it can read: there may be a token in them, and every user of the machine sees arguments.
    if sys.stdout is not None:  # it was closed
        sys.stdout.flush()
    number = os.memfd_create("weft-settings", 0)  # without a flag it is inherited
    os.write(number, said)
    os.lseek(number, 0, os.SEEK_SET)
    os.execv(sys.executable, [sys.executable, "-m", "weft.shell.serve", f"{BY_FILE}{number}", where, *names])  # noqa: S606  # our own interpreter


def named(document: dict[str, Any]) -> list[str]:
    """The name and the state directory, so that people can distinguish their nodes."""
    node = document.get("node")
    return [str(node[key]) for key in ("name", "state") if node.get(key)] if isinstance(node, dict) else []
