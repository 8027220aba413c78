"""A node that is away for too long is dropped by itself, where that is wished and most are there (DEL-006)."""

from typing import Any

import pytest

from tests.store.net import Net
from weft.base.now import SECOND
from weft.cores.store.messages import NodeDropped


def absent(**settings: Any) -> Net:
    """c is away, a and b are not."""
    net = Net("abc", seed=6, link="mesh", settings={"absent_max_ns": 3_600 * SECOND, **settings})
    net.found("a")
    net.run(60)
    net["c"].write("mine", 1)
    net.run(10)
    net.cut({"a", "b"}, {"c"})
    return net


@pytest.mark.proves("DEL-006", part="absent_max")
def test_who_is_away_for_too_long_is_dropped_once_and_comes_back_as_another() -> None:
    net = absent()
    net.run(3_500)
    assert [] == [event for name in "ab" for event in net[name].told if isinstance(event, NodeDropped)]
    net.run(300)
    told = [event for name in "ab" for event in net[name].told if isinstance(event, NodeDropped)]
    assert [NodeDropped("c", 2)] * 2 == told
    assert [] == [event for event in net["c"].told if isinstance(event, NodeDropped)], "it is one of three"
    net.heal()
    net.settle(400)
    assert ("c~2", [b"\x01"] * 3) == (net["c"].store.context.name, [net[name].get("mine") for name in "abc"])


@pytest.mark.proves("DEL-006", part="absent_max is off unless it is asked for, and half of a store drops nobody")
def test_nobody_is_dropped_for_being_away_where_that_is_not_wished_or_most_are_away() -> None:
    off = absent(absent_max_ns=0)
    off.run(4_000)
    half = absent()
    half.cut({"a"}, {"b"}, {"c"})
    half.run(4_000)
    assert [] == [
        event for net in (off, half) for name in "abc" for event in net[name].told if isinstance(event, NodeDropped)
    ]
