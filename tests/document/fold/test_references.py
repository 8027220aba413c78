"""Which element a reference means, what is made by it, and what waits (DOC-020, DOC-021)."""

import pytest

from tests.document.fold.words import DERBY, PLAIN, Desk, eid, source_of
from weft.cores.document.fold.schema import Schema

NOTE = f'<note eid="{eid(1)}"/>'


def waiting(desk: Desk) -> list[tuple[str, ...]]:
    """What steps wait for, by key."""
    return [parked.trigger for parked in desk.fold.parked_steps()]


@pytest.mark.proves("DOC-020")
@pytest.mark.parametrize(
    ("reference", "outcome"),
    [
        ('period="1"', "applied"),
        ('period=" 9 " jam="\t999"', "applied"),
        ('period="10"', "inert:bad-key"),
        ('period="01"', "inert:bad-key"),
        ('period="one"', "inert:bad-key"),
        ('period="1" jam=""', "inert:bad-key"),
        ('period="1" jam="99999999999999999999"', "inert:bad-key"),
        ('team="home"', "applied"),
        ('team="Home"', "inert:unknown-team"),
        ('jam="1"', "inert:no-reference"),
        ('person="1"', "inert:no-reference"),
        ("", "inert:no-reference"),
        ('team="home" person="12"', "parked"),
        ('eid="" period="1"', "parked"),
        ('path=""', "applied"),
        ('path="/"', "applied"),
        ('path="bout"', "applied"),
        ('path="/bout"', "applied"),
        ('path=" venue "', "applied"),
        ('path="a/b/c/d/e/f/g/h"', "parked"),
        ('path="a/b/c/d/e/f/g/h/i"', "inert:bad-path"),
        ('path="a//b"', "inert:bad-path"),
        ('path="a/b c"', "inert:bad-path"),
        ('path="../b"', "inert:bad-path"),
        ('path="team/person"', "parked"),
        ('path="period/jam"', "parked"),
    ],
)
def test_what_becomes_of_a_set_by_its_reference(reference: str, outcome: str) -> None:
    desk = Desk()
    assert outcome == desk.set("a", reference, "x")
    assert desk.has(">x<") == (outcome == "applied")


@pytest.mark.proves("DOC-020")
def test_a_bad_key_makes_nothing_of_the_rest() -> None:
    desk = Desk()
    before = desk.document
    assert desk.set("a", 'period="3" jam="0"', "x") == "inert:bad-key"
    assert desk.set("a", 'period="3"', "<attribute>number</attribute>4") == "inert:bad-attribute"
    assert desk.set("a", 'path="leaf"', "<attribute>eid</attribute>4") == "inert:bad-attribute"
    assert before == desk.document


@pytest.mark.proves("DOC-020")
def test_a_jam_stands_before_the_first_of_a_larger_number_whatever_stands_between() -> None:
    desk = Desk()
    for number in (5, 2, 9):
        desk.set("a", f'period="1" jam="{number}"', "x")
        desk.add("a", 'period="1"', "<timeout/>")
    desk.set("a", 'period="1" jam="3"', "x")
    period = desk.fold.element_of({"period": "1"})
    assert period is not None
    shown = [child.attributes.get("number", "-") for child in period.children]
    assert ["2", "3", "5", "-", "-", "9", "-"] == shown


@pytest.mark.proves("DOC-020")
def test_a_person_is_found_by_number_before_any_is_found_by_name() -> None:
    desk = Desk()
    desk.add("a", 'team="home"', f'<person eid="{eid(1)}" name="12"/><person eid="{eid(2)}" number="12"/>')
    found = desk.fold.element_of({"team": "home", "person": " 12 "})
    assert found is not None
    assert found.eid == eid(2)
    desk.set("a", f'eid="{eid(2)}"', "<attribute>number</attribute>13")
    found = desk.fold.element_of({"team": "home", "person": "12"})
    assert found is not None
    assert found.eid == eid(1)
    assert desk.fold.element_of({"team": "away", "person": "12"}) is None


@pytest.mark.proves("DOC-020")
def test_of_two_of_one_number_the_first_is_meant_also_after_renaming() -> None:
    desk = Desk()
    for number in (1, 2, 3):
        desk.add("a", 'team="home"', f'<person eid="{eid(number)}" number="{number}"/>')
    for number in (3, 1):
        desk.set("a", f'eid="{eid(number)}"', "<attribute>number</attribute>7")
    found = desk.fold.element_of({"team": "home", "person": "7"})
    assert found is not None
    assert found.eid == eid(1)
    desk.remove("a", f'eid="{eid(1)}"')
    found = desk.fold.element_of({"team": "home", "person": "7"})
    assert found is not None
    assert found.eid == eid(3)


@pytest.mark.proves("DOC-021")
def test_who_waits_for_an_eid_is_released_when_it_becomes_live() -> None:
    desk = Desk()
    assert desk.set("b", f'eid="{eid(1).upper()}"', "x") == "parked"
    assert [("eid", eid(1))] == waiting(desk)
    desk.add("a", 'path=""', f'<note eid="{eid(1)}"/>')
    assert desk.has(f'<note eid="{eid(1)}">x</note>')
    assert desk.fold.outcomes[source_of("b"), 1] == ["parked"]
    assert desk.present("b") == "applied"
    assert waiting(desk) == []


