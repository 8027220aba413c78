"""Which group gets a node, and where in it: named, by network, by pattern, by label; spread over collectors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.test_states import core
from weft.cores.topology.atlas import Atlas, Group, NodeRecord, is_group_name, node_key, value_of
from weft.cores.topology.groups import Directory, Guest

WEB = Guest(b"w" * 16, "web1.lab:27500", name="w1")


def find(guest: Guest, **groups: Any) -> str | None:
    return Directory({name: Group(**settings) for name, settings in groups.items()}).find(guest)


@pytest.mark.proves("TOP-010")
@pytest.mark.parametrize(
    "endpoint, labels, expected",
    [
        ("10.0.0.7:27500", {}, "exact"),
        ("10.0.0.8:27500", {}, "near"),
        ("10.0.9.8:27500", {}, "wide"),
        ("web1.lab:27500", {}, "pattern"),
        ("web1.lab:27510", {}, "any_port"),
        ("db1.lab:27500", {"rack": "r7"}, "label"),
        ("db1.lab:27500", {"rack": "r8"}, None),
        ("[2001:db8::7]:27500", {}, "six"),
        ("10.0.0.66:27500", {}, "wide"),
    ],
)
def test_exact_before_longest_network_before_pattern_before_label(
    endpoint: str, labels: dict[str, str], expected: str | None
) -> None:
    groups: dict[str, dict[str, Any]] = {
        "any_port": {"members": ("web*",)},
        "exact": {"members": ("10.0.0.7:27500",)},
        "label": {"labels": {"rack": "r7"}},
        "near": {"members": ("10.0.0.0/24",), "exclude": ("10.0.0.66",)},
        "pattern": {"members": ("web*.lab:27500",)},
        "six": {"members": ("[2001:db8::7]:27500",)},
        "wide": {"members": ("10.0.0.0/8",)},
    }
    assert expected == find(Guest(b"n" * 16, endpoint, labels=tuple(labels.items())), **groups)


def test_a_group_without_members_wants_nobody_and_a_star_everybody() -> None:
    assert None is find(WEB, empty={})
    assert "all" == find(WEB, all={"members": ("*",)})
    assert "web" == find(WEB, all={"members": ("*",)}, web={"members": ("web*",)})


@pytest.mark.proves("CFG-020")
def test_group_names_are_bounded_and_a_record_holds_one_node() -> None:
    assert [True, True, False, False, False, False] == [
        is_group_name(name) for name in ("g1", "_a.b-c", "global", "root", "a/b", "x" * 64)
    ]
    value = value_of(NodeRecord("10.0.0.5:27500", "leaf", 2, "10.0.0.1:27500", 3, "n"))
    assert (
        b'{"endpoint":"10.0.0.5:27500","incarnation":3,"level":"leaf","name":"n","parent":"10.0.0.1:27500","tier":2}'
        == value
    )


def test_the_longest_record_fits_one_write() -> None:
    name, host = "n" * 63, "h" * 100
    key = node_key("g" * 63, b"n" * 16)
    value = value_of(NodeRecord(f"{host}:27500", "branch", 8, f"{host}:27500", 10**6, name))
    assert len(key) + len(value) <= 500
    host = "host-0001.rack-17.example.org"
    assert len(value_of(NodeRecord(f"{host}:27500", "branch", 8, f"{host}:27500", 10**6, name))) + len(key) <= 400


@given(
    st.lists(st.tuples(st.text("/TOPCNFIGabg1_noderm", max_size=40), st.none() | st.binary(max_size=40)), max_size=8)
)
def test_whatever_stands_in_the_store_is_read_or_counts_as_absent(pairs: list[tuple[str, bytes | None]]) -> None:
    atlas = Atlas()
    atlas.apply(tuple(pairs), 1)
    atlas.apply(tuple((key, None) for key, _ in pairs), 2)
    assert ({}, {}, None) == (atlas.nodes, atlas.groups, atlas.root)


@pytest.mark.parametrize("value", [b"", b"[]", b"7", b'{"endpoint":7}', b"\xff", b'["a"', b'{"fanout":0}', b"1e999"])
def test_a_value_that_cannot_be_read_counts_as_absent(value: bytes) -> None:
    atlas = Atlas()
    keys = [
        "/TOPO/root",
        f"/TOPO/g/node/{'0' * 32}",
        "/CONFIG/g/fanout",
        "/CONFIG/g/parent",
        "/CONFIG/global/dead_after",
    ]
    atlas.apply(tuple((key, value) for key in keys), 1)
    assert (None, {}) == (atlas.root, atlas.nodes)
    assert 64 == atlas.groups.get("g", Group()).fanout or value == b"7"


@pytest.mark.parametrize(
    ("said", "taken"), [(b"0", 64), (b"-1", 64), (b"1", 1), (b"1000", 1_000), (b"1001", 64), (b"true", 64)]
)
def test_a_fanout_out_of_range_counts_as_absent(said: bytes, taken: int) -> None:
    atlas = Atlas()
    atlas.apply((("/CONFIG/g/fanout", said),), 1)
    assert taken == atlas.groups.get("g", Group()).fanout


def test_a_ring_of_groups_ends() -> None:
    atlas = Atlas()
    atlas.apply((("/CONFIG/a/parent", b'"b"'), ("/CONFIG/b/parent", b'"a"')), 1)
    assert 9 == atlas.depth("a")
    assert ("a", "b") == atlas.below("a")
    made = core()
    made.context.atlas.apply((("/CONFIG/a/parent", b'"b"'), ("/CONFIG/b/parent", b'"a"')), 8)
    assert [made.context.endpoint] == made.registry.planner.above("a")


def test_the_times_of_the_fleet_are_those_of_its_configuration() -> None:
    made = core()
    made.context.atlas.apply((("/CONFIG/global/heartbeat", b"0.5"), ("/CONFIG/global/dead_after", b"4")), 8)
    assert (500_000_000, 2_000_000_000, 300_000_000) == (
        made.context.beat_ns,
        made.context.dead_ns,
        made.context.election_ns,
    )
