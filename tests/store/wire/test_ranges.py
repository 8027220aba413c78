"""Sets of ticks on the wire (COD-004)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.wire.computed import COMPUTED, group, payload
from weft.base.errors import PeerError
from weft.base.ranges import RangeSet
from weft.wire.store.pack import pack, unpack
from weft.wire.store.ranges import TICK_MAX, of_wire, ticks_of_wire, ticks_to_wire, to_wire

RECEIVED = group("rng-in-")


@pytest.mark.proves("COD-004")
@pytest.mark.parametrize("name", [name for name in group("rng-") if name not in RECEIVED])
def test_set_is_written_as_computed_and_read_back(name: str) -> None:
    means = COMPUTED[name]["means"]
    ticks = RangeSet((tick, tick) for tick in means["set"])
    assert means["ranges"] == to_wire(ticks)
    assert payload(COMPUTED[name]) == pack(to_wire(ticks))
    assert ticks == of_wire(unpack(payload(COMPUTED[name])))


@pytest.mark.proves("COD-004")
@pytest.mark.parametrize("name", RECEIVED)
def test_set_is_read_in_any_order_or_refused(name: str) -> None:
    outcome = COMPUTED[name]["means"]["outcome"]
    ranges = unpack(payload(COMPUTED[name]))
    if outcome == "malformed":
        with pytest.raises(PeerError) as caught:
            of_wire(ranges)
        assert "malformed" == caught.value.code
    else:
        expected = [(tick, tick) for tick in outcome] if outcome != "ok" else [(1, TICK_MAX)]
        assert RangeSet(expected) == of_wire(ranges)


@pytest.mark.proves("COD-004")
@pytest.mark.parametrize("ranges", [7, None, {}, "12", b"1"])
def test_what_is_no_list_is_a_bad_field(ranges: Any) -> None:
    with pytest.raises(PeerError) as caught:
        of_wire(ranges)
    assert "bad-field" == caught.value.code


def test_too_many_ranges_are_refused_before_they_are_looked_at() -> None:
    with pytest.raises(PeerError) as caught:
        of_wire([0] * 100_001)
    assert "too-large" == caught.value.code


@pytest.mark.proves("COD-004")
@given(st.lists(st.integers(1, 40) | st.tuples(st.integers(1, 40), st.integers(1, 8)), max_size=12))
def test_set_of_ranges_is_the_set_of_their_numbers(drawn: list[Any]) -> None:
    ranges = [[item[0], item[0] + item[1]] if isinstance(item, tuple) else item for item in drawn]
    model = {tick for item in ranges for tick in (range(*item) if isinstance(item, list) else (item,))}
    found = of_wire(ranges)
    assert sorted(model) == [tick for first, last in found for tick in range(first, last + 1)]
    assert found == of_wire(to_wire(found))
    said = to_wire(found)
    starts = [item[0] if isinstance(item, list) else item for item in said]
    assert starts == sorted(starts)
    assert [] == [item for item in said if isinstance(item, list) and item[1] - item[0] < 2]


def test_nodes_without_ticks_are_not_named() -> None:
    ticks = {"a": RangeSet([(1, 3)]), "b": RangeSet()}
    assert {"a": [[1, 4]]} == ticks_to_wire(ticks)
    assert {"a": RangeSet([(1, 3)])} == ticks_of_wire(ticks_to_wire(ticks))
