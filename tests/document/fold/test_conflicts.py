"""Who got into whose way (DOC-040, DOC-041)."""

import pytest

from tests.document.fold.words import BEGAN, Desk, eid
from weft.cores.document.fold.conflicts import APPENDED

NOTE = f'<note eid="{eid(1)}"/>'
HERE = f'eid="{eid(1)}"'
SLOT = f"eid:{eid(1)}"


def code(value: str) -> str:
    return f"<attribute>code</attribute>{value}"


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.add("a", 'path=""', NOTE)
    return made


@pytest.mark.proves("DOC-040")
@pytest.mark.parametrize(("later", "is_told"), [(0.0, True), (60.0, True), (60.001, False)])
def test_two_values_within_a_minute_are_told_and_the_later_counts(desk: Desk, later: float, is_told: bool) -> None:
    desk.set("a", HERE, code("C"), at=BEGAN + 100)
    desk.set("b", HERE, code("D"), at=BEGAN + 100 + later)
    assert [("set-set", SLOT, "code", "C", "D", True)] * is_told == desk.conflicts()
    assert desk.has('code="D"')


@pytest.mark.proves("DOC-040")
def test_the_same_value_the_same_source_and_another_slot_are_no_conflict(desk: Desk) -> None:
    desk.set("a", HERE, code("C"))
    desk.set("b", HERE, code("C"))
    desk.set("b", HERE, code("D"))
    desk.set("c", HERE, "<attribute>q</attribute>1")
    desk.set("c", HERE, "text")
    desk.add("d", HERE, "more")
    assert desk.conflicts() == []
    desk.set("d", HERE, "other")
    assert [("set-set", SLOT, "#text", "text", "other", True)] == desk.conflicts()


@pytest.mark.proves("DOC-040")
def test_a_merge_writes_too(desk: Desk) -> None:
    desk.add("a", 'period="1"', '<jam number="1" timestamp="1"/>')
    desk.set("b", 'period="1" jam="1"', "<attribute>timestamp</attribute>2")
    desk.add("c", 'period="1"', '<jam number="1" timestamp="3"/>')
    assert [("1", "2"), ("2", "3")] == [each[3:5] for each in desk.conflicts()]


@pytest.mark.proves("DOC-040")
def test_an_edit_of_what_somebody_else_removed_is_lost_and_told(desk: Desk) -> None:
    desk.remove("a", HERE)
    assert desk.set("a", HERE, "mine") == "inert:target-removed"
    assert desk.conflicts() == []
    assert desk.add("b", HERE, "theirs") == "inert:target-removed"
    assert [("lost-edit", SLOT, "add", "", "", True)] == desk.conflicts()


@pytest.mark.proves("DOC-040")
def test_a_number_that_two_gave_is_told_also_where_it_was_changed(desk: Desk) -> None:
    desk.add("a", 'team="home"', f'<person eid="{eid(2)}" number="1"/><person eid="{eid(3)}" number="1"/>')
    assert desk.conflicts() == []
    desk.add("b", 'team="away"', f'<person eid="{eid(4)}" number="1"/>')
    desk.add("b", 'team="home"', f'<person eid="{eid(5)}" number="2"/>')
    assert desk.conflicts() == []
    desk.set("b", f'eid="{eid(5)}"', "<attribute>number</attribute>1")
    assert [("duplicate-key", "/team[home]", "number", "1", "1", True)] == desk.conflicts()


@pytest.mark.proves("DOC-040")
def test_a_second_lead_of_another_is_told(desk: Desk) -> None:
    jam = 'period="1" jam="1"'
    for letter, number in (("a", 2), ("a", 3), ("b", 4)):
        desk.add(letter, jam, f'<lead eid="{eid(number)}"/>')
    expected = ("single", "/period[1]/jam[1]", "lead", f"eid:{eid(2)}", f"eid:{eid(4)}", True)
    assert [expected] == desk.conflicts()


@pytest.mark.proves("DOC-041")
def test_a_write_that_resolves_closes_it_and_is_no_conflict_itself(desk: Desk) -> None:
    desk.set("a", HERE, code("C"))
    desk.set("b", HERE, code("D"))
    (conflict,) = desk.fold.conflicts()
    desk.set("c", f'{HERE} resolves="{conflict.id}"', "<attribute>q</attribute>E")
    assert [False] == [each[5] for each in desk.conflicts()]


@pytest.mark.proves("DOC-041")
def test_two_who_resolve_it_differently_are_in_conflict_again(desk: Desk) -> None:
    desk.set("a", HERE, code("C"))
    desk.set("b", HERE, code("D"))
    (conflict,) = desk.fold.conflicts()
    desk.set("a", f'{HERE} resolves="{conflict.id}"', code("E"))
    assert [("C", "D", False)] == [each[3:] for each in desk.conflicts()]
    desk.set("b", f'{HERE} resolves="{conflict.id}"', code("F"))
    assert [("C", "D", False), ("E", "F", True)] == [each[3:] for each in desk.conflicts()]


@pytest.mark.proves("DOC-041")
def test_a_write_elsewhere_resolves_nothing(desk: Desk) -> None:
    desk.set("a", HERE, code("C"))
    desk.set("b", HERE, code("D"))
    (conflict,) = desk.fold.conflicts()
    desk.set("c", f'team="home" resolves="{conflict.id}"', code("E"))
    desk.set("c", f'{HERE} resolves="0123456789abcdef"', "<attribute>q</attribute>1")
    assert [True] == [each[5] for each in desk.conflicts()]


@pytest.mark.proves("DOC-041")
@pytest.mark.parametrize(
    ("verb", "reference", "inner"),
    [
        ("remove", f'eid="{eid(3)}"', ""),
        ("set", 'team="home" person="1"', "<attribute>number</attribute>9"),
        ("add", 'team="home"', ""),
    ],
)
def test_twins_are_settled_by_who_touches_one_or_says_that_it_is_well(verb: str, reference: str, inner: str) -> None:
    desk = Desk()
    desk.add("a", 'team="home"', f'<person eid="{eid(2)}" number="1"/>')
    desk.add("b", 'team="home"', f'<person eid="{eid(3)}" number="1"/>')
    (conflict,) = desk.fold.conflicts()
    assert desk.say("c", verb, f'{reference} resolves="{conflict.id}"', inner) == "applied"
    assert [False] == [each[5] for each in desk.conflicts()]


@pytest.mark.proves("DOC-041")
def test_a_lost_edit_is_settled_by_who_says_so(desk: Desk) -> None:
    desk.remove("a", HERE)
    desk.set("b", HERE, "x")
    (conflict,) = desk.fold.conflicts()
    assert desk.set("c", f'{HERE} resolves="{conflict.id}"', "x") == "inert:target-removed"
    assert [("lost-edit", False)] == [(each.kind, each.is_open) for each in desk.fold.conflicts()]


@pytest.mark.proves("DOC-054")
def test_who_wrote_what_is_known_with_all_before(desk: Desk) -> None:
    desk.set("a", HERE, code("C"))
    desk.set("b", HERE, code("D"))
    desk.add("b", HERE, "words")
    last = desk.fold.writer_of({"eid": eid(1)}, "code")
    assert last is not None
    assert last.previous is not None
    assert ("D", "C", "C", None) == (last.value, last.before, last.previous.value, last.previous.before)
    appended = desk.fold.writer_of({"eid": eid(1)}, APPENDED)
    assert appended is not None
    assert appended.value == "words"
    assert desk.fold.writer_of({"eid": eid(2)}, "code") is None
    assert desk.fold.writer_of({"path": "nowhere"}, "code") is None
