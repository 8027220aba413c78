"""The same edits in pycrdt, loro and automerge, below var/peers/crdts (scripts/bench-install), for bench/document.py.

A document is a map of elements by their eid, each a map of attributes, one of them a text: what these libraries are best
at. Every source has a document of its own; all hear of all at the end of a round. Nothing is keyed by what it is: two
sources that make jam 1 make two of them there, since neither knows of the other's.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

PLACE: Final = Path(__file__).parents[2] / "var/peers/crdts"
ROUND: Final = 160
"""Edits after which everybody has heard of everything."""
TAGS: Final = ("penalty", "pass", "lineup", "lead", "note")
ATTRIBUTES: Final = ("code", "points", "person")
MIX: Final = (("add", 35), ("set", 45), ("text", 10), ("remove", 10))


class Edit(NamedTuple):
    """What one person enters."""

    source: int
    kind: str
    eid: str
    place: tuple[int, int]
    """Period and jam of what is added."""
    tag: str
    name: str
    value: str


def edits(count: int, sources: int = 16) -> Iterator[Edit]:
    """The mix of DOC-060; what is edited is known to who edits it."""
    draw = random.Random(f"documents {count}")
    common: list[str] = []
    own: list[list[str]] = [[] for _ in range(sources)]
    gone: list[str] = []
    kinds, weights = [kind for kind, _ in MIX], [weight for _, weight in MIX]
    for number in range(count):
        if number % ROUND == 0:
            common = sorted({*common, *(eid for eids in own for eid in eids)} - set(gone))
            own, gone = [[] for _ in range(sources)], []
        source, kind = number % sources, draw.choices(kinds, weights)[0]
        known = own[source] or common
        if not known or kind == "add":
            eid = f"e{draw.getrandbits(28):07x}-0000-4000-8000-{number:012d}"
            own[source].append(eid)
            kind = "add"
        elif draw.random() < 0.5 and common:
            eid = common[draw.randrange(len(common))]
        else:
            eid = known[draw.randrange(len(known))]
        if kind == "remove":
            gone.append(eid)
            own[source] = [each for each in own[source] if each != eid]
        place = (1 + (number * 2) // count, 1 + (number * 40) // count)
        yield Edit(source, kind, eid, place, draw.choice(TAGS), draw.choice(ATTRIBUTES), str(draw.randint(0, 99)))


class Peer(NamedTuple):
    """One of the libraries: its updates as they go over a wire, and how fast somebody takes all of them."""

    name: str
    updates: list[bytes]
    apply: Callable[[], object]
    whole: bytes
    """All of the document for a newcomer."""


def load(name: str) -> Any:
    """A library of var/peers/crdts; None if it is not there."""
    if str(PLACE) not in sys.path:
        sys.path.append(str(PLACE))
    try:
        return __import__(name)
    except ImportError:
        return None


def pycrdt_of(all_edits: list[Edit], sources: int = 16) -> Peer | None:
    """Yjs in Rust."""
    pycrdt = load("pycrdt")
    if pycrdt is None:
        return None
    updates: list[bytes] = []
    heard: list[bytes] = []
    docs = [pycrdt.Doc(client_id=index + 1) for index in range(sources)]
    maps = [doc.get("elements", type=pycrdt.Map) for doc in docs]
    marks = [doc.observe(lambda event: heard.append(event.update)) for doc in docs]
    begun = 0
    for number, edit in enumerate(all_edits, 1):
        heard.clear()
        with docs[edit.source].transaction():
            _edit_pycrdt(pycrdt, maps[edit.source], edit)
        updates.append(heard[0] if heard else b"")
        if number % ROUND == 0 or number == len(all_edits):
            news = [
                (each.source, update)
                for each, update in zip(all_edits[begun:number], updates[begun:number], strict=True)
            ]
            for index, doc in enumerate(docs):
                _apply_all(doc, [update for source, update in news if update and source != index])
            begun = number
    del marks
    said = [update for update in updates if update]

    def apply() -> object:
        return _apply_all(pycrdt.Doc(), said)

    return Peer("pycrdt", said, apply, docs[0].get_update())


def _apply_all(doc: Any, updates: list[bytes]) -> object:
    for update in updates:
        doc.apply_update(update)
    return doc


def _edit_pycrdt(pycrdt: Any, elements: Any, edit: Edit) -> None:
    if edit.kind == "add":
        elements[edit.eid] = pycrdt.Map({"tag": edit.tag, edit.name: edit.value, "text": pycrdt.Text("")})
        return
    element = elements.get(edit.eid)
    if element is None:
        return
    if edit.kind == "set":
        element[edit.name] = edit.value
    elif edit.kind == "text":
        element["text"].insert(0, edit.value)
    else:
        del elements[edit.eid]


def loro_of(all_edits: list[Edit], sources: int = 16) -> Peer | None:
    """Loro."""
    loro = load("loro")
    if loro is None:
        return None
    updates: list[bytes] = []
    heard: list[bytes] = []
    docs = [loro.LoroDoc() for _ in range(sources)]
    for index, doc in enumerate(docs):
        doc.peer_id = index + 1

    def hear(update: bytes) -> bool:
        heard.append(update)
        return True

    marks = [doc.subscribe_local_update(hear) for doc in docs]
    begun = 0
    for number, edit in enumerate(all_edits, 1):
        heard.clear()
        _edit_loro(loro, docs[edit.source].get_map("elements"), edit)
        docs[edit.source].commit()
        updates.append(heard[0] if heard else b"")
        if number % ROUND == 0 or number == len(all_edits):
            news = [
                (each.source, update)
                for each, update in zip(all_edits[begun:number], updates[begun:number], strict=True)
            ]
            for index, doc in enumerate(docs):
                doc.import_batch([update for source, update in news if update and source != index])
            begun = number
    del marks
    said = [update for update in updates if update]

    def apply() -> object:
        doc = loro.LoroDoc()
        for update in said:
            doc.import_(update)
        return doc

    return Peer("loro", said, apply, docs[0].export(loro.ExportMode.Snapshot()))


def _edit_loro(loro: Any, elements: Any, edit: Edit) -> None:
    if edit.kind == "add":
        element = elements.insert_container(edit.eid, loro.LoroMap())
        element.insert("tag", edit.tag)
        element.insert(edit.name, edit.value)
        element.insert_container("text", loro.LoroText())
        return
    found = elements.get(edit.eid)
    if found is None:
        return
    element = found.container
    if edit.kind == "set":
        element.insert(edit.name, edit.value)
    elif edit.kind == "text":
        element.get("text").container.insert(0, edit.value)
    else:
        elements.delete(edit.eid)


def automerge_rate(count: int) -> float | None:
    """Entries a second that its Python binding puts into a new document; it can neither change one nor save it."""
    automerge = load("automerge")
    if automerge is None:
        return None
    said = {f"e{number:07d}": {"tag": "pass", "points": "4"} for number in range(count)}
    began = time.perf_counter()
    automerge.Doc(said)
    return count / (time.perf_counter() - began)


def jams_in_pycrdt() -> int | None:
    """How many jams two make who both make jam 1 while they are apart."""
    pycrdt = load("pycrdt")
    if pycrdt is None:
        return None
    docs = [pycrdt.Doc(), pycrdt.Doc()]
    periods = [doc.get("period", type=pycrdt.XmlFragment) for doc in docs]
    for period in periods:
        period.children.append(pycrdt.XmlElement("jam", {"number": "1"}))
    one, other = docs[0].get_update(), docs[1].get_update()
    docs[0].apply_update(other)
    docs[1].apply_update(one)
    return len(list(periods[0].children))
