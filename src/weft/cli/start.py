"""Turns this process into a node, and runs `weft up FILE` without loading the command line, which would double its start.

It imports only what a start needs. Mistakes in a file are reported by `up` or by the node.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from weft.base.settings import parse_toml
from weft.node.tables import describes_fleet

BY_FILE: Final = "fd:"
"""The prefix of an argument of `weft.shell.serve`: behind it comes the number of an open file with the settings."""


def start(word: str) -> None:
    """Become the node of this file. Returns if `up` is needed: for its preparations, or to report what is wrong."""
    file = Path(word)
    try:
        document = parse_toml(file.read_text("utf-8"))
        if "doc" in document:  # `up` reads schemas beside the file, and notes the node where programs look for it
            return
        if describes_fleet(document):
            document["node"]["config"] = str(file.resolve())
        document_json = json.dumps(document, allow_nan=False).encode()
    except (OSError, ValueError, TypeError):
        return
    run(document_json, word, *named(document))


def run(document_json: bytes, where: str, *names: str) -> NoReturn:
    """Become the node of these settings. `where` they were read and `names` only show in lists of processes."""
    # The node is a fresh program, because the command line's libraries would double a sensor's memory. It gets its
    # settings in a file that only it can read: they may hold a token, and every user of the machine can see arguments.
    if sys.stdout is not None:  # it was closed
        sys.stdout.flush()
    number = os.memfd_create("weft-settings", 0)  # without a flag it is inherited
    os.write(number, document_json)
    os.lseek(number, 0, os.SEEK_SET)
    os.execv(sys.executable, [sys.executable, "-m", "weft.shell.serve", f"{BY_FILE}{number}", where, *names])  # noqa: S606  # only our own interpreter


def named(document: dict[str, Any]) -> list[str]:
    """The name and the state directory, by which people tell their nodes apart."""
    node = document.get("node")
    return [str(node[key]) for key in ("name", "state") if node.get(key)] if isinstance(node, dict) else []
