"""Histories written as people would say them, one fact a line.

    r starts root | a starts sensor under r | a takes 1-3 | r holds a 1-3 | r loses a 4 | a forgets 1-3
    a links 5 of a/1 | r drains 1: a 1-3, -a 4 | a disk lost | a disk old: a 1-2 | healed | quiet

`a` is the first start of a, `a/7` its start of era 7; stream 1 unless `events` stands before the numbers. Lines are a
second apart; `@12.5` before a line sets its time.
"""

import re
from collections.abc import Callable
from typing import Any

from weft.base.now import SECOND
from weft.checks import Fact

DEAD_NS = 5 * SECOND
_SPAN = re.compile(r"(-?)([\w/]+) (events )?(\d+)(?:-(\d+))?")
_OWN = re.compile(r"(?:(/\d+) )?(events )?(\d+)(?:-(\d+))?")


def history(text: str) -> list[Fact]:
    """The facts of a text, in order."""
    facts: list[Fact] = []
    at = 0
    for line in re.split(r"[|\n]", text):
        timed = re.fullmatch(r"\s*(?:@([\d.]+) )?(.*?)\s*", line)
        assert timed, line
        if timed[2]:
            at = round(float(timed[1]) * SECOND) if timed[1] else at + SECOND
            facts.append(_fact(at, timed[2]))
    return facts


def _fact(at: int, line: str) -> Fact:
    for pattern, kind, what, value in _FORMS:
        match = re.fullmatch(pattern, line)
        if match:
            words = match.groups()
            node = words[0] if words and pattern.startswith("(") else ""
            rest = words[1:] if node else words
            return Fact(at, node, 1, kind, what, value(node, *rest))
    raise ValueError(line)


def origin(text: str) -> str:
    return text if "/" in text else f"{text}/1"


def claim(text: str) -> list[Any]:
    """`a 1-3` as stream, origin, first, last."""
    match = _SPAN.fullmatch(text.strip())
    assert match, text
    _, name, events, first, last = match.groups()
    return [4 if events else 1, origin(name), int(first), int(last or first)]


def _own(node: str, text: str) -> list[Any]:
    match = _OWN.fullmatch(text)
    assert match, text
    era, events, first, last = match.groups()
    return [4 if events else 1, f"{node}{era or '/1'}", int(first), int(last or first)]


def _claims(text: str | None) -> list[list[Any]]:
    return [claim(each) for each in text.split(",")] if text else []


def _segment(_: str, number: str, text: str | None) -> list[Any]:
    spans = [each.strip() for each in (text or "").split(",") if each.strip()]
    held = [claim(each)[1:] for each in spans if not each.startswith("-")]
    lost = [claim(each)[1:] for each in spans if each.startswith("-")]
    return [1, int(number), held, lost, []]


def _hop(_: str, parent: str, first: str, text: str) -> list[Any]:
    return [parent, 1, int(first), [_item(each.strip()) for each in text.split(",")]]


def _item(text: str) -> list[Any]:
    if text == "link":
        return [0, "", 0, 0, "link"]
    return [*claim(text), "loss" if text.startswith("-") else "record"]


_FORMS: list[tuple[str, str, str, Callable[..., Any]]] = [
    (r"(\w+) starts (\w+)(?: under (\w+))?", "info", "start", lambda _, level, up: [level, up or "", DEAD_NS]),
    (r"(\w+) takes (.+)", "durable", "taken", _own),
    (r"(\w+) holds (.+)", "durable", "held", lambda _, text: claim(text)),
    (r"(\w+) loses (?!by damage)(.+)", "durable", "lost", lambda _, text: [*claim(text), "spool-full"]),
    (r"(\w+) forgets (.+)", "info", "forgot", lambda _, text: claim(text)),
    (
        r"(\w+) links (\d+) of ([\w/]+)",
        "durable",
        "link",
        lambda node, last, before: [1, f"{node}/2", before, int(last)],
    ),
    (r"(\w+) drains (\d+):(.*)", "durable", "segment", _segment),
    (r"(\w+) (knows|misses) its lake", "event", "lake-unknown", lambda _, how: [how == "misses"]),
    (
        r"(\w+) loses by damage (.*?)(?:; lists (.*))?",
        "info",
        "harmed",
        lambda _, gone, listed: ["with a flipped bit", False, _claims(gone), [], _claims(listed)],
    ),
    (r"(\w+) disk (lost|old|harmed)(?:: ([^-]+.*))?", "info", "disk", lambda _, how, text: [how, _claims(text), []]),
    (r"(\w+) restores(?: (.*))?", "info", "restored", lambda _, text: [_claims(text), []]),
    (r"(\w+) crashes", "info", "crash", lambda _: ["kept"]),
    (r"(\w+) sends (\w+) (\d+): (.*)", "sent", "hop", _hop),
    (r"(\w+) knocks at (\w+) from (\d+)", "sent", "hello", lambda _, up, first: [up, 1, int(first)]),
    (r"(\w+) tells (\w+) (\d+) safe (\d+)", "sent", "hack", lambda _, to, upto, safe: [to, 1, int(upto), int(safe)]),
    (r"(\w+) joined", "event", "parent-joined", lambda _: ["?"]),
    (r"(\w+) lost its parent: (.*)", "event", "parent-lost", lambda _, why: [why]),
    (r"(\w+) joined by (\w+)", "event", "child-joined", lambda _, child: [child]),
    (r"(\w+) lost its child (\w+): (.*)", "event", "child-lost", lambda _, child, why: [child, why]),
    (r"path (\w+) (\w+) (\w+)", "info", "path", lambda _, here, there, state: [here, there, state]),
    (r"link (\w+) (\w+) (up|down)", "info", "link", lambda _, child, up, state: [child, up, state == "up"]),
    (r"(\w+) pauses", "info", "paused", lambda _: None),
    (r"(\w+) resumes", "info", "resumed", lambda _: None),
    (r"(\w+) injected (\w+)", "info", "injected", lambda _, digest: ["up", digest]),
    (
        r"(\w+) absorbed (\w+) (\d) (\d) (\d)",
        "info",
        "absorbed",
        lambda _, digest, *counts: ["up", digest, *map(int, counts)],
    ),
    (r"(\w+) gauge (\w+) (\d+) of (\d+)", "info", "gauge", lambda _, name, *counts: [name, *map(int, counts)]),
    (r"(\w+) state (\w+) (\w+)", "info", "state", lambda _, subject, digest: [subject, digest]),
    (r"(\w+) waits for (\w+)", "info", "waits", lambda _, what: [what, 0]),
    (r"trace (\w+) (\w+)", "info", "trace", lambda _, plan, trace: [plan, trace]),
    (r"healed", "info", "healed", lambda _: None),
    (r"quiet", "info", "quiet", lambda _: None),
]
