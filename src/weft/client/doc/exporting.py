"""Documents as files for other programs: DerbyXML without eids, DerbyJSON, a score sheet (JAM-030)."""

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any, Final

from weft.wire.document.xml import EID, Tree, escaped_text, escaped_value

INDENT: Final = "  "
NUMBERS: Final = frozenset({"timestamp", "duration", "points", "end"})
"""Attributes that become numbers in JSON if their value is one."""
NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
RUN: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters of texts that a spreadsheet would execute as a formula."""
SHEET: Final = ("period", "jam", "team", "jammer", "points", "lead", "lost", "called", "starpass", "begin", "duration")


def derbyxml(root: Tree) -> str:
    """The document as an XML file, indented and without eids. Importing it gives the same document again."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{pretty(root, eids=False)}\n'


def pretty(root: Tree, *, eids: bool) -> str:
    """An element as indented XML. One with text stays on one line, because white space before a child would be text, too."""
    parts: list[str] = []
    _write(root, "", parts.append, eids=eids)
    return "".join(parts)


def _write(node: Tree, indent: str | None, say: Callable[[str], None], *, eids: bool) -> None:
    """Write an element; with `indent` None on one line. It recurses at most 256 deep, as documents do."""
    named = [(name, value) for name, value in node.attributes.items() if eids or name != EID]
    attributes = [f' {name}="{escaped_value(value)}"' for name, value in named]
    begin, text, children = f"<{node.tag}{''.join(attributes)}", escaped_text(node.text), node.children
    if not children:
        say(f"{begin}>{text}</{node.tag}>" if text else f"{begin}/>")
        return
    deeper = None if text or indent is None else f"{indent}{INDENT}"
    say(f"{begin}>{text}")
    for child in children:
        if deeper is not None:
            say(f"\n{deeper}")
        _write(child, deeper, say, eids=eids)
    say(f"</{node.tag}>" if deeper is None else f"\n{indent}</{node.tag}>")


def derbyjson(root: Tree) -> str:
    """The document as DerbyJSON: teams with their people, periods, jams, events.

    Other elements are listed under their tag; if the tag is a key of DerbyJSON itself, under `elements`.
    """
    game: dict[str, Any] = {"type": "game", "version": "0.2", **_attributes(root), "teams": {}, "periods": []}
    taken = {*game, "elements"}
    for child in root.children:
        if child.tag == "team":
            people = [_plain(person) for person in child.children if person.tag == "person"]
            game["teams"][child.attributes.get("id", "")] = {**_attributes(child, "id"), "persons": people}
        elif child.tag == "period":
            jams = [_jam(jam) for jam in child.children if jam.tag == "jam"]
            others = [_event(other) for other in child.children if other.tag != "jam"]
            game["periods"].append({**_attributes(child), "jams": jams, "events": others})
        elif child.tag in taken:
            game.setdefault("elements", []).append({"tag": child.tag, **_plain(child)})
        else:
            game.setdefault(child.tag, []).append(_plain(child))
    return json.dumps(game, ensure_ascii=False, indent=2) + "\n"


def _jam(node: Tree) -> dict[str, Any]:
    return {**_attributes(node), "events": [_event(event) for event in node.children]}


def _event(node: Tree) -> dict[str, Any]:
    return {"event": node.tag, **_plain(node)}


def _plain(node: Tree) -> dict[str, Any]:
    """An element with its attributes, text and children."""
    fields = _attributes(node)
    if node.text:
        fields["text"] = node.text
    if node.children:
        fields["children"] = [{"tag": child.tag, **_plain(child)} for child in node.children]
    return fields


def _attributes(node: Tree, *but: str) -> dict[str, Any]:
    return {
        name: _number(value) if name in NUMBERS else value
        for name, value in node.attributes.items()
        if name != EID and name not in but
    }


def _number(value: str) -> Any:
    """The number that a text denotes; any other text as it is.

    >>> _number("4"), _number("1763800000.25"), _number("soon"), _number("nan")
    (4, 1763800000.25, 'soon', 'nan')
    """
    if NUMBER.fullmatch(value) is None:
        return value
    return float(value) if "." in value else int(value)


def score_sheet(rows: list[dict[str, Any]]) -> str:
    """CSV with one line for each jam and team, from the rows of a board (JAM-010)."""
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow(SHEET)
    for row in rows:
        for team in ("home", "away"):
            cells = {"team": team, **{name: row[name] for name in ("period", "jam", "begin", "duration")}, **row[team]}
            sheet.writerow([_cell(cells.get(name)) for name in SHEET])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A value for a spreadsheet; a text that would be executed as a formula gets an apostrophe in front.

    >>> _cell(4), _cell(True), _cell(None), _cell("=1+1"), _cell("12")
    (4, 'yes', '', "'=1+1", '12')
    """
    if isinstance(value, str):
        return f"'{value}" if value.startswith(RUN) else value
    if isinstance(value, list):
        return " ".join(map(str, value))
    return {True: "yes", False: "", None: ""}.get(value, value) if value is None or isinstance(value, bool) else value
