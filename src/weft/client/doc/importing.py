"""Files that become entries: a document in XML, a roster in CSV (JAM-030).

A document is entered in pieces. Elements that the schema creates by itself (derby: teams and periods) get their attributes;
every other element directly below the root, a team or a period becomes one `add`. So the file of one bout is some hundred
entries, each with its own number in the log; if a file is imported at two nodes, each entry is merged by itself.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import uuid4

from weft.base.errors import PeerError
from weft.client.doc.errors import BadFile
from weft.cores.document.fold.schema import Chain, Schema, Seed
from weft.wire.document.xml import EID, Node, refuse_mixed, tree_of, written

PIECE_BYTES: Final = 60_000  # an operation has at most 65,536, its root tag included (GSP-013)
ROSTER: Final = ("team", "number", "name")


class Enter(NamedTuple):
    """One entry to make."""

    verb: str
    reference: dict[str, str]
    xml: str = ""
    attributes: dict[str, str] = {}
    text: str | None = None


def entries_of(xml: bytes | str, schema: Schema) -> Iterator[Enter]:
    """The entries that turn an empty document of this schema into the file's document; BadFile if the file is invalid."""
    try:
        root = tree_of(xml)
    except PeerError as error:
        raise BadFile(f"it is not XML: {error.why}", mend="a DerbyXML file, as weft doc export writes it") from None
    try:
        refuse_mixed(root)
    except PeerError as error:
        raise BadFile(error.why, mend="put a tag around it: an element has its text before its first child") from None
    if root.tag != schema.root:
        text = f"its root is <{root.tag}>, and a document of schema {schema.name} is a <{schema.root}>"
        raise BadFile(text, mend="a session with --schema plain, or of your own")
    attributes = {name: value for name, value in root.attributes.items() if name != EID}
    news = {name: value for name, value in attributes.items() if schema.written.attributes.get(name) != value}
    if news:
        yield Enter("set", {"path": "/"}, attributes=news)
    if root.text:
        yield Enter("set", {"path": "/"}, text=root.text)
    steps = schema.below.get(schema.root, {})
    for child in root.children:
        if (step := steps.get(child.tag)) is not None and step.is_keyed and step.keys[0] in child.attributes:
            yield from _container(child, step, schema.written.genesis)
        else:
            yield from _pieces(child, {"path": "/"})


def _container(node: Node, step: Chain, genesis: Sequence[Seed]) -> Iterator[Enter]:
    """An element that the schema can create: its attributes, then its children, which create it if it does not exist."""
    key = step.keys[0]
    is_made = any(seed.tag == node.tag and seed.attributes.get(key) == node.attributes[key] for seed in genesis)
    if set(node.attributes) - {key} or node.text or not (is_made or node.children):
        yield Enter("add", {"path": "/"}, written([Node(node.tag, node.attributes, node.text)]))
    for child in node.children:
        yield from _pieces(child, {step.ref: node.attributes[key]})


def _pieces(node: Node, where: Mapping[str, str]) -> Iterator[Enter]:
    """An element as one entry, or as several if it is too large for one."""
    xml = written([node])
    if len(xml.encode()) <= PIECE_BYTES:
        yield Enter("add", dict(where), xml)
        return
    eid = node.attributes.get(EID) or str(uuid4())
    head = written([Node(node.tag, {**node.attributes, EID: eid}, node.text)])
    if len(head.encode()) > PIECE_BYTES:
        text = (
            f"<{node.tag}> has {len(head.encode()):,} bytes without its children; one entry has at most {PIECE_BYTES:,}"
        )
        raise BadFile(text, mend="split it into several elements")
    yield Enter("add", dict(where), head)
    for child in node.children:
        yield from _pieces(child, {"eid": eid})


def roster_of(lines: Iterable[str], document: Node) -> Iterator[Enter]:
    """The entries that bring a document up to a roster: a person with that team and number is changed, others are added.

    The lines are CSV. With a heading there may be columns besides team, number and name; without one there are these three.
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    rows = [row for row in rows if any(row)]
    heads = [cell.lower() for cell in rows[0]] if rows and "team" in map(str.lower, rows[0]) else []
    columns = heads or list(ROSTER)
    if missing := [name for name in ROSTER if name not in columns]:
        raise BadFile(f"it has no column {missing[0]}", mend="columns team,number,name, as in: home,123,Ann Lee")
    known = _people(document)
    for number, row in enumerate(rows[bool(heads) :], 1 + bool(heads)):
        if len(row) != len(columns):
            raise BadFile(f"row {number} has {len(row)} cells, not {len(columns)}", mend="team,number,name in each row")
        person = {name: cell for name, cell in zip(columns, row, strict=True) if cell}
        team = person.pop("team", "")
        there = known.get((team, person.get("number", "")))
        if there is None:
            yield Enter("add", {"team": team}, written([Node("person", person)]))
        elif news := {name: value for name, value in person.items() if there.get(name) != value}:
            yield Enter("set", {"team": team, "person": person["number"]}, attributes=news)


def _people(document: Node) -> dict[tuple[str, str], dict[str, str]]:
    """The attributes of all people who have a number, by team and number."""
    return {
        (team.attributes["id"], person.attributes["number"]): person.attributes
        for team in document.children
        if team.tag == "team" and "id" in team.attributes
        for person in team.children
        if person.tag == "person" and "number" in person.attributes
    }
