"""What is missing, by number (PIP-060), against the vectors; and the state behind each batch on disk (PIP-021)."""

import json
from pathlib import Path
from typing import Any

import pytest

from weft.base.chance import Chance
from weft.base.identity import Origin
from weft.base.vectors import VersionVector
from weft.lake.manifest import name_of
from weft.pipeline.completeness import OVERDUE_NS, SHOWN_MAX, Instant, rows_of
from weft.pipeline.coverage import Coverage, Move, Piece, forget_before
from weft.pipeline.intake import Intake, Loss

FILE = Path(__file__).parents[1] / "vectors" / "pipeline.jsonl"
VECTORS = [json.loads(line) for line in FILE.read_bytes().splitlines() if b'"completeness-' in line]
A = Origin(b"\x0b" * 16, 7)
B = Origin("n1", None)


def intake(ranges: list[tuple[int, int]], lost: Any = (), ends: Any = (), origin: Origin = A) -> Intake:
    losses = tuple(Loss(origin, first, last, "spool-full") for first, last in lost)
    return Intake((), VersionVector([(origin, ranges)]), losses, tuple(ends), is_disjoint=True, newest=None)


@pytest.mark.proves("PIP-060", "PIP-061")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_states_of_the_vectors(vector: dict[str, Any]) -> None:
    means = vector["means"]
    state = Coverage()
    ends = [(A, means["era_link_last"])] if "era_link_last" in means else []
    state.advance(intake([tuple(r) for r in means["received"]], means.get("lost", ()), ends), now=0)
    (early,), (late,) = (list(rows_of(state, "samples", Instant(0, now))) for now in (OVERDUE_NS, OVERDUE_NS + 1))
    assert (means["expected"], means["missing"]) == (early["expected"], early["missing"])
    assert means.get("missing_ranges", []) == [[first, last] for first, last, _ in early["missing_ranges"]]
    assert means.get("lost_count", 0) == early["lost"]
    assert means.get("closed", False) == early["closed"]
    assert means.get("state_before_overdue", means.get("state")) == early["state"]
    assert means.get("state_after", means.get("state")) == late["state"]


@pytest.mark.proves("MEA-011", "PIP-060", "PIP-061")
def test_what_a_filter_took_out_is_no_loss_and_is_named_with_its_reason() -> None:
    state = Coverage()
    losses = (Loss(A, 3, 4, "filtered"), Loss(A, 6, 9, "filtered by quiet"))
    known = VersionVector([(A, [(1, 2), (5, 5)])])
    state.advance(Intake((), known, losses, ((A, 9),), is_disjoint=True, newest=None), now=0)
    counts = ("expected", "received", "lost", "forgotten", "missing", "state", "complete_upto")
    (row,) = rows_of(state, "samples", Instant(0, OVERDUE_NS + 1))
    assert (9, 3, 0, 6, 0, "complete", 9) == tuple(row[name] for name in counts)
    assert [(3, 4, "filtered"), (6, 9, "filtered by quiet")] == row["lost_ranges"]
    state.advance(intake([(7, 7)], lost=[(10, 10)]), now=1)  # by another way, which no filter stands in
    (row,) = rows_of(state, "samples", Instant(0, OVERDUE_NS + 2))
    assert (10, 4, 1, 5, 0, "lost", 10) == tuple(row[name] for name in counts)
    assert [(3, 4), (6, 6), (8, 9), (10, 10)] == [pair[:2] for pair in row["lost_ranges"]]


def test_numbers_that_have_holes_by_themselves_are_never_missing(tmp_path: Path) -> None:
    state = Coverage(is_dense=False)
    state.advance(intake([(1, 1), (10, 10)]), now=100)
    assert (0, {}) == (state.missing, state.holes)
    state.save(tmp_path / "0.wv")
    state = Coverage.load(tmp_path / "0.wv", is_dense=False)
    plan = state.advance(intake([(4, 4), (10, 11)]), now=200)
    assert (0, [(4, 4), (11, 11)], [(10, 10)]) == (state.missing, list(plan.fresh[A]), list(plan.repeated[A]))