@pytest.mark.proves("DOC-021")
def test_who_waits_for_a_jam_by_its_other_name_is_released_by_a_merge() -> None:
    desk = Desk()
    desk.set("b", f'eid="{eid(2)}"', "<attribute>q</attribute>1")
    desk.set("a", 'period="1" jam="1"', "<attribute>timestamp</attribute>5")
    desk.add("a", 'period="1"', f'<jam eid="{eid(2)}" number="1"/>')
    assert desk.has(f'<jam eid="{eid(2)}" number="1" q="1" timestamp="5"></jam>')


@pytest.mark.proves("DOC-021")
def test_released_steps_are_done_in_the_order_of_keys_and_not_of_arrival() -> None:
    desk = Desk()
    for letter, at in (("c", 3.0), ("b", 2.0), ("a", 1.0)):
        desk.add(letter, f'eid="{eid(1)}"', letter, at=at)
    desk.add("d", 'path=""', f'<note eid="{eid(1)}"/>', at=9.0)
    assert desk.has(">abc</note>")


@pytest.mark.proves("DOC-021")
def test_what_a_round_releases_is_for_the_next_round() -> None:
    desk = Desk()
    desk.add("a", f'eid="{eid(2)}"', "<c/>", at=1.0)
    desk.add("b", f'eid="{eid(1)}"', f'<b eid="{eid(2)}"/>', at=2.0)
    desk.set("c", f'eid="{eid(2)}"', "<attribute>q</attribute>1", at=3.0)
    desk.add("d", 'path=""', NOTE, at=4.0)
    assert (["applied"] * 3) == [desk.present(letter) for letter in "abc"]
    assert waiting(desk) == []


@pytest.mark.proves("DOC-021")
def test_a_step_is_tried_again_with_others_that_change_what_it_looks_for() -> None:
    """All steps that wait below a team are out at once: an earlier one may rename whom a later one means."""
    desk = Desk()
    desk.set("a", f'eid="{eid(1)}"', "<attribute>number</attribute>3", at=1.0)
    desk.remove("b", 'team="home" person="3"', at=2.0)
    desk.set("c", 'team="home" person="4"', "<attribute>q</attribute>1", at=3.0)
    desk.add("d", 'team="home"', f'<person eid="{eid(1)}" number="4"/>', at=4.0)
    assert ("applied", "applied", "parked") == tuple(desk.present(letter) for letter in "abc")
    assert not desk.has("<person")


@pytest.mark.proves("DOC-021")
def test_who_waits_for_a_path_waits_for_the_first_tag_that_is_missing() -> None:
    desk = Desk()
    desk.set("b", 'path="venue/city/street"', "x")
    assert [("tag", "venue")] == waiting(desk)
    desk.add("a", 'path=""', f'<venue eid="{eid(1)}"/>')
    assert [("tag", "city")] == waiting(desk)
    desk.add("a", f'eid="{eid(1)}"', "<city/>")
    assert desk.has("<street>x</street>")


@pytest.mark.proves("DOC-020")
def test_plain_documents_have_no_short_references() -> None:
    desk = Desk(PLAIN)
    assert desk.set("a", 'team="home"', "x") == "inert:no-reference"
    assert desk.set("a", 'path="doc"', "x") == "applied"
    assert desk.document == "<doc>x</doc>"


@pytest.mark.proves("DOC-040")
def test_slots_lead_back_to_their_elements() -> None:
    desk = Desk()
    desk.set("a", 'period="1" jam="3"', "x")
    desk.set("a", 'path="venue"', "x")
    desk.add("a", 'path=""', f"<note eid='{eid(1)}'><venue/></note><venue/>")
    fold = desk.fold
    slots = [fold.slot_of(element) for element in fold.root.subtree()]
    assert slots[:8] == [
        "/",
        "/team[home]",
        "/team[away]",
        "/team[official]",
        "/period[1]",
        "/period[1]/jam[3]",
        "/period[2]",
        "/venue[#1]",
    ]
    assert list(fold.root.subtree()) == [fold.element_at(slot) for slot in slots]
    assert fold.element_at(eid(1)) is fold.element_at(f"eid:{eid(1)}")
    for nowhere in ("/venue[#3]", "/venue[#x]", "/jam[3]", "/period[7]/jam[1]", "nobody"):
        assert fold.element_at(nowhere) is None


NESTED = """
name = "tour"
root = "tour"
[[chain]]
ref = "day"
tag = "day"
keys = ["number"]
create = true
max = 9
[[chain.sub]]
ref = "stop"
tag = "stop"
keys = ["name"]
[[chain.sub.sub]]
ref = "guest"
tag = "guest"
keys = ["number", "name"]
[[chain.sub]]
ref = "bus"
tag = "bus"
keys = ["id"]
fixed = true
"""


@pytest.mark.proves("DOC-003", "DOC-020", "DOC-021")
def test_a_step_below_what_is_not_there_yet_waits_and_makes_nothing() -> None:
    desk = Desk(Schema.load(NESTED))
    assert desk.set("a", 'day="3" stop="Rome" guest="1"', "x") == "parked"
    assert desk.set("a", 'day="3" bus="1"', "x") == "inert:unknown-bus"
    assert desk.remove("a", 'day="3" stop="Rome"') == "inert:absent"
    assert desk.document == "<tour></tour>"
    desk.add("b", 'day="3"', f'<stop eid="{eid(1)}" name="Rome"/>')
    assert desk.present("a") == "parked"
    desk.add("b", 'day="3" stop="Rome"', f'<guest eid="{eid(2)}" name="1"/>')
    assert desk.has('name="1">x</guest>')


@pytest.mark.proves("DOC-003")
def test_the_same_schema_is_the_same_for_all() -> None:
    assert Schema.load("derby") is DERBY
    assert DERBY.references == {"period": {"jam": {}}, "team": {"person": {}}}
