"""What was entered is taken back, and that again, for each person (DOC-055)."""

import random
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.client.docsession import Desk, Hall, until
from tests.client.node import in_loop
from tests.client.test_doc_session import client, same
from weft import doc
from weft.wire.document.operations import parse


async def code(call: Any) -> str:
    with pytest.raises(doc.DocError) as caught:
        await call
    return str(caught.value.code)


async def plain(who: doc.Client, where: str = "path=/") -> Any:
    """A part of the document, whatever the order of siblings; a jam that comes back has an eid."""
    return _plain(ET.fromstring((await who.element(where))["xml"]))


def _plain(element: ET.Element) -> Any:
    hidden = ("eid",) if element.tag == "jam" else ()
    attributes = tuple(sorted((name, value) for name, value in element.attrib.items() if value and name not in hidden))
    return element.tag, attributes, (element.text or ""), tuple(sorted(map(_plain, element)))


def body_of(desk: Desk, sequence: int) -> str:
    return desk.session.log.body(desk.session.context.uuid, sequence).decode()


@in_loop
@pytest.mark.proves("DOC-055")
async def test_a_value_is_as_it_was_and_as_it_was_set_again(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        await ann.set("period=1 jam=3", {"duration": 90, "lead": "home"})
        await ann.set("period=1 jam=3", {"duration": 95, "lead": "away"})
        undone = await ann.undo()
        assert (3, "applied", 2) == (undone.sequence, undone.outcome, int(undone.undoes.rpartition(":")[2]))
        jam = (await plain(ann, "period=1 jam=3"))[1]
        assert {"duration": "90", "lead": "home", "number": "3"} == dict(jam)
        await ann.redo()
        assert {"duration": "95", "lead": "away", "number": "3"} == dict((await plain(ann, "period=1 jam=3"))[1])
        operation = parse(body_of(hall.desks[0], 3).encode())
        assert ("set", (hall.desks[0].session.context.uuid, 2)) == (operation.verb, operation.undoes)


@in_loop
@pytest.mark.proves("DOC-055", part="what was added is removed, what was removed is added with the same eids")
async def test_elements_go_and_come_with_their_eids_and_all_that_was_in_them(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        added = await ann.add("team=home", '<person number="5" name="Ann"><note>a &lt; b</note></person>')
        await ann.set({"eid": added.eids[0]}, {"name": "Anna"})
        before = await plain(ann, "team=home")
        await ann.remove({"eid": added.eids[0]})
        await ann.undo()
        assert before == await plain(ann, "team=home")
        await ann.undo()
        await ann.undo()
        assert () == (await plain(ann, "team=home"))[3]
        for _ in range(3):
            await ann.redo()
        assert () == (await plain(ann, "team=home"))[3]
        assert "nothing-to-redo" == await code(ann.redo())
        await ann.undo()
        assert before == await plain(ann, "team=home")


@in_loop
@pytest.mark.proves("DOC-055", part="several things at once, in one entry")
async def test_an_entry_that_did_several_things_is_taken_back_by_one(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        await ann.add("path=/", '<note eid="e1">one</note>')
        await ann.add("path=/", '<note eid="e1"/><note eid="e2"/>', text="said")
        await ann.set("path=/", {"a": 1, "b": 2})
        before = await plain(ann)
        await ann.add("path=/", '<note eid="e3"/><venue eid="e4"><city>X</city></venue>', text=" more")
        assert ["applied"] * 3 == (await ann.undo()).outcome.split(",")
        assert (before, "<action ") == (await plain(ann), body_of(hall.desks[0], 5)[:8])
        await ann.redo()
        assert "said more" in (await plain(ann))[2]


@in_loop
@pytest.mark.proves("DOC-055", part="refused as superseded if others wrote since, unless forced")
async def test_what_another_has_written_over_is_refused_and_nothing_is_entered(tmp_path: Path) -> None:
    async with Hall(tmp_path, 2) as hall, client(hall.desks[0]) as ann, client(hall.desks[1]) as bob:
        note = (await ann.add("path=/", "<note/>", by="Ann")).eids[0]
        await ann.set({"eid": note}, {"code": "A"}, by="Ann")
        await until(lambda: same(*hall.desks))
        await bob.set({"eid": note}, {"code": "B"}, by="Bob")
        await until(lambda: same(*hall.desks))
        assert "superseded" == await code(ann.undo(by="Ann"))
        first = (await ann.tail(9))[0]
        assert "superseded" == await code(ann.undo(f"{first.source}:1", by="Ann"))
        assert 3 == (await ann.digest())["operations"]
        await ann.undo(by="Ann", force=True)
        assert ("code", "B") not in (await plain(ann, f"eid={note}"))[1]
        await until(lambda: same(*hall.desks))
        assert await ann.digest() == await bob.digest()


@in_loop
@pytest.mark.proves("DOC-055", part="per person, whichever node it was entered at")
async def test_each_person_takes_back_what_that_person_entered(tmp_path: Path) -> None:
    async with Hall(tmp_path, 2) as hall, client(hall.desks[0]) as ann, client(hall.desks[1]) as bob:
        await ann.set("period=1", {"a": 1}, by="Ann")
        await until(lambda: same(*hall.desks))
        await ann.set("period=1", {"b": 1}, by="Bob")
        await until(lambda: same(*hall.desks))
        assert "nothing-to-undo" == await code(bob.undo(by="Eve"))
        await bob.undo(by="Ann")
        await until(lambda: same(*hall.desks))
        assert {"b": "1", "number": "1"} == dict((await plain(ann, "period=1"))[1])
        await bob.undo(by="Bob")
        assert "nothing-to-undo" == await code(bob.undo(by="Bob"))
        await bob.redo(by="Ann")
        assert {"a": "1", "number": "1"} == dict((await plain(bob, "period=1"))[1])
        await bob.set("period=1", {"c": 1}, by="Ann")
        assert "nothing-to-redo" == await code(bob.redo(by="Ann"))


@in_loop
@pytest.mark.proves("DOC-055", part="what cannot be taken back")
async def test_what_is_not_there_or_has_gone_is_said(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        assert "nothing-to-undo" == await code(ann.undo())
        await ann.set("period=1 jam=3", {"duration": 90})
        for entry in ("zz:1", "a0000001:9", "a0000001", "a0:1", f"{'f' * 40}:1"):
            assert "not-found" == await code(ann.undo(entry))
        await ann.undo()
        assert "not-found" == await code(ann.element("period=1 jam=3"))
        assert ["applied", "applied"] == [one.outcome for one in await ann.tail(9)]


@in_loop
@pytest.mark.proves("DOC-055", part="whatever was entered")
async def test_all_of_it_taken_back_is_as_it_was_step_by_step_and_forth_again(tmp_path: Path) -> None:
    for seed in range(6):
        draw, place = random.Random(seed), tmp_path / str(seed)
        place.mkdir()
        async with Hall(place) as hall, client(hall.desks[0]) as ann:
            await ann.add("path=/", "".join(f'<note eid="n{i}" a="0">t</note>' for i in range(4)), by="Setter")
            states = [await plain(ann)]
            for number in range(8):
                await _one(ann, draw, number)
                states.append(await plain(ann))
            for expected in reversed(states[:-1]):
                await ann.undo()
                assert expected == await plain(ann), seed
            for expected in states[1:]:
                await ann.redo()
                assert expected == await plain(ann), seed


async def _one(ann: doc.Client, draw: random.Random, number: int) -> None:
    """Something that changes the document."""
    there = [one for one in range(4) if f"n{one}" in str(await plain(ann))]
    what, where = draw.choice(("set", "add", "remove", "text", "jam")), {"eid": f"n{draw.choice(there or [0])}"}
    if what == "jam" or not there:
        await ann.set(f"period=1 jam={draw.randint(1, 3)}", {"duration": number + 1})
    elif what == "set":
        await ann.set(where, {"a": number + 1})
    elif what == "add":
        await ann.add(where, f'<x eid="x{number}"><y/></x>')
    elif what == "text":
        await ann.add(where, text=f" {number}")
    else:
        await ann.remove(where)