@pytest.mark.proves("CFG-003", "PIP-061")
def test_numbers_that_go_on_from_era_to_era_are_missing_between_two_eras_and_not_below_the_first(
    tmp_path: Path,
) -> None:
    """As writes of the configuration do: each root counts on from the last write that it had."""
    first, second, third = (Origin("root", epoch) for epoch in (0, 1, 4))
    state = Coverage(runs_on=True)
    state.advance(intake([(2, 3), (5, 6)], origin=first), now=100)
    assert {first: [(1, 1, 100), (4, 4, 100)]} == state.holes
    state.advance(intake([(1, 1), (4, 4)], origin=first), now=200)
    state.advance(intake([(5, 6), (8, 8)], origin=second), now=300)
    assert {second: [(7, 7, 300)]} == state.holes, "5 and 6 of the first root were lost with it"
    state.save(tmp_path / "0.wv")
    state = Coverage.load(tmp_path / "0.wv", runs_on=True)
    state.advance(intake([(12, 12)], origin=third), now=400)
    assert {second: [(7, 7, 300)], third: [(9, 11, 400)]} == state.holes
    state.advance(intake([(7, 7), (9, 10)], origin=second), now=500)
    assert {third: [(11, 11, 400)]} == state.holes, "those were not of the last root"
    state.advance(intake([(9, 11)], origin=third), now=600)
    assert (0, {}) == (state.missing, state.holes)


def test_a_hole_keeps_its_age_while_it_shrinks() -> None:
    state = Coverage()
    state.advance(intake([(1, 1), (10, 10)]), now=100)
    state.advance(intake([(4, 6), (12, 12)]), now=200)
    assert [(2, 3, 100), (7, 9, 100), (11, 11, 200)] == state.holes[A]
    assert 6 == state.missing
    state.advance(intake([(2, 3), (7, 9), (11, 11)]), now=300)
    assert {} == state.holes


def test_only_a_thousand_holes_are_shown() -> None:
    state = Coverage()
    state.advance(intake([(2 * n, 2 * n) for n in range(1, SHOWN_MAX + 3)]), now=0)
    (row,) = rows_of(state, "samples", Instant(0, 0))
    assert (1_000, True, 1_000 + 2) == (len(row["missing_ranges"]), row["more"], row["missing"])


@pytest.mark.proves("PIP-043")
def test_pieces_and_moves_tell_where_fresh_numbers_come_to_lie() -> None:
    state = Coverage()
    plan = state.advance(intake([(1, 4), (7, 9), (20, 21)]), now=0)
    assert [Piece(A, 1, 4, 1, 0), Piece(A, 7, 9, 7, 0), Piece(A, 20, 21, 20, 0)] == list(state.pieces(plan))
    assert [] == list(state.moves(plan))
    plan = state.advance(intake([(6, 6), (10, 11)], lost=[(5, 5)]), now=0)
    assert [Piece(A, 6, 6, 1, 1), Piece(A, 10, 11, 1, 1)] == list(state.pieces(plan))
    assert [Move(A, 7, 1, 1)] == list(state.moves(plan))
    refused = VersionVector([(A, [(13, 13)])])
    plan = state.advance(intake([(12, 19), (5, 5)]), now=0)
    state.refuse(refused)
    assert ([(5, 5)], [(12, 12, 1, 1), (14, 19, 1, 2)]) == (list(plan.late[A]), [p[1:] for p in state.pieces(plan)])
    assert [Move(A, 20, 1, 2)] == list(state.moves(plan))


@pytest.mark.proves("PIP-021")
def test_a_state_is_what_was_saved(tmp_path: Path) -> None:
    chance = Chance("saved")
    state, directory = Coverage(), tmp_path / "coverage"
    for step in range(20):
        numbers = [(n, n + chance.randint(0, 3)) for n in (chance.randint(1, 90) for _ in range(4))]
        lost = [(n, n + 1) for n in (chance.randint(1, 99),)]
        state.advance(intake(numbers, lost, [(A, 120)] if step == 9 else [], A), now=step)
        state.advance(intake(numbers[:1], (), (), B), now=step)
        state.offset = f"offset {step}"
        path = directory / f"{step}.wv"
        state.save(path)
        forget_before(directory, step)
        again = Coverage.load(path)
        assert vars(state) == vars(again)
    assert {"17.wv", "18.wv", "19.wv"} == {file.name for file in directory.glob("*.wv")}


def test_losses_are_read_as_they_were_kept_before(tmp_path: Path) -> None:
    state = Coverage()
    state.advance(intake([(1, 1), (4, 4)], [(2, 3), (6, 6)]), now=1)
    state.save(tmp_path / "0.wv")
    kept = json.loads((tmp_path / "0.json").read_bytes())
    assert {"spool-full"} == kept.pop("losses").keys()
    kept["lost"] = [[name_of(A.node), A.era, first, last, "spool-full"] for first, last in ((2, 3), (6, 6))]
    (tmp_path / "0.json").write_text(json.dumps(kept), "utf-8")
    assert vars(state) == vars(Coverage.load(tmp_path / "0.wv"))
