"""Formats entries, conflicts and changes of documents as lines for people and for programs."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import asdict

from weft.base.now import MILLISECOND
from weft.cli.kit.lines import clock
from weft.cli.kit.text import clean
from weft.client.doc.values import Change, Conflict, Operation
from weft.wire.document.operations import SET, TEXT, parse

HEAD: Final = 8
"""Digits of a source that are shown: enough to distinguish the nodes of a session, and short enough to type."""
BODY_MAX: Final = 120
UNREADABLE: Final = tuple(f"inert:{why}" for why in ("malformed", "name", "verb", "depth", "size"))
SIGNS: Final = {"added": "+", "removed": "-", "changed": "~"}


WORDS: Final = {
    "chat": "{who} says: {text}",
    "doc.conflict": "conflict {kind} at {slot} {attribute}: weft doc resolve {id}",
    "peer.active": "{who} at {endpoint} is connected",
    "peer.gone": "{who} at {endpoint} is gone: {why}",
    "peer.evasive": "{who} at {endpoint} is silent",
}
"""Texts of events for people; any other event is printed as its name and facts."""


def short(source: str) -> str:
    """The beginning of a UUID.

    >>> short("5f3a9c21-0000-4000-8000-000000000001")
    '5f3a9c21'
    """
    return source[:HEAD]


def time_of(seconds: float) -> str:
    """The time of day of an instant of a document, which counts in seconds."""
    return clock(round(seconds * 1_000) * MILLISECOND)


def what(operation: Operation) -> str:
    """The content of an operation: for a `set` what it sets, else its inner XML; shortened."""
    body = operation.body.decode("utf-8", "replace")
    begin, end = body.find(">") + 1, body.rfind("</")
    inner = clean(body[begin:end]) if 0 < begin <= end else ""
    if operation.verb == SET and operation.outcome not in UNREADABLE:
        writes = parse(operation.body).steps[0].writes
        inner = " ".join(repr(clean(value)) if name == TEXT else f"{name}={clean(value)}" for name, value in writes)
    return inner if len(inner) <= BODY_MAX else f"{inner[: BODY_MAX - 1]}…"


def operation_line(operation: Operation) -> str:
    """An entry of the log, one line."""
    parts = [
        time_of(operation.eff),
        f"{short(operation.source)}:{operation.sequence}",
        clean(operation.verb),
        clean(operation.reference),
        what(operation),
        f"by {clean(operation.by)}" if operation.by else "",
        "" if operation.outcome == "applied" else f"({operation.outcome or 'not folded yet'})",
    ]
    return " ".join(part for part in parts if part)


def operation_json(operation: Operation) -> dict[str, Any]:
    """The same for programs; bytes of the body that are no UTF-8 are replaced."""
    return {**asdict(operation), "body": operation.body.decode("utf-8", "replace")}


def change_lines(change: Change) -> list[str]:
    """A change as lines: one for each entry and event, or, if nothing was entered, one for each place that differs."""
    lines = ["the node was away: what happened meanwhile is in weft doc log"] if change.is_whole else []
    if change.more:
        lines.append(f"{change.more:,} entries before these")
    lines += map(operation_line, change.operations)
    lines += map(event_line, change.events)
    if not change.operations:
        lines += [f"{sign} {clean(slot)}" for kind, sign in SIGNS.items() for slot in getattr(change, kind)]
    return lines


def change_json(change: Change) -> dict[str, Any]:
    """The same for programs."""
    return {**asdict(change), "operations": [operation_json(operation) for operation in change.operations]}


def event_line(event: dict[str, Any]) -> str:
    """What happened around the document.

    >>> event_line({"event": "chat", "at": 0.25, "peer": "5f3a9c21-0000", "text": "jam 3?"})[12:]
    ' 5f3a9c21 says: jam 3?'
    >>> event_line({"event": "chat", "at": 0.25, "peer": "5f3a9c21-0000", "by": "Ann", "text": "jam 3?"})[12:]
    ' Ann (5f3a9c21) says: jam 3?'
    """
    at, facts = time_of(event.get("at", 0)), {name: clean(str(value)) for name, value in event.items()}
    words = WORDS.get(facts.get("event", ""))
    if words is not None:
        peer = short(facts.get("peer", "-"))
        facts["who"] = f"{facts['by']} ({peer})" if facts.get("by") else peer
        return f"{at} {words.format_map(_Said(facts))}"
    others = [f"{name}={clean(str(value))}" for name, value in event.items() if name not in ("event", "at")]
    return " ".join([at, str(event.get("event")), *others])


class _Said(dict[str, str]):
    """Facts of an event; one that a node of another version does not send is a hyphen."""

    def __missing__(self, _: str) -> str:
        return "-"


def conflict_row(conflict: Conflict) -> Sequence[str]:
    """The cells of a conflict: id, kind, place, what each of the two wanted."""
    first, second = (
        f"{clean(shown or side[2]) or '-'} ({short(side[0])}:{side[1]})"
        for side, shown in zip((conflict.first, conflict.second), conflict.shown, strict=True)
    )
    state = "" if conflict.open else "resolved"
    return (
        conflict.id,
        conflict.kind,
        f"{clean(conflict.where or conflict.slot)} {clean(conflict.attr)}",
        first,
        second,
        state,
    )
