"""Who set what when, what was before (DOC-054), and what is different from the state that was delivered last."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.document.fold.feeding import Feed, copy_of, said, source_of
from tests.document.fold.mixes import Mix
from tests.document.fold.test_engine import PLAIN, row
from weft.cores.document.fold.changes import Delta
from weft.cores.document.fold.engine import Engine, fold
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.schema import Schema
from weft.cores.document.fold.tree import Element
from weft.wire.document.operations import parse

DERBY = Schema.load("derby")
EID = "e1000000-0000-4000-8000-000000000001"


def steps(engine: Engine, where: str) -> list[tuple[str, int, str, str, str | None, str]]:
    """Without the times, sources by their letter."""
    return [(past.source[:1].decode(), *past[2:]) for past in engine.history(where)]


def entered(letter: str, sequence: int, at: float, what: str, inner: str = "") -> bytes:
    """`what` is a verb and a reference."""
    source = source_of(letter).hex()
    verb, reference = what.split(" ", 1)
    return f'<{verb} {reference} source="{source}" timestamp="{at}" sequence="{sequence}">{inner}</{verb}>'.encode()


NOTE = [
    entered("a", 1, 1.0, 'add path=""', f'<note eid="{EID}" code="A">x</note>'),
    entered("a", 2, 2.0, f'set eid="{EID}"', "<attribute>code</attribute>B"),
    entered("b", 1, 3.0, f'add eid="{EID}"', "y"),
    entered("b", 2, 4.0, f'set eid="{EID}"', "<attribute>code</attribute>C"),
]


@pytest.mark.proves("DOC-054")
def test_the_history_of_an_element_says_who_what_and_what_was_before() -> None:
    engine = fold(PLAIN, map(parse, NOTE))
    expected = [
        ("a", 1, "#element", "note", None, "made"),
        ("a", 2, "code", "B", "A", "applied"),
        ("b", 1, "#text", "y", None, "added"),
        ("b", 2, "code", "C", "B", "applied"),
    ]
    assert expected == steps(engine, EID) == steps(engine, f"eid:{EID.upper()}")
    assert [1.0, 2.0, 3.0, 4.0] == [past.eff for past in engine.history(EID)]


@pytest.mark.proves("DOC-054")
def test_what_comes_late_stands_in_the_history_where_it_belongs() -> None:
    engine = Engine(PLAIN)
    engine.insert([parse(body) for body in NOTE])
    engine.insert([parse(entered("c", 1, 2.5, f'set eid="{EID}"', "<attribute>code</attribute>late"))])
    codes = [(who, value, before) for who, _, name, value, before, _ in steps(engine, EID) if name == "code"]
    assert [("a", "B", "A"), ("c", "late", "B"), ("b", "C", "late")] == codes


def test_of_what_was_removed_the_history_says_by_whom() -> None:
    engine = fold(PLAIN, map(parse, [*NOTE, entered("c", 1, 9.0, f'remove eid="{EID}"')]))
    assert [("c", 1, "#element", "", None, "removed")] == steps(engine, EID)
    assert [] == engine.history("e9999999-0000-4000-8000-000000000009")


def test_an_element_without_an_eid_is_known_by_its_place() -> None:
    jam = 'period="1" jam="3"'
    engine = fold(DERBY, [parse(entered("a", 1, 1.0, f"set {jam}", "<attribute>duration</attribute>90"))])
    assert [("a", 1, "#element", "jam", None, "made"), ("a", 1, "duration", "90", None, "applied")] == steps(
        engine, "/period[1]/jam[3]"
    )


def test_what_an_adopted_copy_did_stands_under_the_name_of_the_original() -> None:
    engine = fold(PLAIN, [copy_of("a", 1, ("d", 7), 5.0, "text")])
    assert [("d", 7, "#element", "note", None, "made"), ("d", 7, "#text", "text", "", "applied")] == steps(
        engine, "/note[#1]"
    )
    assert 5.0 == engine.history("/note[#1]")[0].eff


@pytest.mark.proves("GSP-003")
def test_the_last_writer_of_a_value_is_known_with_its_time() -> None:
    engine = fold(PLAIN, map(parse, NOTE))
    writer = engine.writer_of({"eid": EID}, "code")
    assert writer is not None
    assert (source_of("b"), 2, 4.0, "C") == (writer.source, writer.sequence, writer.eff, writer.value)
    assert None is engine.writer_of({"eid": EID}, "other") is engine.writer_of({"path": "nowhere"}, "code")


# Changes


@pytest.mark.proves("DOC-054")
def test_at_first_everything_is_added_and_then_only_what_is_different() -> None:
    engine = Engine(PLAIN)
    engine.insert([parse(body) for body in NOTE[:1]])
    assert Delta(added=("/", f"eid:{EID}")) == engine.changes()
    assert engine.changes().is_empty
    engine.insert([parse(body) for body in NOTE[1:]])
    assert Delta(changed=(f"eid:{EID}",)) == engine.changes()


@pytest.mark.proves("DOC-054")
def test_what_a_late_operation_takes_back_is_a_change() -> None:
    engine = Engine(PLAIN)
    removed = entered("b", 1, 9.0, f'remove eid="{EID}"')
    engine.insert([parse(NOTE[0]), parse(entered("a", 2, 5.0, f'add eid="{EID}"', f'<sub eid="{EID[:-1]}2"/>'))])
    engine.changes()
    engine.insert([parse(removed)])
    assert Delta(removed=(f"eid:{EID}", f"eid:{EID[:-1]}2")) == engine.changes()
    engine.replace(parse(entered("b", 1, 9.0, 'remove path="nothing"')))
    assert Delta(added=(f"eid:{EID}", f"eid:{EID[:-1]}2")) == engine.changes()


def test_a_sibling_that_is_known_by_its_number_is_renamed() -> None:
    engine = Engine(PLAIN)
    engine.insert([parse(NOTE[0]), said("c", 1, 2.0, "t", path="other/note"), said("c", 2, 2.0, "t", path="other")])
    engine.insert([said("c", 3, 2.0, "t", path="other/note")])
    before = dict.fromkeys(("/", f"eid:{EID}", "/other[#1]", "/other[#1]/note[#1]"))
    assert sorted(before) == sorted(engine.changes().added)
    engine.insert([parse(entered("a", 2, 1.5, 'add path=""', f'<other eid="{EID[:-1]}3"/>'))])
    delta = engine.changes()
    assert not delta.is_empty
    seen = sorted({*before, *delta.added} - {*delta.removed})
    assert seen == sorted(every_slot(engine))


def every_slot(engine: Engine) -> dict[str, tuple[str, dict[str, str]]]:
    return {engine.slot_of(each): (each.text, dict(each.attributes)) for each in engine.root.subtree()}


@pytest.mark.proves("DOC-054")
@given(seed=st.integers(0, 1 << 32), undo=st.sampled_from((4, 4_096)))
def test_the_changes_added_up_are_the_document(seed: int, undo: int) -> None:
    draw = Random(seed)
    arriving = [parse(body) for body in Mix(seed).bodies(30)]
    draw.shuffle(arriving)
    engine, feed = Engine(DERBY, undo=undo, at_once=15 if undo == 4 else 5_000), Feed()
    before: dict[str, tuple[str, dict[str, str]]] = {}
    while arriving:
        engine.insert(feed.take([arriving.pop() for _ in range(min(len(arriving), draw.randint(1, 6)))]))
        engine.finish()
        now, delta = every_slot(engine), engine.changes()
        expected = Delta(
            tuple(sorted(now.keys() - before.keys())),
            tuple(sorted(before.keys() - now.keys())),
            tuple(sorted(slot for slot in now.keys() & before.keys() if now[slot] != before[slot])),
        )
        assert expected == delta
        before = now


def test_a_small_change_in_a_large_document_looks_at_little(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(DERBY)
    engine.insert([parse(entered("a", n, float(n), 'add period="1" jam="1"', "<note/>")) for n in range(1, 301)])
    engine.changes()
    looked: list[str] = []
    slot_of = Fold.slot_of

    def watched(fold: Fold, element: Element) -> str:
        looked.append(element.tag)
        return slot_of(fold, element)

    monkeypatch.setattr(Fold, "slot_of", watched)
    engine.insert([parse(entered("b", 1, 250.5, 'set period="1" jam="1"', "late"))])
    assert Delta(changed=("/period[1]/jam[1]",)) == engine.changes()
    assert len(looked) < 120


def test_rows_are_what_the_other_files_take_them_for() -> None:
    assert "a3" == fold(PLAIN, row("a", 3)).root.children[0].text
