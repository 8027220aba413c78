"""Shows a document as it was after any of its entries, who entered what, and what is in conflict (CON-002).

Entries are counted in the order of the document, which is the same on all nodes. Log and conflicts are read from the core.
An earlier state of the document is built by `weft doc show --until` in another process, never in the node.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weft.cores.document.serving_reads import Reads, Which
from weft.cores.kit.refusals import Refusal
from weft.shell.console import limits
from weft.shell.console.commands import Commands
from weft.shell.tracing import is_number
from weft.wire.document.operations import uuid_of, uuid_text

if TYPE_CHECKING:
    from weft.cores.document.core import Documents as Core
    from weft.cores.document.fold.engine import Engine
    from weft.cores.document.fold.order import Key
    from weft.cores.document.session import Session

SMALLER: Final = "weft doc show, on the machine of the node: it has no such bound"


class DocumentReader:
    """Reads the sessions of a node."""

    def __init__(self, core: "Callable[[], Core]", state: Path, commands: Commands) -> None:
        """`state`: the node's state directory, by which commands find the node."""
        self._core, self._state, self._commands = core, state, commands

    def around(self, asked: dict[str, str]) -> dict[str, Any]:
        """Entries on both sides of a place, and the conflicts; Refusal if there is no such session or place.

        `asked`: `session`, which may be left out if there is only one, and one of `until` (SOURCE:NUMBER), `at` (Unix
        seconds) and `place`.
        """
        core, session = self._session(asked)
        place, reads = _place(session.engine, asked), Reads(session)
        conflicts, more = _conflicts(reads)
        parties = {tuple(row[side]["entry"]) for row in conflicts for side in ("first", "second")}
        begin = max(0, place - limits.ENTRIES_AROUND)
        keys = session.engine.order(begin, place + limits.ENTRIES_AROUND)
        return {
            "session": session.context.session,
            "sessions": sorted(core.sessions),
            "total": _total(session.engine),
            "place": place,
            "check": f"{session.log.check:08x}",
            "entries": [_entry(reads, key, begin + 1 + index, parties) for index, key in enumerate(keys)],
            "conflicts": conflicts,
            "more": more,
        }

    async def text(self, asked: dict[str, str]) -> dict[str, Any]:
        """The document at a place, one element per line; or an error and what to do. Refusal as in `around`."""
        _, session = self._session(asked)
        place, total = _place(session.engine, asked), _total(session.engine)
        if place < total and total > limits.FOLDED_MAX:
            return {"error": f"more than {limits.FOLDED_MAX:,} entries would be folded again", "mend": SMALLER}
        of = ["--node", str(self._state), "--session", session.context.session]
        if place < total:
            (last,) = session.engine.order(place - 1, place)
            of += ["--until", _name(last)]
        output = await self._commands.ask("doc", "show", *of, smaller=SMALLER, fresh=f"{session.log.check:08x}")
        lines = output.text.decode("utf-8", "replace").split("\n")
        shown = lines[: limits.LINES_MAX]
        return {
            "place": place,
            "lines": shown,
            "more": len(lines) - len(shown),
            "error": output.error,
            "mend": output.mend,
        }

    def _session(self, asked: dict[str, str]) -> "tuple[Core, Session]":
        core = self._core()
        name = asked.get("session", min(core.sessions, default=""))
        if name not in core.sessions:
            raise Refusal(
                "no-session", f"this node has no session {name!r}", f"one of {', '.join(sorted(core.sessions))}"
            )
        return core, core.sessions[name]


def _total(engine: "Engine") -> int:
    return engine.place_at(math.inf)


def _place(engine: "Engine", asked: dict[str, str]) -> int:
    """The number of entries up to the place that is asked for; of all entries if none is."""
    if "until" in asked:
        source, _, number = asked["until"].partition(":")
        place = engine.place_of(uuid_of(source) or b"", _number(number))
    elif "at" in asked:
        place = engine.place_at(_seconds(asked["at"]))
    elif "place" in asked:
        place = min(_number(asked["place"]), _total(engine))
    else:
        return _total(engine)
    if not place:
        raise Refusal("no-entry", "the document has no such entry, or none until then", "weft doc log: what there is")
    return place


def _number(text: str) -> int:
    """A number in an address; 0 if the text is no number."""
    return int(text) if is_number(text, limits.DIGITS_MAX) else 0


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return -math.inf
    return -math.inf if math.isnan(found) else found


def _name(key: "Key") -> str:
    return f"{uuid_text(key.source)}:{key.sequence}"


def _entry(reads: Reads, key: "Key", place: int, parties: set[tuple[Any, ...]]) -> dict[str, Any]:
    row = reads.row(key.source, key.sequence)
    body = row["body"].decode("utf-8", "replace")
    return {
        "place": place,
        "until": _name(key),
        "at": round(key.eff * 1_000),
        "by": row["by"],
        "verb": row["verb"],
        "reference": row["reference"],
        "outcome": row["outcome"],
        "body": body[: limits.ENTRY_CHARACTERS],
        "in_conflict": (row["source"], row["sequence"]) in parties,
    }


def _conflicts(reads: Reads) -> tuple[list[dict[str, Any]], int]:
    """The conflicts, open ones first, and how many are not shown."""
    found = reads.conflicts(Which(closed=True))
    rows = sorted(found["conflicts"], key=lambda row: not row["open"])
    shown = [_conflict(reads, row) for row in rows[: limits.CONFLICTS_MAX]]
    return shown, found["more"] + len(rows) - len(shown)


def _conflict(reads: Reads, row: dict[str, Any]) -> dict[str, Any]:
    sides = {}
    for side, shown in zip(("first", "second"), row["shown"], strict=True):
        source, sequence, value = row[side]
        by = reads.author(uuid_of(source) or b"", sequence)
        sides[side] = {"entry": [source, sequence], "by": by, "value": (shown or value)[: limits.ENTRY_CHARACTERS]}
    return {name: row[name] for name in ("id", "kind", "slot", "where", "attr", "open")} | sides
