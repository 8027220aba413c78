"""A long refold goes on in slices, and readers have the last complete state meanwhile (DOC-053)."""

import pytest

from tests.document.fold.feeding import result_of, said
from tests.document.fold.test_engine import PLAIN, row, text
from weft.cores.document.fold.engine import Engine, fold


def long(count: int = 100) -> Engine:
    engine = Engine(PLAIN, undo=16, at_once=20)
    for operation in row("a", count):
        engine.insert([operation])
    assert not engine.is_behind
    return engine


@pytest.mark.proves("DOC-053")
def test_while_a_refold_goes_on_readers_have_the_state_before() -> None:
    engine = long()
    before = result_of(engine)
    engine.insert([said("b", 1, 30.5, "late", path="other")])
    shown = []
    while engine.is_behind:
        shown.append((engine.digest(), text(engine), engine.operations))
        engine.work(10)
    assert {(before.digest, "a100", 100)} == set(shown)
    assert ("a100late", 101) == (text(engine), engine.operations)


@pytest.mark.proves("DOC-053")
def test_no_slice_folds_more_than_it_may() -> None:
    engine, steps = long(), []
    engine.insert([said("b", 1, 30.5, "late")])
    while engine.is_behind:
        before = engine.replayed
        engine.work(10)
        steps.append(engine.replayed - before)
    assert max(steps) <= 10
    assert sum(steps) <= 2 * 70, "about twice as far back as the late one stands"


@pytest.mark.proves("DOC-053")
def test_what_is_late_by_little_is_taken_in_at_once() -> None:
    engine = long()
    engine.insert([said("b", 1, 90.5, "late")])
    assert not engine.is_behind


def test_what_comes_while_a_refold_goes_on_is_in_the_document_when_it_ends() -> None:
    engine = long()
    late = [said("b", 1, 30.5, "late", path="other")]
    engine.insert(late)
    engine.work(10)
    during = [
        said("c", 1, 500.0, "new", path="third"),
        said("b", 2, 33.0, "again", path="other"),
        said("d", 1, 2.0, "oldest"),
    ]
    for operation in during:
        engine.insert([operation])
        engine.work(10)
    engine.finish()
    assert result_of(fold(PLAIN, [*row("a", 100), *late, *during])) == result_of(engine)


def test_a_fork_decided_while_a_refold_goes_on_is_in_it() -> None:
    engine = long()
    engine.insert([said("b", 1, 30.5, "late", path="other")])
    engine.work(10)
    engine.replace(said("b", 1, 3.0, "winner", path="other"))
    engine.finish()
    assert "a100winner" == "".join(
        sorted((child.text for child in engine.root.children), key=lambda word: word != "a100")
    )


@pytest.mark.proves("DOC-053")
def test_a_start_with_a_long_log_goes_in_slices_too_and_after_it_the_engine_can_go_back() -> None:
    engine = Engine(PLAIN, undo=16, at_once=20)
    engine.insert(row("a", 100))
    assert (True, 0) == (engine.is_behind, engine.operations)
    engine.finish()
    engine.insert([said("b", 1, 90.5, "late", path="other")])
    assert (False, 101) == (engine.is_behind, engine.operations)
