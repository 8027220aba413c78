"""Taking back gives what was before, tables and all; a copy is independent (DOC-051; property 3)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.document.fold.mixes import Mix
from tests.document.fold.test_vectors import shown
from tests.document.fold.words import DERBY, Desk, eid
from weft.cores.document.fold import state
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.tree import Element
from weft.wire.document.operations import Operation, parse

SEEDS = st.integers(0, 1 << 32)


def everything(fold: Fold) -> dict[str, Any]:
    """What a fold shows, and what it knows in order to go on."""
    elements = list(fold.root.subtree())
    for element in elements:
        look_through(element)
    knows = {
        "writers": [
            sorted((name, last.source, last.sequence, last.value) for name, last in (element.writers or {}).items())
            for element in elements
        ],
        "aliases": [list(element.aliases or []) for element in elements],
        "places": {
            name: fold.slot_of(conflict.place) for name, conflict in fold.found.items() if conflict.place in elements
        },
    }
    return {**shown(fold), **knows}


def look_through(element: Element) -> None:
    """Siblings hang together both ways, and whoever looks for them by tag or key finds the same."""
    children = element.children
    assert [None, *children][:-1] == [child.previous for child in children] if children else element.last is None
    assert all(child.parent is element and child.depth == element.depth + 1 for child in children)
    for tag, kin in (element.kin or {}).items():
        same = [child for child in children if child.tag == tag]
        assert same == kin.elements
        for key, table in zip(kin.keys, kin.by, strict=True):
            values = dict.fromkeys(child.attributes[key] for child in same if key in child.attributes)
            assert table == {value: [child for child in same if child.attributes.get(key) == value] for value in values}


def operations_of(seed: int, count: int) -> list[Operation]:
    operations = [parse(body) for body in Mix(seed).bodies(count)]
    return sorted(operations, key=lambda each: (each.timestamp, each.source, each.sequence))


def apply_all(fold: Fold, operations: list[Operation]) -> None:
    for operation in operations:
        fold.apply(operation, operation.timestamp)


@pytest.mark.proves("DOC-051")
@given(seed=SEEDS, data=st.data())
def test_any_number_of_operations_is_taken_back_and_done_again(seed: int, data: st.DataObject) -> None:
    operations = operations_of(seed, 40)
    fold = Fold(DERBY)
    marks, states = [], []
    for operation in operations:
        marks.append(fold.mark())
        states.append(everything(fold))
        fold.apply(operation, operation.timestamp)
    last = everything(fold)
    for _ in range(3):
        back = data.draw(st.integers(0, len(operations) - 1))
        fold.rewind(marks[back])
        assert states[back] == everything(fold)
        apply_all(fold, operations[back:])
        assert last == everything(fold)
    fold.rewind(0)
    assert everything(Fold(DERBY)) == everything(fold)


@pytest.mark.proves("DOC-051")
@given(seed=SEEDS)
@settings(max_examples=20)
def test_a_copy_goes_its_own_way(seed: int) -> None:
    operations = operations_of(seed, 40)
    fold = Fold(DERBY)
    apply_all(fold, operations[:20])
    mark, middle = fold.mark(), everything(fold)
    twin = fold.copy()
    assert middle == everything(twin)
    start = twin.mark()
    apply_all(twin, operations[20:])
    assert middle == everything(fold)
    apply_all(fold, operations[20:])
    assert everything(twin) == everything(fold)
    twin.rewind(start)
    assert middle == everything(twin)
    fold.rewind(mark)
    assert middle == everything(fold)
    fold.rewind(0)
    assert middle == everything(twin)


@pytest.mark.proves("DOC-051")
def test_a_copy_made_after_something_was_taken_back_shares_nothing() -> None:
    """What is empty again by taking back was one list for both."""
    desk = Desk()
    desk.set("a", 'period="1" jam="1"', "x")
    desk.add("a", 'period="1"', f'<jam eid="{eid(1)}" number="1"/>')
    mark = desk.fold.mark()
    merging = desk.operation("b", "add", 'period="1"', f'<jam eid="{eid(2)}" number="1" q="1"/>')
    desk.fold.apply(merging, merging.timestamp)
    desk.fold.rewind(mark)
    twin, before = desk.fold.copy(), everything(desk.fold)
    twin.apply(merging, merging.timestamp)
    assert before == everything(desk.fold)
    desk.fold.apply(merging, merging.timestamp)
    assert everything(twin) == everything(desk.fold)


def test_marks_stay_valid_when_older_ones_are_forgotten() -> None:
    desk = Desk()
    desk.set("a", 'path="x"', "1")
    first = desk.fold.mark()
    desk.set("a", 'path="x"', "2")
    second = desk.fold.mark()
    desk.set("a", 'path="x"', "3")
    assert 0 < first < second < desk.fold.mark()
    desk.fold.forget(first)
    desk.fold.rewind(second)
    assert desk.has("<x>2</x>")
    desk.fold.rewind(first)
    assert desk.has("<x>1</x>")
    with pytest.raises(AssertionError):
        desk.fold.rewind(0)


def test_what_was_touched_since_a_mark() -> None:
    desk = Desk()
    desk.add("a", 'path=""', f'<note eid="{eid(1)}"/>')
    mark = desk.fold.mark()
    desk.set("a", f'eid="{eid(1)}"', "x")
    desk.set("a", 'period="1" jam="2"', "x")
    touched = dict.fromkeys(desk.fold.slot_of(element) for element in desk.fold.touched(mark))
    assert [f"eid:{eid(1)}", "/", "/period[1]/jam[2]", "/period[1]"] == list(touched)


# Canaries: each of these mistakes is noticed by the property above


def forgets_alias(real: Callable[..., None]) -> Callable[..., None]:
    def undo(fold: Any, element: Any, name: str, removed: Any, is_first: bool) -> None:
        real(fold, element, name, removed, is_first)
        fold.live[name] = element

    return undo


def does_nothing(_: Callable[..., None]) -> Callable[..., None]:
    return lambda *_: None


@pytest.mark.parametrize(
    ("name", "mistake"),
    [("_unalias", forgets_alias), ("_unreport", does_nothing), ("_reopen", does_nothing), ("_unpark", does_nothing)],
)
def test_a_planted_mistake_in_taking_back_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, mistake: Callable[[Callable[..., None]], Callable[..., None]]
) -> None:
    desk = Desk()
    desk.add("a", 'path=""', f'<note eid="{eid(1)}"/>')
    for letter in "ab":
        desk.set(letter, f'eid="{eid(1)}"', letter)
    (conflict,) = desk.fold.conflicts()
    mark, before = desk.fold.mark(), everything(desk.fold)
    with monkeypatch.context() as planted:
        planted.setattr(state, name, mistake(getattr(state, name)))
        desk.add("a", 'period="1"', f'<jam eid="{eid(2)}" number="1"/>')
        desk.set("a", f'eid="{eid(1)}" resolves="{conflict.id}"', "c")
        desk.set("b", f'eid="{eid(1)}"', "d")
        desk.set("b", f'eid="{eid(9)}"', "d")
        desk.fold.rewind(mark)
        assert before != everything(desk.fold)
