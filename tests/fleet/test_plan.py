"""What a node does by the pairs it holds, and what it does about pairs that nobody can use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleet.fleets import EXAMPLE, fleets
from weft.base.now import MILLISECOND, SECOND
from weft.node.fleet import fleet_of
from weft.node.fleetkeys import to_pairs
from weft.node.fleetparts import Fleet
from weft.node.plan import plan_of, why_unusable

CPU = b'{"detail":"CPU","rate":"1s"}'


def test_the_plan_of_a_group() -> None:
    pairs = dict(to_pairs(fleet_of(EXAMPLE, "example")))
    plan = plan_of(pairs, ["web"])
    assert [("net", 100 * MILLISECOND), ("nginx_mem", 10 * SECOND)] == [(m.name, m.rate_ns) for m in plan.metrics]
    assert ["busy"] == [spec.name for spec in plan.filters]
    assert (2 * SECOND, 5, ()) == (plan.heartbeat_ns, plan.dead_after, plan.mistakes)


@given(fleets())
def test_what_a_file_says_has_no_mistakes_in_any_group(fleet: Fleet) -> None:
    pairs = dict(to_pairs(fleet))
    for group in fleet.groups.values():
        plan = plan_of(pairs, [group.name])
        assert () == plan.mistakes
        assert sorted(group.metrics) == [spec.name for spec in plan.metrics]
        assert sorted(group.filters) == [spec.name for spec in plan.filters]


@pytest.mark.proves("CFG-020")
def test_a_group_does_not_take_what_belongs_to_a_longer_name() -> None:
    pairs = {"/CONFIG/g1/metric/a": CPU, "/CONFIG/g10/metric/b": CPU, "/CONFIG/g/metric/c": CPU}
    assert ["a"] == [spec.name for spec in plan_of(pairs, ["g1"]).metrics]


def test_times_that_nobody_says_are_the_usual_ones() -> None:
    plan = plan_of({}, ["g"])
    assert (2 * SECOND, 5) == (plan.heartbeat_ns, plan.dead_after)


def test_one_bad_pair_spoils_no_other() -> None:
    pairs = {
        "/CONFIG/g/metric/good": CPU,
        "/CONFIG/g/metric/bad": b'{"detail":"CPUU"}',
        "/CONFIG/g/metric/worse": b"\xff",
        "/CONFIG/g/filter/none": b"[]",
        "/CONFIG/global/heartbeat": b'"soon"',
        "/CONFIG/global/dead_after": b"1",
    }
    plan = plan_of(pairs, ["g"])
    assert ["good"] == [spec.name for spec in plan.metrics]
    assert (2_000_000_000, 5) == (plan.heartbeat_ns, plan.dead_after)
    told = {text.partition(": ")[0] for text in (*plan.mistakes, *plan.filter_mistakes)}
    assert set(pairs) - {"/CONFIG/g/metric/good"} == told


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"1",
        b"null",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"detail":"CPU","rate":"1s","clear":' + b"9" * 4_000 + b"}",
        b'{"detail":"CPU","rate":1e400}',
        b'{"detail":"CPU","rate":NaN}',
        b'{"\xff":1}',
        b'{"detail":["CPU"],"rate":{}}',
    ],
)
def test_no_value_is_too_strange(value: bytes) -> None:
    assert 1 <= len(plan_of({"/CONFIG/g/metric/a": value}, ["g"]).mistakes)
    assert 1 <= len(plan_of({"/CONFIG/g/filter/a": value}, ["g"]).filter_mistakes)
    assert plan_of({"/CONFIG/g/metric/a": value}, ["g"]).metrics == ()


@given(
    st.dictionaries(
        st.sampled_from(["detail", "rate", "kind", "where", "param"]), st.integers() | st.text(), max_size=4
    )
)
def test_any_table_gives_a_plan(table: dict[str, object]) -> None:
    import msgspec

    try:
        value = msgspec.json.encode(table)
    except (OverflowError, msgspec.MsgspecError, UnicodeEncodeError):
        return
    plan = plan_of({"/CONFIG/g/metric/a": value, "/CONFIG/g/filter/a": value}, ["g"])
    assert len(plan.metrics) + len(plan.filters) <= 2


def test_the_first_group_wins_where_two_name_the_same() -> None:
    pairs = {"/CONFIG/a/metric/x": CPU, "/CONFIG/b/metric/x": b'{"detail":"MEMORY","rate":"1s"}'}
    assert ["CPU"] == [spec.detail for spec in plan_of(pairs, ["a", "b"]).metrics]


@pytest.mark.parametrize(
    ("key", "value", "is_good"),
    [
        ("/CONFIG/g/metric/a", CPU, True),
        ("/CONFIG/g/metric/a", b'"1s"', False),
        ("/CONFIG/g/filter/a", CPU, False),
        ("/CONFIG/global/heartbeat", b"0", False),
        ("/CONFIG/global/heartbeat", b"0.5", True),
        ("/APP/anything", b"\x00", True),
    ],
)
def test_a_value_can_be_looked_at_before_it_is_written(key: str, value: bytes, is_good: bool) -> None:
    assert is_good == (why_unusable(key, value) is None)
