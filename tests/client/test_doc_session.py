"""The client of documents and real sessions: what is entered is there, for everybody, and stays provable."""

from pathlib import Path
from typing import Any

import pytest

from tests.client.docsession import Desk, Hall, until
from tests.client.node import in_loop
from weft import doc


def client(desk: Desk) -> doc.Client:
    return doc.Client(desk.state)


def same(*desks: Desk) -> bool:
    return len({(desk.session.log.check, desk.session.engine.digest()) for desk in desks}) == 1


OTHER = "b0000000-0000-4000-8000-000000000001"
PENALTY = '<penalty team="home" person="123" code="B"/>'


@in_loop
@pytest.mark.proves("JAM-040")
async def test_what_is_entered_is_in_the_document_and_says_how_to_refer_to_it(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        told = await ann.add("period=1 jam=3", PENALTY)
        assert ("applied", 1, 1) == (told.outcome, told.sequence, len(told.eids))
        assert (await ann.set({"eid": told.eids[0]}, {"code": "C"})).is_applied
        xml = await ann.show("period=1 jam=3")
        assert f'<penalty code="C" eid="{told.eids[0]}" person="123" team="home"></penalty>' in xml
        assert "eid" not in await ann.show(eids=False)
        assert (await ann.remove({"eid": told.eids[0]})).is_applied
        assert '<jam number="3"></jam>' == await ann.show("period=1 jam=3")


@in_loop
async def test_words_are_entered_as_people_type_them(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        await ann.edit(
            "add", ["period=1", "jam=3", "penalty", "team=home", "person=123", "code=B", "lead", "team=home"]
        )
        await ann.edit("set", ["period=1", "jam=3", "duration=90", "team=x"])
        await ann.edit("set", ["path=venue"], text="Hall 5")
        await ann.edit("add", ["path=/", "note"], text="late")
        await ann.edit("add", ["team=home", '<person number="123" name="Ann Lee"/>'])
        await ann.edit("set", ["team=home", "person=123", "name=Bea"])
        xml = await ann.show(eids=False)
    assert '<jam duration="90" number="3" team="x"><penalty code="B" person="123" team="home"></penalty>' in xml
    assert '<lead team="home"></lead></jam>' in xml
    assert "<venue>Hall 5</venue><note>late</note>" in xml
    assert '<team id="home"><person name="Bea" number="123"></person></team>' in xml


@in_loop
@pytest.mark.parametrize(
    ("verb", "words", "code"),
    [
        ("set", [], "no-reference"),
        ("set", ["venue", "x=1"], "no-reference"),
        ("set", ["jam=3", "x=1"], "no-reference"),
        ("set", ["period=1"], "nothing-said"),
        ("set", ["period=1", "jam"], "bad-words"),
        ("set", ["period=1", "x=1", "x=2"], "bad-words"),
        ("add", ["period=1", "x=1"], "bad-words"),
        ("add", ["period=1", "<a>"], "bad-xml"),
        ("add", ["period=1", "<a>Boil <b>water</b> well.</a>"], "bad-xml"),
        ("add", ["period=1", "1x"], "bad-words"),
        ("add", ["period=1", "a b"], "bad-words"),
        ("set", ["period=1", "1x=3"], "bad-words"),
        ("remove", ["team=home", "person=4444"], "not-found"),
        ("remove", ["path=venue"], "not-found"),
        ("set", ["team=home", "person=4444", "name=Zoe"], "not-found"),
        ("add", ["eid=nobody", "note"], "not-found"),
        ("remove", ["period=1", "jam=3", "x=1"], "bad-words"),
        ("move", ["period=1"], "bad-verb"),
    ],
)
async def test_words_that_say_nothing_are_refused_and_nothing_is_logged(
    verb: str, words: list[str], code: str, tmp_path: Path
) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        with pytest.raises(doc.DocError) as caught:
            await ann.edit(verb, words)
        assert (code, True) == (caught.value.code, bool(caught.value.mend))
        assert 0 == (await ann.status())["operations"]


@in_loop
@pytest.mark.proves("GSP-013", "JAM-040")
async def test_an_entry_that_is_too_large_is_refused_as_such(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        with pytest.raises(doc.TooLarge):
            await ann.set("venue", text="x" * 70_000)
        with pytest.raises(doc.TooLarge):
            await ann.set("venue", text="x" * 5_000_000)
        assert 0 == (await ann.status())["operations"]


@in_loop
async def test_a_second_person_of_one_number_is_entered_only_by_force(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        await ann.edit("add", ["team=home", "person", "number=5", "name=A"])
        with pytest.raises(doc.DocError) as caught:
            await ann.edit("add", ["team=home", "person", "number=5", "name=B"])
        assert ("duplicate-key", True) == (caught.value.code, "team=home person=5" in caught.value.mend)
        await ann.edit("add", ["team=away", "person", "number=5", "name=C"])
        assert (await ann.edit("add", ["team=home", "person", "number=5", "name=B"], force=True)).is_applied


@in_loop
async def test_what_waits_is_listed_and_what_it_waits_for_releases_it(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        assert "parked" == (await ann.set({"eid": "e1"}, {"code": "D"}, force=True)).outcome
        assert [("eid=e1", 1)] == [(operation.reference, operation.sequence) for operation in await ann.parked()]
        await ann.add("path=/", '<note eid="e1"/>')
        assert [] == await ann.parked()
        assert ["applied", "applied"] == [operation.outcome async for operation in ann.log()]


@in_loop
@pytest.mark.proves("DOC-054")
async def test_the_history_of_an_element_says_who_wrote_what_and_what_was_before(tmp_path: Path) -> None:
    async with Hall(tmp_path, 2) as hall, client(hall.desks[0]) as ann, client(hall.desks[1]) as bob:
        await ann.set("period=1 jam=3", {"duration": 90}, by="Ann")
        await until(lambda: same(*hall.desks))
        await bob.set("period=1 jam=3", {"duration": 95}, by="Bob")
        told = await bob.element("period=1 jam=3")
    history = [past for past in told["history"] if past["attribute"] == "duration"]
    assert [("90", None, "Ann"), ("95", "90", "Bob")] == [
        (past["value"], past["before"], past["by"]) for past in history
    ]
    assert "/period[1]/jam[3]" == told["slot"]


@in_loop
async def test_two_clients_of_two_nodes_agree_and_see_each_other(tmp_path: Path) -> None:
    async with Hall(tmp_path, 2) as hall, client(hall.desks[0]) as ann, client(hall.desks[1]) as bob:
        await ann.add("period=1 jam=1", PENALTY)
        await bob.add("period=1 jam=1", PENALTY)
        await until(lambda: same(*hall.desks))
        assert await ann.digest() == await bob.digest()
        assert ["ACTIVE"] == [peer["state"] for peer in await ann.peers()]
        assert [("own", 1), ("active", 1)] == [(row["state"], row["latest"]) for row in await ann.sources()]
        status = await bob.status()
        assert (2, 1, 0) == (status["operations"], status["active"], status["alone_s"])


@in_loop
async def test_a_watch_tells_entries_of_others_what_they_did_and_chat(tmp_path: Path) -> None:
    async with Hall(tmp_path, 2) as hall, client(hall.desks[0]) as ann, client(hall.desks[1]) as bob:
        async with bob.watch() as watch:
            await ann.set("period=1 jam=3", {"duration": 90})
            change = await anext(watch)
            assert ([("set", "period=1 jam=3")], ["/period[1]/jam[3]"]) == (
                [(operation.verb, operation.reference) for operation in change.operations],
                change.added,
            )
            await ann.set("period=1 jam=3", {"duration": 95})
            assert ["/period[1]/jam[3]"] == (await anext(watch)).changed
            assert 1 == await ann.chat("hello")
            [event] = (await anext(watch)).events
            assert ("chat", "hello") == (event["event"], event["text"])
        assert ["hello"] == [said["text"] for said in await bob.chats()]


@in_loop
async def test_who_reads_slowly_is_told_everything_in_few_changes_and_the_last_state_last(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann, ann.watch() as watch:
        for number in range(60):
            await ann.set("period=1 jam=3", {"duration": number})
            hall.pass_by(0.1)
        changes = [await anext(watch)]
        while changes[-1].check != (await ann.digest())["check"]:
            changes.append(await anext(watch))
    seen = [operation.sequence for change in changes for operation in change.operations]
    assert (list(range(1, 61)), True) == (seen, len(changes) <= 10)


@in_loop
async def test_a_watch_whose_program_is_silent_is_forgotten(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann, ann.watch():
        serving = hall.desks[0].session.serving
        assert {"watchers": 1} == serving.facts()
        hall.pass_by(29)
        assert {"watchers": 1} == serving.facts()
        hall.pass_by(2)
        assert {"watchers": 0} == serving.facts()


@in_loop
async def test_a_watch_that_is_left_is_forgotten(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        async with ann.watch():
            pass
        await ann.status()
        assert {"watchers": 0} == hall.desks[0].session.serving.facts()


@in_loop
@pytest.mark.proves("GSP-003")
async def test_an_entry_below_a_later_one_says_whose_that_is_and_force_writes_above(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        ahead = hall.now().wall / 1e9 + 1_000  # tidy: the wire has seconds as doubles
        body = f'<set path="venue" source="{OTHER}" timestamp="{ahead!r}" sequence="1">far</set>'
        assert 1 == (await ann.bring([body.encode()]))["taken"]
        told = await ann.set("venue", text="near")
        assert ("applied-but-hidden", f"{OTHER}:1", "far") == (told.outcome, told.hidden_by, told.hidden_value)
        assert (await ann.set("venue", text="near", force=True)).is_applied
        assert "<venue" in await ann.show("venue")
        assert "near" in await ann.show("venue")


@in_loop
async def test_a_document_that_is_larger_than_an_answer_comes_whole(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        for number in range(12):
            await ann.add("path=/", f"<note>{number}{'x' * 60_000}</note>")
        xml = await ann.show()
        assert (12, True) == (xml.count("</note>"), len(xml) > 700_000)


@in_loop
@pytest.mark.proves("DOC-041", "JAM-040")
@pytest.mark.parametrize(
    ("side", "value", "result"), [("first", None, "1"), ("second", None, "2"), (None, "3", "3"), ("seen", None, "2")]
)
async def test_a_conflict_is_decided_for_everybody(side: Any, value: str | None, result: str, tmp_path: Path) -> None:
    async with Hall(tmp_path, 2) as hall, client(hall.desks[0]) as ann, client(hall.desks[1]) as bob:
        hall.cut = True
        await ann.set("period=1 jam=3", {"duration": 1})
        hall.pass_by(1)  # their clocks differ by how long it takes to say the time
        await bob.set("period=1 jam=3", {"duration": 2})
        hall.cut = False
        hall.pass_by(20)
        await until(lambda: same(*hall.desks))
        [conflict] = await ann.conflicts()
        assert ("set-set", "duration", "1", "2") == (
            conflict.kind,
            conflict.attr,
            conflict.first[2],
            conflict.second[2],
        )
        assert (await ann.resolve(conflict.id[:6], side, value=value)).resolved
        await until(lambda: same(*hall.desks))
        assert [] == await bob.conflicts()
        assert [False] == [one.open for one in await bob.conflicts(closed=True)]
        assert f'duration="{result}"' in await bob.show("period=1 jam=3")
        with pytest.raises(doc.DocError) as caught:
            await bob.resolve(conflict.id, "first")
        assert "not-open" == caught.value.code


@in_loop
@pytest.mark.proves("GSP-030")
async def test_what_was_answered_is_there_after_a_new_start_under_a_new_source(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        first = await ann.set("venue", text="Hall 5")
        before = await ann.digest()
        hall.desks[0].again()
        assert before == await ann.digest()
        second = await ann.set("venue", text="Hall 6")
        assert (1, True) == (second.sequence, first.source != second.source)


async def quarrel(hall: Hall, ann: doc.Client, bob: doc.Client, kind: str) -> doc.Conflict:
    """Both do at once what gets into each other's way; the conflict, when both know of it."""
    hall.cut = kind != "lost-edit"
    if kind == "duplicate-key":
        await ann.add("team=home", '<person number="12" name="Ann"/>')
        hall.pass_by(1)  # as above
        await bob.add("team=home", '<person number="12" name="Bea"/>')
    elif kind == "single":
        await ann.add("period=1 jam=3", '<lead team="home"/>')
        hall.pass_by(1)
        await bob.add("period=1 jam=3", '<lead team="away"/>')
    else:
        [eid] = (await ann.add("period=1 jam=3", PENALTY)).eids
        await until(lambda: same(*hall.desks))
        hall.cut = True
        await ann.remove({"eid": eid})
        hall.pass_by(1)
        await bob.set({"eid": eid}, {"code": "C"})
    hall.cut = False
    hall.pass_by(20)
    await until(lambda: same(*hall.desks))
    [conflict] = await ann.conflicts()
    return conflict


@in_loop
@pytest.mark.proves("DOC-041")
@pytest.mark.parametrize(
    ("kind", "side", "value", "has", "has_not"),
    [
        ("duplicate-key", "first", None, "Ann", "Bea"),
        ("duplicate-key", "second", None, "Bea", "Ann"),
        ("duplicate-key", None, "13", 'name="Bea" number="13"', "nobody"),
        ("duplicate-key", "seen", None, 'name="Bea" number="12"', "nobody"),
        ("single", "first", None, '<lead team="home">', '<lead team="away">'),
        ("single", "second", None, '<lead team="away">', '<lead team="home">'),
        ("single", "seen", None, '<lead team="home"></lead><lead team="away">', "nobody"),
        ("lost-edit", "first", None, "<jam", "penalty"),
        ("lost-edit", "seen", None, "<jam", "penalty"),
    ],
)
async def test_every_kind_of_conflict_can_be_decided(  # tidy: a row of the table
    kind: str, side: Any, value: str | None, has: str, has_not: str, tmp_path: Path
) -> None:
    async with Hall(tmp_path, 2) as hall, client(hall.desks[0]) as ann, client(hall.desks[1]) as bob:
        conflict = await quarrel(hall, ann, bob, kind)
        assert kind == conflict.kind
        assert (await bob.resolve(conflict.id, side, value=value)).resolved
        await until(lambda: same(*hall.desks))
        assert [] == await ann.conflicts()
        xml = await ann.show(eids=False)
        assert (True, False) == (has in xml, has_not in xml)


@in_loop
@pytest.mark.parametrize(("kind", "side", "value"), [("single", None, "x"), ("lost-edit", "second", None)])
async def test_a_decision_that_is_none_is_refused_and_the_conflict_stays_open(
    kind: str, side: Any, value: str | None, tmp_path: Path
) -> None:
    async with Hall(tmp_path, 2) as hall, client(hall.desks[0]) as ann, client(hall.desks[1]) as bob:
        conflict = await quarrel(hall, ann, bob, kind)
        with pytest.raises(doc.DocError) as caught:
            await ann.resolve(conflict.id, side, value=value)
        assert "bad-choice" == caught.value.code
        assert [conflict] == await ann.conflicts()


@in_loop
@pytest.mark.proves("GSP-054")
async def test_who_may_not_enter_is_told_so_and_may_not_bring_anything_in_either(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall, client(hall.desks[0]) as ann:
        seen: list[tuple[str, str, str]] = []

        def authorise(by: str, verb: str, reference: dict[str, str]) -> str:
            seen.append((by, verb, reference.get("path", "")))
            return "only referees"

        hall.desks[0].session.own.authorise = authorise
        body = f'<set path="venue" source="{OTHER}" timestamp="1" sequence="1">x</set>'.encode()
        for doing in (ann.set("venue", text="x"), ann.bring([body])):
            with pytest.raises(doc.NotAllowed) as caught:
                await doing
            assert "only referees" == caught.value.text
        assert [("Ann", "set", "venue")] * 2 == seen
        assert 0 == (await ann.digest())["operations"]
