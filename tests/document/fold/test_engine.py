"""What is late is taken in where it belongs, at the cost of how late it is (DOC-051, DOC-052, DOC-060)."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.document.fold.feeding import copy_of, result_of, said, source_of
from tests.document.fold.mixes import Mix
from weft.cores.document.fold.engine import Engine, fold
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.schema import Schema
from weft.cores.document.fold.track import Checkpoints, Track
from weft.wire.document.operations import Operation, parse

PLAIN = Schema.load("plain")


def row(letter: str, count: int, *, start: float = 0.0, step: float = 1.0) -> list[Operation]:
    """A source that sets a note again and again."""
    return [said(letter, number, start + number * step, f"{letter}{number}") for number in range(1, count + 1)]


def text(engine: Engine) -> str:
    return "".join(child.text for child in engine.root.children)


@pytest.mark.proves("DOC-051")
def test_what_is_late_by_three_takes_back_three() -> None:
    engine = Engine(PLAIN)
    engine.insert(row("a", 10))
    engine.insert([said("b", 1, 7.5, "late", path="other")])
    assert (3, "a10late") == (engine.replayed, text(engine))


@pytest.mark.proves("DOC-052")
def test_what_arrives_together_is_taken_in_with_one_rewind(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, rewinds, rewind = Engine(PLAIN), [], Fold.rewind
    engine.insert(row("a", 10))

    def counted(fold: Fold, mark: int) -> None:
        rewinds.append(mark)
        rewind(fold, mark)

    monkeypatch.setattr(Fold, "rewind", counted)
    engine.insert(row("b", 10, start=0.5))
    assert (1, 9, "b10") == (len(rewinds), engine.replayed, text(engine))


@pytest.mark.proves("DOC-052")
def test_two_partitions_merge_at_the_cost_of_two_full_folds_at_most() -> None:
    ours, theirs = row("a", 300), row("b", 300, start=0.5)
    engine = Engine(PLAIN, undo=50, at_once=100)
    engine.insert(ours)
    engine.finish()
    before = engine.replayed
    for at in range(0, 300, 50):
        engine.insert(theirs[at : at + 50])
    engine.finish()
    assert engine.replayed - before <= 300
    assert result_of(fold(PLAIN, [*theirs, *ours])) == result_of(engine)


def test_the_winner_of_a_fork_counts_whether_it_is_known_before_or_after() -> None:
    loser, winner = said("a", 2, 2.0, "loser"), said("a", 2, 5.0, "winner")
    others = [said("a", 1, 1.0, "one"), said("b", 1, 4.0, "other")]
    early, late = Engine(PLAIN), Engine(PLAIN)
    early.replace(winner)
    early.insert([*others, loser])
    late.insert([*others, loser])
    late.replace(winner)
    assert "winner" == text(early) == text(late)
    assert result_of(fold(PLAIN, [*others, winner])) == result_of(early) == result_of(late)


@pytest.mark.proves("DOC-013")
def test_a_copy_is_withdrawn_when_the_original_comes() -> None:
    engine = Engine(PLAIN)
    engine.insert([copy_of("a", 1, ("d", 1), 5.0), said("b", 1, 6.0, "b", path="other")])
    assert "applied" == engine.outcome(source_of("a"), 1)
    engine.insert([said("d", 1, 5.0)])
    assert "inert:superseded" == engine.outcome(source_of("a"), 1)
    assert "applied" == engine.outcome(source_of("d"), 1)


def test_what_is_not_in_the_document_yet_has_no_outcome() -> None:
    assert "" == Engine(PLAIN).outcome(source_of("a"), 1)


def test_nothing_new_changes_nothing() -> None:
    engine = Engine(PLAIN)
    engine.insert(row("a", 3))
    before = result_of(engine)
    engine.insert(row("a", 3))
    engine.insert([])
    assert (before, 0) == (result_of(engine), engine.replayed)


@pytest.mark.proves("DOC-051", "DOC-060")
@given(count=st.integers(1, 150), every=st.integers(1, 8))
def test_of_any_age_there_is_a_checkpoint_at_most_twice_as_old_and_few_in_all(count: int, every: int) -> None:
    checkpoints, schema_fold = Checkpoints(PLAIN, every), Fold(PLAIN)
    for place in range(every, count * every + 1, every):
        checkpoints.offer(place, schema_fold, place)
    end = count * every
    places = [0, *checkpoints.places()]
    for age in range(every, end + 1, every):
        oldest = max(place for place in places if place <= end - age)
        assert end - oldest <= 2 * age or (oldest == 0 and end <= 2 * age) or end - oldest <= 2 * age + every
    assert len(places) <= 3 + 2 * count.bit_length()


def test_a_large_document_is_copied_no_more_often_than_it_grows() -> None:
    checkpoints, large = Checkpoints(PLAIN, 4), Fold(PLAIN)
    large.count = 8
    for place in range(4, 41, 4):
        checkpoints.offer(place, large, place)
    assert [16, 32] == [place for place in checkpoints.places() if place % 16 == 0]
    assert all(place % 16 == 0 for place in checkpoints.places())


@pytest.mark.proves("DOC-051")
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=40)
def test_going_back_and_forward_again_changes_nothing(seed: int) -> None:
    draw = Random(seed)
    operations = [parse(body) for body in Mix(seed).bodies(40)]
    engine = Engine(Schema.load("derby"))
    engine.insert(operations)
    track, before = engine._shown, result_of(engine)
    tables = everything(track.fold)
    for _ in range(3):
        track.back(draw.randint(0, len(operations)))
        track.forward(engine._order, len(operations))
        engine._digest = ""
        assert (before, tables) == (result_of(engine), everything(track.fold))
    track.back(0)
    assert everything(Fold(Schema.load("derby"))) == everything(track.fold)


def everything(fold: Fold) -> dict[str, object]:
    """The tables of a fold, in plain words: live and removed eids, who waits, what was said, conflicts."""
    return {
        "live": {eid: (element.tag, fold.slot_of(element)) for eid, element in fold.live.items()},
        "gone": dict(fold.gone),
        "waiting": sorted(fold.waiting),
        "triggers": {trigger: sorted(waiting) for trigger, waiting in fold.triggers.items()},
        "outcomes": dict(fold.outcomes),
        "late": {pair: dict(said) for pair, said in fold.late.items()},
        "conflicts": [conflict.as_data() for conflict in fold.conflicts()],
        "count": fold.count,
    }


def test_a_track_that_forgot_says_so() -> None:
    engine = Engine(PLAIN, undo=4, at_once=100)
    for operation in row("a", 30):
        engine.insert([operation])
    track: Track = engine._shown
    assert (True, False) == (track.reaches(30 - 4), track.reaches(30 - 9))
