"""A document in the console: as it was after any entry, who entered what, and what is in conflict (CON-002)."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.document.logs import Node, body
from tests.document.rig import EB, EC, EPOCH, A, B, C
from tests.shell.test_console import at, console
from weft.shell.console import limits
from weft.shell.console.commands import Commands
from weft.shell.console.documents import SMALLER, DocumentReader
from weft.shell.console.feed import Feed
from weft.shell.console.lake import Lake
from weft.shell.console.routes import Sources, routes_of
from weft.shell.http.logins import Logins
from weft.shell.http.messages import Request
from weft.wire.document.messages import Xmsg
from weft.wire.document.operations import uuid_text

WORDS = (sys.executable, "-c", "import sys; print('\\n'.join(sys.argv[1:]))")
"""A command that prints what it was asked."""


def session(*values: tuple[bytes, int, float, str]) -> Node:
    """A session in which each wrote a value at a second, in this order of arrival."""
    node = Node(operator="Ann")
    node.befriend(B, EB)
    node.befriend(C, EC)
    for source, sequence, second, value in values:
        said = body(source, sequence, value, at=EPOCH + second)
        node.hear(B, Xmsg(said.replace(b"<set ", b'<set by="Bob" ')))
    return node


def reader(node: Node, command: tuple[str, ...] = WORDS) -> DocumentReader:
    core = SimpleNamespace(sessions={node.session.context.session: node.session})
    return DocumentReader(lambda: cast("Any", core), Path("state"), Commands(command))


def ask(documents: DocumentReader | None, path: str, query: str = "") -> tuple[int, Any]:
    shown = console()
    sources = Sources(shown, Feed(shown, lambda: at(1)), Lake(None, Commands()), Logins(lambda: 0.0), lambda: documents)
    route = routes_of(sources)[f"/console/{path}"]
    assert "GET" == route.method

    async def handled() -> Any:
        answer: Any = route.handle(Request("GET", f"/console/{path}", query))
        return await answer if asyncio.iscoroutine(answer) else answer

    told = asyncio.run(handled())
    return told.status, json.loads(told.body)


@pytest.mark.proves("CON-002", part="entries around a place of a document, in its own order, with who entered them")
def test_entries_stand_in_the_order_of_the_document_with_who_entered_them_and_what_they_did() -> None:
    node = session((B, 1, 5, "late"), (B, 2, 9, "last"), (C, 1, 7, "other"))
    status, told = ask(reader(node), "document.json")
    assert (200, 3, 3, [""], 0) == (status, told["total"], told["place"], told["sessions"], told["more"])
    assert [1, 2, 3] == [row["place"] for row in told["entries"]]
    assert [5, 7, 9] == [row["at"] / 1_000 - EPOCH for row in told["entries"]]
    assert [f"{uuid_text(source)}:{number}" for source, number in ((B, 1), (C, 1), (B, 2))] == [
        row["until"] for row in told["entries"]
    ]
    assert {("Bob", "set", "path=b", "applied")} == {
        (row["by"], row["verb"], row["reference"], row["outcome"]) for row in told["entries"]
    }


@pytest.mark.proves("CON-002", part="a document as it was after an entry or at an instant, folded outside of the node")
def test_a_document_is_asked_for_as_of_an_entry_or_an_instant_and_folded_by_a_process() -> None:
    documents = reader(session((B, 1, 5, "a"), (B, 2, 9, "b")))
    until = f"{uuid_text(B)}:1"
    for query in (f"until={until}", f"at={EPOCH + 5}", f"at={EPOCH + 8.5}", "place=1"):
        _, told = ask(documents, "text.json", query)
        assert ["doc", "show", "--node", "state", "--session", "", "--until", until, ""] == told["lines"]
        assert 1 == ask(documents, "document.json", query)[1]["place"]
    for query in ("", f"at={EPOCH + 9}", "at=inf", "place=99"):
        assert "--until" not in ask(documents, "text.json", query)[1]["lines"]


@pytest.mark.proves("CON-002", part="conflicts of a document, the open ones first, and the entries that are in them")
def test_conflicts_are_listed_with_both_sides_and_their_entries_are_marked() -> None:
    node = session((C, 1, 5, "x"), (B, 1, 6, "ours"), (B, 2, 7, "more"))
    _, told = ask(reader(node), "document.json")
    (conflict,) = told["conflicts"]
    sides = [(conflict[side]["by"], conflict[side]["value"]) for side in ("first", "second")]
    assert ("set-set", "/b[#1]", True) == (conflict["kind"], conflict["slot"], conflict["open"])
    assert [("Bob", "x"), ("Bob", "ours")] == sides
    assert [True, True, False] == [row["in_conflict"] for row in told["entries"]]


def test_what_is_not_there_is_refused_with_a_sentence() -> None:
    documents = reader(session((B, 1, 5, "a")))
    nowhere = ("until=:", "until=b:1", f"until={uuid_text(B)}:2", f"until={uuid_text(B)}:0", f"until={uuid_text(A)}:1")
    for query in (*nowhere, f"at={EPOCH}", "at=soon", "at=nan", "place=0", "place=-1"):
        for path in ("document.json", "text.json"):
            status, told = ask(documents, path, query)
            assert (404, "no-entry") == (status, told["error"]), query
    assert "one of " in ask(documents, "document.json", "session=attic")[1]["mend"]
    status, told = ask(None, "text.json")
    assert (404, "this node has no documents") == (status, told["text"])


def test_entries_lines_and_what_is_folded_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = reader(session(*((B, number, number, "x" * 400) for number in range(1, 61))))
    first = f"until={uuid_text(B)}:30"
    shown = ask(documents, "document.json", first)[1]["entries"]
    assert (6, 55, 300) == (shown[0]["place"], shown[-1]["place"], len(shown[0]["body"]))
    monkeypatch.setattr(limits, "LINES_MAX", 2)
    told = ask(documents, "text.json", first)[1]
    assert (["doc", "show"], 7) == (told["lines"], told["more"])
    monkeypatch.setattr(limits, "FOLDED_MAX", 59)
    assert SMALLER == ask(documents, "text.json", first)[1]["mend"]
    assert "" == ask(documents, "text.json")[1]["error"]
