"""What is beyond a gap waits, in bounded memory, and what is let go is what is farthest ahead."""

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.document.logs import Desk, body, run
from tests.document.rig import B, C
from weft.cores.document import holding as module
from weft.cores.document import limits
from weft.cores.document.holding import Holding, Kept


def kept(size: int = 10) -> Kept:
    return Kept(bytes(size), 0, B)


def numbers(holding: Holding) -> list[tuple[bytes, int]]:
    return [(source, sequence) for source, sequence, _ in holding.items()]


@pytest.mark.proves("GSP-014")
def test_of_one_source_so_many_are_held_and_the_farthest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD_MAX", 3)
    desk = Desk()
    assert ["held"] * 3 + ["shed", "held"] == desk.take(B, *(body(B, n) for n in (10, 5, 7, 11, 6)))
    assert [(B, 5), (B, 6), (B, 7)] == desk.log.held()
    assert 2 == desk.context.counters["log.shed"]
    assert ["new"] * 4 == desk.take(B, *run(B, 1, 4))
    assert 7 == desk.log.latest(B)


@pytest.mark.proves("GSP-014")
def test_of_one_source_so_many_bytes_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD_BYTES_MAX", 100)
    holding, gone = Holding(), list[tuple[bytes, int]]()
    for number, size in ((9, 40), (2, 40), (5, 40)):
        holding.put(B, number, kept(size))
        gone = holding.shed(B)
    assert ([(B, 9)], [(B, 2), (B, 5)], 80) == (gone, numbers(holding), holding.bytes)


@pytest.mark.proves("GSP-014")
def test_of_all_sources_together_so_many_bytes_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD_BYTES_ALL_MAX", 100)
    holding, gone = Holding(), list[tuple[bytes, int]]()
    for source, number in ((B, 2), (B, 90), (C, 2), (C, 5)):
        holding.put(source, number, kept(30))
        gone = holding.shed(source)
    assert [(B, 90)] == gone
    assert [(B, 2), (C, 2), (C, 5)] == numbers(holding)


@pytest.mark.proves("GSP-014")
def test_the_bounds_are_those_of_the_specification() -> None:
    assert (10_000, 16 << 20, 64 << 20) == (limits.HELD_MAX, limits.HELD_BYTES_MAX, limits.HELD_BYTES_ALL_MAX)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from((B, C)), st.integers(1, 9), st.integers(0, 5)), max_size=40))
def test_holding_is_a_table_that_counts(steps: list[tuple[bool, bytes, int, int]]) -> None:
    holding, plain = Holding(), dict[tuple[bytes, int], Kept]()
    for is_put, source, number, size in steps:
        if is_put:
            holding.put(source, number, kept(size))
            plain[source, number] = kept(size)
        else:
            assert plain.pop((source, number), None) == holding.take(source, number)
        assert sorted(plain) == numbers(holding)
        assert (len(plain), sum(len(one.body) for one in plain.values())) == (holding.count, holding.bytes)
        for one in (B, C):
            of_one = [n for s, n in plain if s == one]
            assert (min(of_one, default=0), max(of_one, default=0)) == (holding.lowest(one), holding.highest(one))
            assert bool(of_one) == (one in holding)


@examples(max_examples=40, deadline=None)
@given(st.permutations([(source, number) for source in (B, C) for number in range(1, 6)]))
def test_any_order_of_arrival_ends_with_the_same_log(order: list[tuple[bytes, int]]) -> None:
    desk, plain = Desk(), Desk()
    desk.take(B, *(body(*pair) for pair in order))
    plain.take(B, *(body(*pair) for pair in sorted(order)))
    assert (plain.log.check, plain.log.sources(), []) == (desk.log.check, desk.log.sources(), desk.log.held())
    assert sorted(order) == sorted((one.source, one.sequence) for one in desk.log.fresh())
