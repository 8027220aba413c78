"""Order of links, and what becomes of a batch on its way (CHN-001, 002, 010..012, 082)."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.effects import Tell
from weft.base.now import SECOND, Now
from weft.cores.chains import limits
from weft.cores.chains.batches import Batches
from weft.cores.chains.core import Chains
from weft.cores.chains.links import ChainFull, LinkCounters
from weft.cores.chains.messages import (
    BatchFailed,
    BatchPassed,
    FiltersApplied,
    FiltersPlanned,
    PassBatch,
    PlanFilters,
    RowsDropped,
)
from weft.cores.chains.order import Key, after_all, before_all, by_client, by_filter, covers
from weft.cores.chains.settings import FilterSpec, parse_filters
from weft.cores.chains.states import TABLE, State, Verdict
from weft.cores.chains.view import View
from weft.wire.samples import Row, SampleBatch, Series

METRIC = "weft.metric"
T0 = 1_795_000_000_000


def at(seconds: float) -> Now:
    return Now(round(seconds * SECOND), T0 * 1_000_000 + round(seconds * SECOND))


def filters(*tables: dict[str, Any]) -> list[FilterSpec]:
    """The filters of tables that have no mistake."""
    specs, mistakes = parse_filters(list(tables))
    assert [] == mistakes
    return specs


def batch_of(*values: float, series: Sequence[Series] | None = None, t0_ms: int = T0) -> SampleBatch:
    """One row per value, a second apart, of one series after the other if there are several."""
    of = tuple(series or [Series("mem", "MEMORY", "basic", {})])
    return SampleBatch(t0_ms, of, [Row(n % len(of), 1_000 * n, value) for n, value in enumerate(values)])


def told(core: Chains) -> list[Any]:
    return [effect.event for effect in core.effects() if isinstance(effect, Tell)]


def send(
    core: Chains, batch: SampleBatch, now: Now | None = None, kind: str = METRIC, direction: str = "out"
) -> list[Any]:
    core.command(PassBatch(direction, kind, batch), now or at(0))
    return told(core)


def passed(core: Chains, batch: SampleBatch, now: Now | None = None) -> list[float]:
    """The values that reach the bottom."""
    events = [event for event in send(core, batch, now) if isinstance(event, BatchPassed)]
    return [row.value for event in events for row in event.batch.rows]


class Witness:
    """A link of a test: notes what it is offered and answers as told."""

    def __init__(self, key: Key, name: str, kind: str = METRIC, direction: str = "out") -> None:
        self.key, self.name, self.kind, self.direction = key, name, kind, direction
        self.counters = LinkCounters()
        self.seen: list[str] = []
        self.act: Callable[[View], Verdict] = lambda view: Verdict.PASSED

    def covers(self, kind: str) -> bool:
        return covers(self.kind, kind)

    def offer(self, view: View, now: Now) -> Verdict:
        self.seen.append(self.name)
        return self.act(view)


def attach_all(core: Chains, registrations: str) -> list[Witness]:
    """`before1 x10 after1`: links of clients, attached in this order."""
    made = []
    for attach, name in enumerate(registrations.split(), 1):
        band = name.rstrip("0123456789")
        keys = {"before": before_all(attach), "after": after_all(attach)}
        place = name[len(band) :]
        made.append(Witness(keys.get(band, by_client(int(place or 1), attach)), name))
        core.attach(made[-1])
    return made


@pytest.mark.proves("CHN-010", "CHN-011")
def test_example_of_the_order() -> None:
    core = Chains()
    attach_all(core, "x10 after1 before1 y10 z5 before2 after2 w20")
    expected = ["before2", "before1", "z5", "x10", "y10", "w20", "after1", "after2"]
    assert expected == [link.name for link in core.chain("out", METRIC)]


KEYS = st.one_of(
    st.builds(by_filter, st.integers(1, 5), st.sampled_from("abcdef")),
    st.builds(lambda place: ("client", place), st.integers(1, 5)),
    st.just("before"),
    st.just("after"),
)


@pytest.mark.proves("CHN-010")
@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=30))
def test_any_sequence_of_attaching_and_detaching_is_sorting_by_key(steps: list[tuple[Any, bool]]) -> None:
    core, there = Chains(), list[Witness]()
    for attach, (what, is_detached) in enumerate(steps, 1):
        if is_detached and there:
            core.detach(there.pop(attach % len(there)))
            continue
        key: Key = what if isinstance(what, tuple) and what[0] == 1 else _client_key(what, attach)
        if key not in [link.key for link in there]:
            there.append(Witness(key, str(attach)))
            core.attach(there[-1])
        assert sorted([link.key for link in there]) == [link.key for link in core.chain("out", METRIC)]


def _client_key(what: Any, attach: int) -> Key:
    if what == "before":
        return before_all(attach)
    return after_all(attach) if what == "after" else by_client(what[1], attach)


@pytest.mark.proves("CHN-010")
def test_configured_filters_stand_by_place_and_name_whenever_they_came() -> None:
    tables: list[dict[str, Any]] = [
        {"name": name, "kind": "rate-limit", "count": 1, "place": place}
        for name, place in (("b", 10), ("a", 10), ("c", 9), ("d", 1_000))
    ]
    for order in (tables, tables[::-1]):
        assert ["c", "a", "b", "d"] == [link.name for link in Chains(filters(*order)).chain("out", METRIC)]


@pytest.mark.proves("CHN-001", "CHN-002")
def test_chains_of_directions_and_types_are_apart_and_patterns_stand_on_all_they_cover() -> None:
    core = Chains()
    for name, kind, direction in (
        ("metric", METRIC, "out"),
        ("weft", "weft.*", "out"),
        ("all", "*", "out"),
        ("in", METRIC, "in"),
        ("other", "demo.report", "out"),
    ):
        core.attach(Witness(by_filter(5, name), name, kind, direction))
    assert ["all", "metric", "weft"] == [link.name for link in core.chain("out", METRIC)]
    assert ["all", "weft"] == [link.name for link in core.chain("out", "weft.log")]
    assert ["all", "other"] == [link.name for link in core.chain("out", "demo.report")]
    assert ["in"] == [link.name for link in core.chain("in", METRIC)]
    assert [] == core.chain("in", "weft.metrics")


@pytest.mark.proves("CHN-001")
def test_an_empty_chain_hands_back_the_same_object() -> None:
    batch = batch_of(1, 2)
    (event,) = send(Chains(), batch)
    assert batch is event.batch
    assert BatchPassed("out", METRIC, batch) == event


def test_a_chain_that_takes_nothing_out_hands_back_the_same_object() -> None:
    core = Chains(filters({"name": "t", "kind": "threshold", "above": 0}))
    batch = batch_of(1, 2)
    (event,) = send(core, batch)
    assert batch is event.batch


def test_each_link_is_offered_a_batch_once_and_in_order() -> None:
    core = Chains()
    links = attach_all(core, "x10 after1 before1 y10")
    order: list[str] = []
    for link in links:
        link.seen = order
    send(core, batch_of(1))
    assert ["before1", "x10", "y10", "after1"] == order


@pytest.mark.proves("CHN-012")
def test_a_batch_that_waited_goes_on_behind_the_key_of_its_link() -> None:
    core = Chains()
    links = attach_all(core, "x10 y20 z30")
    core.detach(links[1])
    core.attach(Witness(by_client(15, 9), "new15"))
    core.walk(PassBatch("out", METRIC, batch_of(1)), at(0), after=links[1].key)
    assert ([], ["z30"]) == (links[0].seen, links[2].seen)
    assert 1 == len(told(core))


def test_a_deleted_batch_ends_there() -> None:
    core = Chains()
    first, second = attach_all(core, "a1 b2")

    def clear(view: View) -> Verdict:
        view.take_out(view.kept)
        return Verdict.DROPPED

    first.act = clear
    assert [RowsDropped("a1", 3)] == send(core, batch_of(1, 2, 3))
    assert [] == second.seen


def test_a_filter_that_must_not_fail_ends_the_batch() -> None:
    core = Chains()
    first, second = attach_all(core, "a1 b2")
    first.act = lambda view: Verdict.FAILED
    assert [BatchFailed("a1", 2, "filter-failed")] == send(core, batch_of(1, 2))
    assert ([], 2) == (second.seen, core.counters.refused)


def test_a_full_node_takes_no_further_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINKS_MAX", 2)
    core = Chains()
    attach_all(core, "a1 b2")
    with pytest.raises(ChainFull):
        core.attach(Witness(by_client(3, 3), "c"))


def test_chains_without_number_are_found_without_being_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHAINS_MAX", 2)
    core = Chains(filters({"name": "m", "kind": "threshold", "types": ["*"], "above": 0}))
    for number in range(5):
        (event,) = send(core, batch_of(1), kind=f"t{number}")
        assert f"t{number}" == event.type
    assert (2, 2) == (len(core.roster), len(core.batches.histories))


ROWS = st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=8), max_size=8)


@given(ROWS, st.sampled_from(["keep", "drop", "fail"]))
def test_what_comes_in_goes_out_or_is_counted(batches: list[list[int]], on_error: str) -> None:
    core = Chains(
        filters(
            {"name": "a", "kind": "match", "where": {"value": {"ge": -5}}},
            {"name": "b", "kind": "rate-limit", "count": 3, "key": ["labels.n"]},
            {"name": "c", "kind": "threshold", "field": "labels.n", "above": 2, "on_error": on_error},
        )
    )
    texts = ("1", "3", "x")
    for number, values in enumerate(batches):
        series = [Series("m", "MEMORY", "basic", {"n": text}) for text in texts]
        before = core.counters.accepted
        events = send(core, batch_of(*values, series=series), at(number))
        assert before + len(values) == core.counters.accepted
        told_rows = sum(len(e.batch.rows) if isinstance(e, BatchPassed) else e.count for e in events)
        assert len(values) == told_rows
    counters = core.counters
    assert counters.accepted == counters.delivered + counters.dropped + counters.refused
    for link in counters.links.values():
        assert link.offered == link.passed + link.dropped


@pytest.mark.proves("CHN-070", part="in one turn, without restart; what means the same keeps its state")
@pytest.mark.proves("CHN-083", part="config.applied names what is different")
def test_another_plan_counts_from_the_next_batch_and_keeps_what_still_means_the_same() -> None:
    table: dict[str, Any] = {"name": "r", "kind": "rate-limit", "count": 2, "per": "1h"}
    core = Chains(filters(table))
    assert [1.0, 2.0] == passed(core, batch_of(1.0, 2.0, 3.0))
    core.command(PlanFilters(tuple(filters({**table, "place": 7, "burst": 9}))), at(0))
    assert [FiltersApplied(1, ("r",), ()), FiltersPlanned(1)] == told(core)
    assert [] == passed(core, batch_of(4.0)), "a known filter does not begin anew"
    assert 4 == core.counters.links["r"].offered
    core.command(PlanFilters(tuple(filters({**table, "per": "2h"}))), at(0))
    assert [4.0, 5.0] == passed(core, batch_of(4.0, 5.0, 6.0))
    told(core)
    core.command(PlanFilters(tuple(filters({**table, "per": "2h"}))), at(0))
    assert [FiltersPlanned(1)] == told(core), "nothing is different"
    core.command(PlanFilters(()), at(0))
    assert [FiltersApplied(0, (), ("r",)), FiltersPlanned(0)] == told(core)
    assert [6.0] == passed(core, batch_of(6.0))
    assert {} == core.counters.links


def test_an_edge_lives_through_another_limit_but_not_through_another_span() -> None:
    table: dict[str, Any] = {"name": "e", "kind": "threshold", "above": 5, "mode": "edge", "for": 0}
    core = Chains(filters(table))
    assert [9] == passed(core, batch_of(9))
    core.command(PlanFilters(tuple(filters({**table, "above": 6}))), at(0))
    assert [] == passed(core, batch_of(9))
    core.command(PlanFilters(tuple(filters({**table, "for": "1ms"}))), at(0))
    assert [11] == passed(core, batch_of(10, 11))


def test_a_core_without_clients_waits_for_nothing_and_remembers_nothing() -> None:
    core = Chains()
    core.restore((), at(0))
    core.wake(at(0))
    assert (None, []) == (core.deadline(), list(core.condense()))


def test_table_names_only_what_the_core_can_do() -> None:
    assert [] == [cell.do for cell in TABLE.values() if not callable(getattr(Batches, cell.do, None))]
    assert set(Verdict) == {verdict for _, verdict in TABLE}
    assert set(State) == {State.WALKING} | {cell.then for cell in TABLE.values()}
