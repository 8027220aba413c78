"""Connects the commands of documents with a node, and maps errors to messages and exit status (JAM-040)."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.kit.exits import DENIED, DONE, NOT_SO, UNREACHABLE, USAGE, complain
from weft.cli.which import AskedNode
from weft.client.doc.client import Client
from weft.client.doc.errors import DocError

BY_CODE: Final[dict[str, tuple[int, str]]] = {
    **dict.fromkeys(("unreachable", "several-nodes"), (UNREACHABLE, "weft doc join SESSION; or --node NAME")),
    "closed": (UNREACHABLE, "the same again"),
    "unanswered": (UNREACHABLE, "weft doc log --tail 5: whether it is there"),
    "no-session": (USAGE, "weft doc sessions: what runs here; --session NAME"),
    **dict.fromkeys(("no-reference", "bad-reference"), (USAGE, "weft doc add --help")),
    "bad-words": (USAGE, "weft doc set --help"),
    "bad-xml": (USAGE, "weft doc add --help"),
    "bad-choice": (USAGE, "weft doc resolve --help"),
    "nothing-said": (USAGE, "weft doc set --help"),
    "too-large": (DENIED, "smaller pieces: one entry has at most 65,536 bytes"),
    "too-fast": (DENIED, "the same again in a second"),
    "storage-full": (DENIED, "make room on the disk of that node; another node takes the entry"),
    "not-allowed": (DENIED, "another operator"),
    "not-found": (NOT_SO, "weft doc show: what there is"),
    "nothing-to-undo": (NOT_SO, "weft doc log: what was entered"),
    "nothing-to-redo": (NOT_SO, "weft doc undo"),
    "bad-file": (DENIED, "another file"),
}
"""Exit status and mend by an error's code. The node's own mend goes first; other codes have the status of a refusal."""
INERT: Final[dict[str, str]] = {
    "absent": "nothing was there to be removed: weft doc show",
    "bad-attribute": "names of letters, digits, `_ . -`; eid and the keys of periods, jams and teams stay as they are",
    "bad-key": "period 1 to 9, jam 1 to 999, without a leading zero",
    "bad-path": "tags from the root on, with slashes between: path=venue; at most 8",
    "fixed": "teams, periods and the root stay: remove what is in them",
    "no-reference": "say where: period=1 jam=3, team=home person=12, eid=…, path=venue",
    "nothing-new": "it was there already: weft doc show",
    "superseded": "the original of this entry has come: weft doc log",
    "target-removed": "somebody has removed it meanwhile: weft doc conflicts",
    "duplicate-key": "weft doc set changes who is there",
    "too-big": "a document has at most a million elements, 256 deep",
    "unknown-team": "team=home, team=away, team=official",
}
"""What to do about an entry that is in the log and changes nothing (DOC-035)."""
Many = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
Node = AskedNode
Session = Annotated[str, Parameter(show_default=False)]
Words = Annotated[str, Parameter(allow_leading_hyphen=True)]
File = Annotated[str, Parameter(allow_leading_hyphen=True)]
Work = Callable[[Client], Coroutine[Any, Any, int]]


def at_session(node: str | None, session: str, work: Work) -> int:
    """Run a function with a client of a session; returns the exit status."""
    try:
        return asyncio.run(_at_session(node, session, work))
    except DocError as error:
        return failed(error)
    except KeyboardInterrupt:
        return DONE


async def _at_session(node: str | None, session: str, work: Work) -> int:
    async with Client(node, session=session) as client:
        return await work(client)


def failed(error: DocError) -> int:
    """Print what went wrong and what to try; returns the exit status."""
    status, mend = BY_CODE.get(error.code, (DENIED, "weft doc --help"))
    return complain(f"{error.text}\n  try: {error.mend or INERT.get(error.code, mend)}", status)


def file_named(word: str) -> str:
    """The name of a file, or `-` for standard input or output; UserError if it looks like a mistyped option."""
    if word.startswith("-") and word != "-":
        raise UserError("usage", f"{word!r} is no option here", "weft doc --help; ./ before a file that is called so")
    return word


def checked(words: tuple[str, ...]) -> list[str]:
    """The words behind a command, with standard input in place of `-`; UserError if one looks like a mistyped option."""
    for word in words:
        if word.startswith("-") and word != "-":
            raise UserError(
                "usage", f"{word!r} is no option here", "weft doc add --help; a value may begin with a hyphen"
            )
    return [sys.stdin.read() if word == "-" else word for word in words]
