"""Documents as files for others: DerbyXML without eids, DerbyJSON, a score sheet (JAM-030)."""

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any, Final

from weft.wire.document.xml import EID, Tree, escaped_text, escaped_value

INDENT: Final = "  "
NUMBERS: Final = frozenset({"timestamp", "duration", "points", "end"})
"""Attributes that are numbers in JSON, where they are."""
NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
RUN: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet would run."""
SHEET: Final = ("period", "jam", "team", "jammer", "points", "lead", "lost", "called", "starpass", "begin", "duration")


def derbyxml(root: Tree) -> str:
    """A file for people and other programs: indented, without eids; read in again it is the same document."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{pretty(root, eids=False)}\n'


def pretty(root: Tree, *, eids: bool) -> str:
    """Indented. Only elements without text are broken over lines: white space in front of a child would be text."""
    parts: list[str] = []
    _write(root, "", parts.append, eids=eids)
    return "".join(parts)


def _write(node: Tree, indent: str | None, say: Callable[[str], None], *, eids: bool) -> None:
    """Without indentation all on one line. A document is at most 256 elements deep."""
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
    """Teams with their people; periods, jams, events; others by their tag, or, where it means something, in `elements`."""
    told: dict[str, Any] = {"type": "game", "version": "0.2", **_attributes(root), "teams": {}, "periods": []}
    taken = {*told, "elements"}
    for child in root.children:
        if child.tag == "team":
            people = [_plain(person) for person in child.children if person.tag == "person"]
            told["teams"][child.attributes.get("id", "")] = {**_attributes(child, "id"), "persons": people}
        elif child.tag == "period":
            jams = [_jam(jam) for jam in child.children if jam.tag == "jam"]
            others = [_event(other) for other in child.children if other.tag != "jam"]
            told["periods"].append({**_attributes(child), "jams": jams, "events": others})
        elif child.tag in taken:
            told.setdefault("elements", []).append({"tag": child.tag, **_plain(child)})
        else:
            told.setdefault(child.tag, []).append(_plain(child))
    return json.dumps(told, ensure_ascii=False, indent=2) + "\n"


def _jam(node: Tree) -> dict[str, Any]:
    return {**_attributes(node), "events": [_event(event) for event in node.children]}


def _event(node: Tree) -> dict[str, Any]:
    return {"event": node.tag, **_plain(node)}


def _plain(node: Tree) -> dict[str, Any]:
    """An element with all that is in it."""
    told = _attributes(node)
    if node.text:
        told["text"] = node.text
    if node.children:
        told["children"] = [{"tag": child.tag, **_plain(child)} for child in node.children]
    return told


def _attributes(node: Tree, *but: str) -> dict[str, Any]:
    return {
        name: _number(value) if name in NUMBERS else value
        for name, value in node.attributes.items()
        if name != EID and name not in but
    }


def _number(value: str) -> Any:
    """A number as one, anything else as it is.

    >>> _number("4"), _number("1763800000.25"), _number("soon"), _number("nan")
    (4, 1763800000.25, 'soon', 'nan')
    """
    if NUMBER.fullmatch(value) is None:
        return value
    return float(value) if "." in value else int(value)


def score_sheet(rows: list[dict[str, Any]]) -> str:
    """A line for each jam and team, from the rows of a board (JAM-010)."""
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow(SHEET)
    for row in rows:
        for team in ("home", "away"):
            told = {"team": team, **{name: row[name] for name in ("period", "jam", "begin", "duration")}, **row[team]}
            sheet.writerow([_cell(told.get(name)) for name in SHEET])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """As a spreadsheet reads it, and never runs it.

    >>> _cell(4), _cell(True), _cell(None), _cell("=1+1"), _cell("12")
    (4, 'yes', '', "'=1+1", '12')
    """
    if isinstance(value, str):
        return f"'{value}" if value.startswith(RUN) else value
    if isinstance(value, list):
        return " ".join(map(str, value))
    return {True: "yes", False: "", None: ""}.get(value, value) if value is None or isinstance(value, bool) else value
