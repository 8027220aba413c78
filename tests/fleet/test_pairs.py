"""TOML, keys, TOML: what a file says is what is replicated, and can be written down again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleet.fleets import EXAMPLE, fleets, texts
from weft.base.paths import is_key
from weft.base.settings import span_ns
from weft.cores.topology.atlas import Atlas
from weft.node.fleet import fleet_of, read_fleet
from weft.node.fleetkeys import canonical, from_pairs, to_pairs
from weft.node.fleetparts import Fleet
from weft.node.fleettext import to_toml


@pytest.mark.proves("CFG-070")
def test_the_example_of_the_format_as_keys() -> None:
    pairs = dict(to_pairs(fleet_of(EXAMPLE, "example")))
    expected = {
        "/CONFIG/global/dead_after": b"5",
        "/CONFIG/global/heartbeat": b"2",
        "/CONFIG/global/name": b'"lab"',
        "/CONFIG/site/alert/loud": b'{"for":"5m","metric":"net","when":"> 1e6"}',
        "/CONFIG/site/collectors": b'["10.0.0.2:27500","10.0.0.3:27500"]',
        "/CONFIG/site/members": b'["10.0.0.0/24"]',
        "/CONFIG/site/metric/net": b'{"aggregate":["sum","max"],"detail":"NET_IF","rate":"1s"}',
        "/CONFIG/web/alert/big": (b'{"clear":"900 MiB","metric":"nginx_mem","severity":"critical","when":"> 1 GiB"}'),
        "/CONFIG/web/alert/loud": b'{"for":"5m","metric":"net","when":"> 1e6"}',
        "/CONFIG/web/exclude": b'["web9.lab"]',
        "/CONFIG/web/fanout": b"32",
        "/CONFIG/web/filter/busy": b'{"above":1000000.0,"kind":"threshold","where":{"name":"net"}}',
        "/CONFIG/web/labels": b'{"role":"web"}',
        "/CONFIG/web/members": b'["web*.lab:27500","[2001:db8::7]:27500"]',
        "/CONFIG/web/metric/net": b'{"detail":"NET_IF","rate":"100ms"}',
        "/CONFIG/web/metric/nginx_mem": b'{"detail":"PROC_MEM","param":"nginx","rate":"10s","threshold":">500000000"}',
        "/CONFIG/web/parent": b'"site"',
    }
    assert expected == pairs


@pytest.mark.prove("many files")
@pytest.mark.proves("CFG-070")
@given(fleets())
def test_toml_keys_toml_is_stable(fleet: Fleet) -> None:
    pairs = to_pairs(fleet)
    again, mistakes = from_pairs(pairs)
    assert () == mistakes
    assert pairs == to_pairs(again)
    text = to_toml(again)
    if fleet.groups:  # a fleet without groups cannot be written: its text means the group of all
        reading = read_fleet(text)
        assert () == reading.errors
        assert reading.fleet is not None
        assert pairs == to_pairs(reading.fleet)
        assert text == to_toml(reading.fleet)


@pytest.mark.prove("many files")
@pytest.mark.proves("CFG-070")
@given(fleets())
def test_keys_are_keys_and_values_are_canonical(fleet: Fleet) -> None:
    for key, value in to_pairs(fleet):
        assert is_key(key)
        assert value == canonical(json.loads(value))


@pytest.mark.proves("CFG-070")
def test_what_most_groups_measure_stands_once() -> None:
    text = to_toml(fleet_of(EXAMPLE, "example"))
    assert 1 == text.count("[metric.net]")
    assert 1 == text.count("[group.site.metric.net]") + text.count("[group.web.metric.net]")


@pytest.mark.proves("CHN-070", part="filters of all nodes in the fleet's file")
def test_a_filter_of_all_nodes_stands_under_global_and_comes_back() -> None:
    text = '[global.filter.hot]\nabove = 90.0\nkind = "threshold"\n'
    pairs = dict(to_pairs(fleet_of(text, "example")))
    assert b'{"above":90.0,"kind":"threshold"}' == pairs["/CONFIG/global/filter/hot"]
    fleet, mistakes = from_pairs(pairs.items())
    assert ((), True) == (mistakes, text in to_toml(fleet))
    wrong = read_fleet(text.replace("threshold", "treshold")).errors
    assert [("E04", 3)] == [(mistake.code, mistake.line) for mistake in wrong]


@given(st.lists(st.tuples(texts.map(lambda text: f"/CONFIG/{text}"), st.binary(max_size=20))))
def test_any_pairs_give_a_fleet_and_mistakes(pairs: list[tuple[str, bytes]]) -> None:
    fleet, mistakes = from_pairs(pairs)
    assert len(pairs) >= len(mistakes)
    assert isinstance(to_toml(fleet), str)


def test_pairs_that_no_file_can_say_are_named() -> None:
    pairs = [
        ("/CONFIG/g/members", b"[1]"),
        ("/CONFIG/g/colour", b"1"),
        ("/CONFIG/global/colour", b"1"),
        ("/CONFIG/root/members", b"[]"),
        ("/TOPO/root", b"{}"),
        ("/CONFIG/g/metric/cpu", b"{"),
    ]
    _, mistakes = from_pairs(pairs)
    assert sorted(key for key, _ in pairs if key != "/TOPO/root") == [text.partition(": ")[0] for text in mistakes]


@pytest.mark.prove("many files")
@pytest.mark.proves("CFG-070")
@given(fleets())
def test_the_tree_reads_what_the_file_says(fleet: Fleet) -> None:
    atlas = Atlas()
    atlas.apply(to_pairs(fleet), 1)
    assert sorted(fleet.groups) == sorted(atlas.groups)
    for name, group in fleet.groups.items():
        known = atlas.groups[name]
        told = ("members", "exclude", "collectors", "labels", "parent", "prefer")
        assert [getattr(group, field) for field in told] == [getattr(known, field) for field in told]
        assert group.fanout in (None, known.fanout)
    assert fleet.times.get("dead_after") == atlas.dead_after
    heartbeat = span_ns(fleet.times["heartbeat"]) if "heartbeat" in fleet.times else None
    assert heartbeat == atlas.heartbeat_ns
