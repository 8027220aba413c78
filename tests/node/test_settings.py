"""A node's file: everything that is wrong is said at once, and nothing is half used."""

from typing import Any

import pytest

from weft.base.errors import UserError
from weft.cli.up import EXAMPLE
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.store import Room
from weft.cores.store.core import Store
from weft.node.assembly import build_node
from weft.node.settings import DEFAULT_METRICS, read_document, settings_of
from weft.node.storetable import StoreTable

GOOD: dict[str, Any] = {"node": {"name": "a", "parent": "root"}}


def refused(document: dict[str, Any]) -> str:
    with pytest.raises(UserError) as error:
        settings_of(document)
    assert "bad-settings" == error.value.code
    return error.value.text


def test_the_example_can_be_used() -> None:
    settings = settings_of(read_document(EXAMPLE, "example"))
    assert ("sensor-1", "root", 2, 1) == (
        settings.node.name,
        settings.node.parent,
        len(settings.metrics),
        len(settings.filters),
    )


def test_a_silent_file_measures_the_usual_and_its_level_decides_the_rest() -> None:
    settings = settings_of(GOOD)
    assert sorted(DEFAULT_METRICS) == sorted(spec.name for spec in settings.metrics)
    assert (64 << 20, False) == (settings.journal_bytes, "drain" in settings.runs)
    assert (200_000, 256) == (settings.configuration.keys, settings.configuration.megabytes)
    root = settings_of({"node": {"name": "r", "level": "root"}})
    assert (8192 << 20, True) == (root.journal_bytes, "drain" in root.runs)


def test_all_mistakes_are_said_at_once_with_their_codes() -> None:
    text = refused(
        {
            "node": {"name": "two words", "level": "king", "port": 80},
            "metric": {"x": {"detail": "NOPE", "rate": "soon"}},
            "chains": {"filter": [{"kind": "none"}]},
            "surprise": {},
        }
    )
    for told in ("E15 node.name", "E04 node.level", "E05 node.port", "E02 surprise: ", "metric.x", "filter"):
        assert told in text


@pytest.mark.parametrize("level", ["sensor", "collector"])
def test_a_node_that_names_its_level_and_no_parent_gets_its_place_from_the_root(level: str) -> None:
    settings = settings_of({"node": {"name": "a", "level": level}})
    assert (level, "", ()) == (settings.level, settings.node.parent, settings.metrics)


def test_a_root_with_a_fleets_file_measures_nothing_before_that_is_in_force() -> None:
    node = {"name": "r", "level": "root", "config": "fleet.toml"}
    assert () == settings_of({"node": node}).metrics
    own = {"cpu": {"detail": "CPU", "rate": "1s"}}
    assert ["cpu"] == [spec.name for spec in settings_of({"node": node, "metric": own, "fleet": {"name": "f"}}).metrics]


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ({"name": "a", "level": "root", "parent": "b"}, "node.parent"),
        ({"name": "a", "parent": "b", "port": "many"}, "E04 node.port: "),
        ({"name": "a", "parent": "b", "colour": "red"}, "E02 node.colour: "),
        ({}, "E03 node.name: "),
    ],
)
def test_contradictions_and_wrong_types_are_refused(node: dict[str, Any], told: str) -> None:
    assert told in refused({"node": node})


def test_a_file_that_wants_no_keys_beyond_loopback_has_to_say_it_twice() -> None:
    node = {"name": "a", "parent": "b", "host": "192.0.2.1"}
    assert "allow_insecure" in refused({"node": node, "security": {"mode": "none"}})
    asked = settings_of({"node": node, "security": {"mode": "none", "allow_insecure": True}})
    assert "192.0.2.1" == asked.node.host


@pytest.mark.proves("SEC-044")
@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5_000 + "]" * 5_000, "a." * 50_000 + "a = 1", "x" * (1 << 20) + "x", "a = 1\na = 2", "\x00", "= 3"],
)
def test_a_file_that_is_no_toml_or_beyond_its_bounds_is_refused(text: str) -> None:
    with pytest.raises(UserError) as error:
        read_document(text, "file")
    assert "bad-settings" == error.value.code


def test_how_large_a_configuration_a_node_takes_is_said_in_its_file() -> None:
    settings = settings_of(
        {"node": {"name": "r", "level": "root"}, "configuration": {"keys": 1_000_000, "megabytes": 300}}
    )
    core = build_node(settings, b"r" * 16, 1, "seed").cores["configuration"]
    assert isinstance(core, Configuration)
    assert Room(1_000_000, 300 << 20) == core.store.room


def test_a_table_store_even_an_empty_one_lets_the_node_hold_the_store() -> None:
    assert "store" not in settings_of(GOOD).runs
    holds = settings_of(GOOD | {"store": {}})
    assert holds.store is not None
    assert ("store" in holds.runs, "weft", 27_515) == (True, holds.store.topics, holds.store.client_port(27_510))
    moat = settings_of(GOOD | {"store": {"dialects": ["moat"], "broker": "127.0.0.1:1883", "port": 27_586}})
    assert moat.store is not None
    assert ("moat/kv", 27_586) == (moat.store.topics, moat.store.client_port(27_510))


def test_a_store_without_peers_of_its_own_meets_those_by_whom_its_node_has_joined() -> None:
    """So a machine that was invited needs no more than `[store]`, also when that line comes later."""
    beside = {"node": {"name": "m2", "level": "sensor", "join": ["127.0.0.1:27500"]}}
    own = {"store": {"peers": ["127.0.0.1:27520"]}}
    assert ("127.0.0.1:27500",) == peers_of(beside | {"store": {}})
    assert ("127.0.0.1:27520",) == peers_of(beside | own)


def peers_of(document: dict[str, Any]) -> tuple[str, ...]:
    core = build_node(settings_of(document), b"m" * 16, 1, "seed").cores["store"]
    assert isinstance(core, Store)
    return core.context.settings.peers


def test_a_store_that_cannot_be_is_refused_in_words() -> None:
    wrong: dict[str, Any] = {
        "name": "a b",
        "clock": "never",
        "peers": ["nowhere"],
        "hostmap": {"n1": "x"},
        "dialects": ["moat"],
        "broker": "10.0.0.1:1883",
        "cycle": "1s",
        "absent_max": "59m",
    }
    text = refused(GOOD | {"store": wrong})
    for part in (
        "store.name",
        "store.clock",
        "store.peers",
        "store.hostmap",
        "open = true",
        "store.cycle",
        "absent_max",
    ):
        assert part in text
    assert "E03 store.broker" in refused(GOOD | {"store": {"dialects": ["moat"]}})
    assert "E03 store.broker" in refused(GOOD | {"store": {"mesh": False}})
    assert "set node.host" in refused(GOOD | {"store": {"peers": ["10.0.0.7:27500"]}})
    assert "E04 store.dialects" in refused(GOOD | {"store": {"dialects": ["serf"]}})


def test_how_long_a_node_may_be_away_is_a_span_or_off() -> None:
    assert "off" == StoreTable().absent_max
    holds = settings_of(GOOD | {"store": {"absent_max": "90d"}})
    assert holds.store is not None
    assert "90d" == holds.store.absent_max
