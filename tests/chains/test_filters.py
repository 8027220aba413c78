"""The built-in filters: vectors, oracles, batches as single samples (CHN-060, 063, 065, 066)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.test_chains import METRIC, T0, at, batch_of, filters, passed, send
from weft.base.calculated import calculate
from weft.base.now import Now
from weft.cores.chains import limits
from weft.cores.chains.core import Chains
from weft.cores.chains.filters import Bucket, RateLimit, Threshold
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messages import BatchPassed, PassBatch, RowsDropped
from weft.cores.chains.settings import FilterSpec, parse_filters
from weft.cores.chains.view import History, View
from weft.wire.samples import Row, SampleBatch, Series

LINES = (Path(__file__).parents[1] / "vectors" / "chains-filters.jsonl").read_text("utf-8").splitlines()
VECTORS = {vector["id"]: vector["means"] for vector in map(json.loads, LINES)}
CPU = Series("cpu.user", "CPU", "percent", {"cpu": "0", "unit": "%"})
MEM = Series("mem", "MEMORY", "basic", {})


@pytest.mark.proves("CHN-063")
@pytest.mark.parametrize("name", ["rate-5", "rate-slow"])
def test_bucket_vectors(name: str) -> None:
    means = VECTORS[name]
    bucket = Bucket(means["count"], means["per_ns"], means["burst"])
    assert means["rows"] == [[ns, bool(bucket.take(ns)), bucket.units] for ns, _, _ in means["rows"]]


@pytest.mark.proves("CHN-063")
@pytest.mark.parametrize("name", ["rate-5", "rate-slow"])
def test_rate_limit_vectors(name: str) -> None:
    means = VECTORS[name]
    per = f"{means['per_ns'] // 1_000_000}ms"
    core = Chains(
        filters({"name": "r", "kind": "rate-limit", "count": means["count"], "per": per, "burst": means["burst"]})
    )
    found = [bool(passed(core, batch_of(1), Now(ns, T0))) for ns, _, _ in means["rows"]]
    assert [passes for _, passes, _ in means["rows"]] == found


@pytest.mark.proves("CHN-063")
def test_rate_limit_counts_by_key() -> None:
    core = Chains(filters({"name": "r", "kind": "rate-limit", "count": 2, "per": "1m", "key": ["name", "labels.cpu"]}))
    assert [0, 1, 2, 3] == passed(core, batch_of(0, 1, 2, 3, 4, 5, series=[CPU, MEM]))


def test_rate_limit_forgets_the_oldest_key_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEYS_MAX", 2)
    core = Chains(filters({"name": "r", "kind": "rate-limit", "count": 1, "per": "1h", "key": ["name"]}))
    series = [Series(name, "MEMORY", "basic", {}) for name in "abc"]
    assert [0, 1, 2] == passed(core, batch_of(0, 1, 2, series=series))
    assert [0] == passed(core, batch_of(0, series=series[:1]))
    assert [] == passed(core, batch_of(2, series=series[2:]))


def edge_of(means: dict[str, Any], kind: str = "above") -> FilterSpec:
    sign = 1 if kind == "above" else -1
    table = {kind: sign * means["above"], "clear": sign * means["clear"], "for": means["hold"], "mode": "edge"}
    return filters({"name": "t", "kind": "threshold", **table})[0]


@pytest.mark.proves("CHN-066")
@pytest.mark.parametrize("kind", ["above", "below"])
@pytest.mark.parametrize("is_batched", [True, False])
def test_edge_vector(kind: str, is_batched: bool) -> None:
    means = VECTORS["threshold-edge"]
    core = Chains([edge_of(means, kind)])
    sign = 1 if kind == "above" else -1
    rows = [Row(0, 1_000 * second, sign * value) for second, value, _ in means["rows"]]
    groups = [rows] if is_batched else [[row] for row in rows]
    found = [
        (row.offset_ms // 1_000, sign * row.value)
        for group in groups
        for event in send(core, SampleBatch(T0, (MEM,), group))
        if isinstance(event, BatchPassed)
        for row in event.batch.rows
    ]
    assert [(second, value) for second, value, passes in means["rows"] if passes] == found


@pytest.mark.proves("CHN-066")
def test_edges_are_kept_for_each_series_or_for_the_key_that_is_asked_for() -> None:
    table: dict[str, Any] = {"name": "t", "kind": "threshold", "above": 5, "mode": "edge"}
    series = [Series("m", "MEMORY", "basic", {"n": n, "rack": "1"}) for n in ("1", "2")]
    assert [6, 7] == passed(Chains(filters(table)), batch_of(6, 7, 8, 9, series=series))
    assert [6] == passed(Chains(filters({**table, "key": ["labels.rack"]})), batch_of(6, 7, 8, 9, series=series))


def test_edges_of_the_oldest_key_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEYS_MAX", 1)
    core = Chains(filters({"name": "t", "kind": "threshold", "above": 5, "mode": "edge"}))
    series = [Series(name, "MEMORY", "basic", {}) for name in "ab"]
    assert [6, 7, 8] == passed(core, batch_of(6, 7, 8, series=series))


@pytest.mark.proves("CHN-066")
@pytest.mark.parametrize(
    "table, expected",
    [({"above": 5}, [6, 9]), ({"below": 5}, [1, 4]), ({"above": 9}, []), ({"below": 1.5}, [1])],
)
def test_threshold_passes_what_is_beyond(table: dict[str, float], expected: list[int]) -> None:
    core = Chains(filters({"name": "t", "kind": "threshold", **table}))
    assert expected == passed(core, batch_of(1, 6, 5, 4, 9))


@pytest.mark.proves("CHN-066", "MEA-001")
def test_threshold_looks_at_the_calculated_value_also_across_batches() -> None:
    core = Chains(filters({"name": "hot", "kind": "threshold", "above": 90.0}))
    batches = [
        SampleBatch(T0, (CPU,), [Row(0, 0, 0, 0), Row(0, 1_000, 95, 100)]),
        SampleBatch(T0 + 2_000, (CPU,), [Row(0, 0, 100, 200)]),
        SampleBatch(T0 + 3_000, (CPU,), [Row(0, 0, 199, 300), Row(0, 1_000, 5, 400)]),
    ]
    assert [[95], [], [199]] == [passed(core, batch) for batch in batches]


def test_series_of_two_origins_are_two_series() -> None:
    core = Chains(filters({"name": "hot", "kind": "threshold", "above": 90.0, "dir": "in"}))
    found = []
    for second, (origin, value) in enumerate([(b"a", 0), (b"b", 50), (b"a", 95), (b"b", 99)]):
        batch = SampleBatch(T0 + second, (CPU,), [Row(0, 0, value, 100 * (second // 2 + 1))])
        core.command(PassBatch("in", METRIC, batch, origin), at(0))
        found += [e.event.origin for e in core.effects() if isinstance(e.event, BatchPassed)]  # type: ignore[union-attr]  # it tells only
    assert [b"a"] == found


def test_a_label_that_holds_a_number_can_be_looked_at() -> None:
    series = [Series("m", "MEMORY", "basic", {"n": text}) for text in ("7", "1", "x", "nan")]
    series.append(MEM)
    for on_error, expected in (("keep", [0, 2]), ("drop", [0]), ("fail", [])):
        table = {"name": "t", "kind": "threshold", "field": "labels.n", "above": 5, "on_error": on_error}
        core = Chains(filters(table))
        assert expected == passed(core, batch_of(0, 1, 2, 3, 4, series=series)), on_error
        assert 1 == core.counters.links["t"].failed


@pytest.mark.parametrize("invert, expected", [(False, [0, 2]), (True, [1, 3])])
def test_match_keeps_or_drops_what_matches(invert: bool, expected: list[int]) -> None:
    core = Chains(filters({"name": "m", "kind": "match", "where": {"name": "cpu.user"}, "invert": invert}))
    batch = batch_of(0, 1, 2, 3, series=[CPU, MEM])
    dropped, event = send(core, batch)
    assert RowsDropped("m", 2) == dropped
    assert expected == [row.value for row in event.batch.rows]
    assert (MEM if invert else CPU,) == event.batch.series, "a definition that no row needs does not travel"


@pytest.mark.parametrize(
    "where, expected",
    [
        ({"name": "cpu.user"}, [0]),
        ({"detail": "MEMORY"}, [1]),
        ({"type": {"ne": "basic"}}, [0]),
        ({"name": {"prefix": "cpu."}}, [0]),
        ({"name": {"in": ["mem", "x"]}}, [1]),
        ({"labels.unit": {"in": ["%", "ratio"]}}, [0]),
        ({"labels": {"cpu": "0", "unit": "%"}}, [0]),
        ({"labels.cpu": {"exists": True}}, [0]),
        ({"labels.cpu": {"exists": False}}, [1]),
        ({"labels.cpu": {"ne": "1"}}, [0, 1]),
        ({"labels.none": "x"}, []),
        ({"name": {"gt": "d"}}, [1]),
        ({"name": {"ge": "cpu.user", "lt": "cpv"}}, [0]),
        ({"value": 1}, [1]),
        ({"value": {"gt": 0.5}}, [1]),
        ({"value": {"le": 1, "ge": 1}}, [1]),
        ({"value": {"in": [1, 2]}}, [1]),
        ({"value": {"exists": False}}, [0]),
        ({"name": "mem", "value": {"lt": 5}}, [1]),
        ({"name": "cpu.user", "value": {"lt": 5}}, []),
    ],
)
def test_where(where: dict[str, Any], expected: list[int]) -> None:
    core = Chains(filters({"name": "m", "kind": "match", "where": where}))
    assert expected == passed(core, batch_of(0, 1, series=[CPU, MEM]))


def test_what_does_not_match_passes_untouched() -> None:
    table = {"name": "t", "kind": "threshold", "above": 100, "where": {"name": "cpu.user"}}
    assert [1, 3] == passed(Chains(filters(table)), batch_of(0, 1, 2, 3, series=[CPU, MEM]))


def test_a_batch_without_a_series_of_interest_is_not_opened() -> None:
    table = {"name": "t", "kind": "threshold", "above": 100, "where": {"name": "cpu.user"}}
    core = Chains(filters(table))
    passed(core, batch_of(0, 1))
    assert 0 == len(core.batches.histories["out", METRIC])
    passed(core, batch_of(0, 1, series=[CPU]))
    assert 1 == len(core.batches.histories["out", METRIC])


def test_history_forgets_the_series_unseen_longest() -> None:
    history = History(2)
    for name in ("a", "b", "a", "c"):
        history.swap((name,), (0, 1, None))
    assert [None, (0, 1, None)] == [history.swap(("b",), None), history.swap(("a",), None)]


VALUES = st.lists(st.tuples(st.integers(0, 2), st.integers(-9, 9)), min_size=1, max_size=30)


@pytest.mark.proves("CHN-066")
@given(VALUES, st.integers(1, 30), st.sampled_from(["pass", "edge"]), st.integers(0, 3))
def test_batched_is_as_singly(rows: list[tuple[int, int]], size: int, mode: str, hold_s: int) -> None:
    series = tuple(Series(name, "CONTEXT", kind, {}) for name, kind in (("a", "rate"), ("b", "basic"), ("c", "delta")))
    made = [Row(which, 1_000 * second, value) for second, (which, value) in enumerate(rows)]
    more = {"for": hold_s, "clear": 0} if mode == "edge" else {}
    table = {"name": "t", "kind": "threshold", "above": 2, "mode": mode, **more}
    found = []
    for step in (size, 1):
        core = Chains(filters(table, {"name": "z", "kind": "match", "where": {"value": {"ne": 5}}, "place": 5}))
        groups = [made[start : start + step] for start in range(0, len(made), step)]
        found.append([value for group in groups for value in passed(core, SampleBatch(T0, series, group))])
    assert found[0] == found[1]


@pytest.mark.proves("CHN-066")
@given(st.lists(st.integers(-9, 9), max_size=30), st.integers(-5, 5), st.integers(0, 4), st.integers(0, 5))
def test_edges_are_those_of_an_oracle(values: list[int], above: int, slack: int, hold_s: int) -> None:
    clear = above - slack
    expected, is_on, since = [], False, -1
    for second, value in enumerate(values):
        if is_on:
            is_on = value > clear
            passes, since = not is_on, -1
        else:
            since = (since if since >= 0 else second) if value > above else -1
            passes = is_on = since >= 0 and second - since >= hold_s
        expected += [value] if passes else []
    table = {"name": "t", "kind": "threshold", "above": above, "clear": clear, "for": hold_s, "mode": "edge"}
    assert expected == passed(Chains(filters(table)), batch_of(*values))


@given(
    st.lists(st.tuples(st.integers(0, 3 * 10**9), st.integers(1, 5)), max_size=20), st.integers(1, 4), st.integers(1, 4)
)
def test_no_bucket_gives_more_than_its_rate(takes: list[tuple[int, int]], count: int, burst: int) -> None:
    bucket, now, given_ = Bucket(count, 10**9, burst), 0, list[int]()
    for gap, times in takes:
        now += gap
        given_ += [now for _ in range(times) if bucket.take(now)]
    for first in range(len(given_)):
        for last in range(first, len(given_)):
            span = given_[last] - given_[first]
            assert last - first + 1 <= burst + count * span // 10**9 + 1


def test_a_view_opens_only_what_is_looked_at() -> None:
    view = View(SampleBatch(T0, (MEM,), [Row(0, 0, 1), Row(0, 1, 2)]), b"", History(9))
    assert view.batch is view.close()
    assert (None, {}) == (view._values, view._keys)
    view.take_out([0])
    assert [2] == [row.value for row in view.close().rows]


def test_values_of_a_view_are_those_of_the_one_function() -> None:
    rows = [Row(0, 0, 5, 10), Row(0, 1_000, 8, 20), Row(0, 2_000, 3, 30)]
    points = [(T0 + row.offset_ms, row.value, row.base) for row in rows]
    pairs = zip([None, *points], points, strict=False)
    expected = [calculate("percent", before, after).result for before, after in pairs]
    assert expected == View(SampleBatch(T0, (CPU,), rows), b"", History(9)).values()


def test_filters_inherit_only_from_their_own_kind() -> None:
    rate, threshold = filters(
        {"name": "a", "kind": "rate-limit", "count": 1}, {"name": "b", "kind": "threshold", "above": 1}
    )
    assert (RateLimit, Threshold) == (type(FilterLink(rate).filter), type(FilterLink(threshold).filter))
    assert rate.state != threshold.state


# Parsing


@pytest.mark.proves("CFG-071")
@pytest.mark.parametrize(
    "table, expected",
    [
        ({"kind": "treshold"}, ["E04 kind"]),
        ({"kind": None}, ["E03 kind"]),
        ({"name": None}, ["E03 name"]),
        ({"name": "a b"}, ["E15 name"]),
        ({"types": ["Weft"]}, ["E15 types"]),
        ({"types": ["*.x"]}, ["E15 types"]),
        ({"types": 5}, ["E04 types"]),
        ({"dir": "up"}, ["E04 dir"]),
        ({"place": 0}, ["E04 place"]),
        ({"place": 4_294_967_295}, ["E04 place"]),
        ({"place": True}, ["E04 place"]),
        ({"on_error": "cry"}, ["E04 on_error"]),
        ({"colour": 1}, ["E02 colour"]),
        ({"where": 5}, ["E04 where"]),
        ({"where": {"nam": "x"}}, ["E02 where.nam"]),
        ({"where": {"name": {"like": "x"}}}, ["E02 where.name.like"]),
        ({"where": {"name": 5}}, ["E04 where.name.eq"]),
        ({"where": {"value": "5"}}, ["E04 where.value.eq"]),
        ({"where": {"value": {"prefix": 5}}}, ["E04 where.value.prefix"]),
        ({"where": {"value": {"in": [1, "2"]}}}, ["E04 where.value.in"]),
        ({"where": {"name": {"exists": 1}}}, ["E04 where.name.exists"]),
        ({"where": {f"labels.{n}": "" for n in range(65)}}, ["E04 where"]),
        ({"above": None}, ["E03 above"]),
        ({"below": 3}, ["E03 above"]),
        ({"above": "x"}, ["E04 above", "E03 above"]),
        ({"field": "name"}, ["E04 field"]),
        ({"mode": "sometimes"}, ["E04 mode"]),
        ({"clear": 1}, ["E11 clear"]),
        ({"for": "1s", "key": ["name"]}, ["E11 for", "E11 key"]),
        ({"mode": "edge", "clear": 6}, ["E11 clear"]),
        ({"mode": "edge", "for": "x"}, ["E04 for"]),
        ({"mode": "edge", "key": ["value", "labels.a"]}, ["E02 key"]),
        ({"kind": "match", "above": None}, ["E03 where"]),
        ({"kind": "match", "above": None, "where": {"name": "x"}, "invert": 1}, ["E04 invert"]),
        ({"kind": "rate-limit", "above": None}, ["E03 count"]),
        ({"kind": "rate-limit", "above": None, "count": 0}, ["E04 count"]),
        ({"kind": "rate-limit", "above": None, "count": 1, "per": 0}, ["E04 per"]),
        ({"kind": "rate-limit", "above": None, "count": 1, "burst": -1}, ["E04 burst"]),
    ],
)
def test_mistakes(table: dict[str, Any], expected: list[str]) -> None:
    full = {"name": "x", "kind": "threshold", "above": 5, **table}
    _, mistakes = parse_filters([{key: value for key, value in full.items() if value is not None}])
    assert [f"{code[:4]}chains.filter[0].{code[4:]}" for code in expected] == [text.split(": ")[0] for text in mistakes]


@pytest.mark.proves("CFG-071")
def test_all_mistakes_of_all_filters_are_said_at_once() -> None:
    good = {"name": "x", "kind": "threshold", "above": 5}
    _, mistakes = parse_filters([good, good, 7, {**good, "name": "y", "abov": 3, "place": -1}])
    assert [
        "E14 chains.filter[1].name: 'x' is the name of chains.filter[0], too",
        "E04 chains.filter[2]: must be a table",
        "E04 chains.filter[3].place: -1 is no whole number from 1 to 4294967294",
        "E02 chains.filter[3].abov: is not known here, did you mean `above`?",
    ] == mistakes
    assert [] == parse_filters([])[1]
    assert ["E04 chains.filter: must be a list of tables, [[chains.filter]]"] == parse_filters({})[1]


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)
KEYS = ("types", "dir", "place", "where", "on_error", "above", "below", "mode", "clear", "for", "key", "count", "per")


@pytest.mark.proves("CFG-071")
@given(
    st.lists(
        st.builds(
            lambda name, kind, rest: {"name": name, "kind": kind, **rest},
            st.sampled_from("abc"),
            st.sampled_from(["match", "threshold", "rate-limit"]),
            st.dictionaries(
                st.sampled_from(KEYS), st.one_of(JSON, st.sampled_from(["1s", "edge", ["name"], 5])), max_size=4
            ),
        ),
        max_size=4,
    )
)
def test_any_tables_give_filters_that_work_or_mistakes(tables: list[Any]) -> None:
    specs, mistakes = parse_filters(tables)
    assert all(text[0] == "E" and text[1:3].isdecimal() and ": " in text for text in mistakes)
    if not mistakes:
        core = Chains(specs)
        send(core, batch_of(1, 2.5, float("nan"), series=[CPU, MEM]))
        assert 3 == core.counters.delivered + core.counters.dropped + core.counters.refused
