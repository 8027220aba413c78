"""What add, set, remove and action do (DOC-002, DOC-030 to DOC-035)."""

import pytest

from tests.document.fold.words import DERBY, Desk, eid, source_of
from weft.cores.document.fold import state
from weft.wire.document.operations import derived_eid

# add


@pytest.mark.proves("DOC-030")
def test_text_is_appended_and_elements_stand_behind_the_children() -> None:
    desk = Desk()
    desk.add("a", 'path=""', f'<note eid="{eid(1)}">a<x eid="{eid(2)}"/></note>')
    assert desk.add("b", f'eid="{eid(1)}"', f'b<y eid="{eid(3)}"/>') == "applied"
    assert desk.has(f'>ab<x eid="{eid(2)}"></x><y eid="{eid(3)}"></y></note>')


@pytest.mark.proves("DOC-030", "DOC-035")
def test_what_is_there_is_skipped_with_all_below_it() -> None:
    desk = Desk()
    desk.add("a", 'path=""', f'<note eid="{eid(1)}"/>')
    assert desk.add("b", 'path=""', f'<note eid="{eid(1)}"><x eid="{eid(2)}"/></note>') == "inert:nothing-new"
    assert desk.add("b", 'path=""', f'<note eid="{eid(3)}"><x eid="{eid(1)}"/></note>') == "applied"
    assert desk.has(f'<note eid="{eid(3)}"></note>')
    assert not desk.has(eid(2))


@pytest.mark.proves("DOC-030")
def test_what_was_removed_is_inserted_again() -> None:
    desk = Desk()
    desk.add("a", 'path=""', f'<note eid="{eid(1)}"><x eid="{eid(2)}">old</x></note>')
    desk.remove("a", f'eid="{eid(1)}"')
    desk.add("b", 'period="1" jam="1"', f'<x eid="{eid(2)}">new</x>')
    assert desk.has(f'<jam number="1"><x eid="{eid(2)}">new</x></jam>')
    assert desk.set("a", f'eid="{eid(1)}"', "x") == "inert:target-removed"


@pytest.mark.proves("DOC-030")
def test_two_who_make_the_same_jam_make_one_and_both_eids_mean_it() -> None:
    desk = Desk()
    desk.add("a", 'period="1"', f'<jam eid="{eid(1)}" number=" 4 " timestamp="10">x</jam>')
    desk.add("b", 'period="1"', f'<jam eid="{eid(2)}" number="4" duration="90">y<pass eid="{eid(3)}"/></jam>')
    expected = f'<jam duration="90" eid="{eid(1)}" number="4" timestamp="10">xy<pass eid="{eid(3)}"></pass></jam>'
    assert desk.has(expected)
    assert desk.fold.live[eid(1)] is desk.fold.live[eid(2)]
    desk.remove("a", f'eid="{eid(2)}"')
    assert desk.set("b", f'eid="{eid(1)}"', "x") == "inert:target-removed"
    assert {eid(1), eid(2), eid(3)} == set(desk.fold.gone)


@pytest.mark.proves("DOC-030")
@pytest.mark.parametrize("jam", ['number="0"', 'number="1000"', 'number="one"', ""])
def test_a_jam_without_a_good_number_is_skipped(jam: str) -> None:
    desk = Desk()
    before = desk.document
    assert desk.add("a", 'period="1"', f"<jam {jam}><pass/></jam>") == "inert:nothing-new"
    assert before == desk.document


@pytest.mark.proves("DOC-030")
def test_a_team_merges_and_an_unknown_one_is_skipped() -> None:
    desk = Desk()
    desk.add(
        "a", 'path=""', f'<team id="home" color="red"><person eid="{eid(1)}" number="1"/></team><team id="green"/>'
    )
    assert desk.has(f'<team color="red" eid="{derived_eid(source_of("a"), 1, "0/0")}" id="home"><person')
    assert not desk.has("green")


@pytest.mark.proves("DOC-030")
def test_a_jam_below_something_else_is_an_element_like_any_other() -> None:
    desk = Desk()
    desk.add("a", 'path=""', '<note><jam number="0"/><jam number="0"/></note>')
    assert desk.document.count("<jam ") == 2


@pytest.mark.proves("SEC-043", part="bounds of depth and number of a document")
@pytest.mark.proves("DOC-002", "DOC-030")
def test_a_document_gets_neither_too_deep_nor_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "DOCUMENT_DEPTH_MAX", 4)
    monkeypatch.setattr(state, "DOCUMENT_ELEMENTS_MAX", 12)
    desk = Desk()
    deep = f'<a eid="{eid(1)}"><b eid="{eid(2)}"><c eid="{eid(3)}"><d eid="{eid(4)}"><e/></d></c></b></a>'
    assert desk.add("a", 'path=""', deep) == "applied"
    assert desk.has("<d") is True
    assert desk.has("<e") is False
    assert desk.add("a", f'eid="{eid(4)}"', "<f/>") == "inert:too-big"
    assert desk.fold.count == 10
    assert desk.add("a", 'path=""', "<x/><x/><x/><x/>") == "applied"
    assert desk.fold.count == 12
    before = desk.document
    assert desk.set("a", 'period="1" jam="1"', "x") == "inert:too-big"
    assert desk.add("a", 'period="1" jam="1"', "x") == "inert:too-big"
    assert desk.set("a", 'path="leaf"', "x") == "inert:too-big"
    assert desk.add("a", 'path=""', '<period number="3"/>') == "inert:too-big"
    assert before == desk.document
    desk.remove("a", f'eid="{eid(3)}"')
    assert desk.set("a", 'period="3" jam="1"', "x") == "applied"


@pytest.mark.proves("DOC-031")
def test_a_copy_has_the_eids_of_its_original_and_counts_as_its_work() -> None:
    desk = Desk()
    body = 'path="" origsource="c0000000-0000-4000-8000-000000000003" origsequence="6"'
    desk.add("a", body, "<note/>")
    assert desk.has(f'<note eid="{derived_eid(source_of("c"), 6, "0/0")}"></note>')
    assert (source_of("c"), 6) == desk.fold.root.children[-1].origin


# set


@pytest.mark.proves("DOC-032")
@pytest.mark.parametrize(
    ("reference", "inner"),
    [
        ('period="1" jam="1"', "<attribute>number</attribute>2"),
        ('team="home"', "<attribute>id</attribute>x"),
        ('team="home"', "<attribute>eid</attribute>x"),
        ('team="home"', "<attribute>x:y</attribute>x"),
        ('team="home"', "<attribute>xmlns</attribute>x"),
        ('team="home"', "<attribute></attribute>x"),
        ('team="home"', '<attribute name="color">red</attribute><attribute name="id">x</attribute>'),
        ('team="home" attribute="1"', "x"),
    ],
)
def test_what_cannot_be_set_is_not_and_nothing_else_of_the_step_is(reference: str, inner: str) -> None:
    desk = Desk()
    desk.add("a", 'period="1" jam="1"', "x")
    before = desk.document
    assert desk.set("a", reference, inner) == "inert:bad-attribute"
    assert before == desk.document


@pytest.mark.proves("DOC-032")
def test_an_empty_value_is_a_value_and_the_key_of_a_person_can_be_set() -> None:
    desk = Desk()
    desk.add("a", 'team="home"', f'<person eid="{eid(1)}" number="1" name="x"/>')
    desk.set("a", 'team="home" person="1"', '<attribute name="name"/><attribute name="number">2</attribute>')
    assert desk.has(f'<person eid="{eid(1)}" name="" number="2"></person>')
    desk.set("a", 'team="home" person="2"')
    assert desk.has('number="2"></person>')


@pytest.mark.proves("DOC-032")
def test_text_is_set_verbatim_and_children_stay() -> None:
    desk = Desk()
    desk.add("a", 'path=""', f'<note eid="{eid(1)}">a<x eid="{eid(2)}"/></note>')
    desk.set("a", f'eid="{eid(1)}"', " b\n")
    assert desk.has(f'> b\n<x eid="{eid(2)}">')


# remove, action


@pytest.mark.proves("DOC-033")
def test_what_everybody_relies_on_cannot_be_removed() -> None:
    desk = Desk()
    desk.set("a", 'period="3"', "x")
    for reference in ('path=""', 'team="home"', 'period="1"', 'period="3"', 'path="team"'):
        assert desk.remove("a", reference) == "inert:fixed"
    assert desk.remove("a", 'period="4"') == "inert:absent"


@pytest.mark.proves("DOC-033")
def test_a_removed_jam_comes_back_empty_and_a_removed_leaf_is_made_again() -> None:
    desk = Desk()
    desk.add("a", 'period="1" jam="2"', "text<pass/>")
    desk.set("a", 'path="venue"', "x")
    desk.remove("a", 'period="1" jam="2"')
    desk.remove("a", 'path="venue"')
    desk.add("a", 'period="1" jam="2"')
    desk.set("a", 'path="venue"', "y")
    assert desk.has('<jam number="2"></jam>')
    assert desk.has("<venue>y</venue>")


@pytest.mark.proves("DOC-034")
def test_steps_of_an_action_are_done_in_order_and_wait_alone() -> None:
    desk = Desk()
    steps = (
        f'<add period="1" jam="1"><pass eid="{eid(1)}"/></add><hop/><set eid="{eid(2)}">x</set>'
        f'<remove eid="{eid(9)}"/><set eid="{eid(1)}">y</set><remove team="home"/>'
    )
    assert desk.say("a", "action", "", steps) == "applied,parked,parked,applied,inert:fixed"
    desk.add("b", 'path=""', f'<note eid="{eid(9)}"/>')
    assert desk.present("a") == "applied,parked,applied,applied,inert:fixed"
    assert desk.say("a", "action", "", "<hop/>") == ""


@pytest.mark.proves("DOC-035")
def test_a_trial_says_what_would_become_of_an_operation_and_changes_nothing() -> None:
    desk = Desk()
    desk.set("b", f'eid="{eid(1)}"', "x")
    before = (desk.document, dict(desk.fold.outcomes), desk.fold.parked())
    for verb, reference, inner, outcome in (
        ("add", 'path=""', f'<note eid="{eid(1)}"/>', "applied"),
        ("set", 'period="0"', "", "inert:bad-key"),
        ("remove", f'eid="{eid(7)}"', "", "parked"),
    ):
        operation = desk.operation("c", verb, reference, inner)
        assert [outcome] == desk.fold.trial(operation, operation.timestamp)
        assert before == (desk.document, dict(desk.fold.outcomes), desk.fold.parked())


@pytest.mark.proves("DOC-003")
def test_a_new_fold_is_genesis() -> None:
    assert DERBY.canonical_genesis == Desk().document.encode()
