"""Bridges at the shell: none leaves the machine without keys, and doors for calls are bound and closed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zmq

from weft.base.errors import UserError
from weft.base.keys import Holder, Keys, KeyTable, Role
from weft.cores.catalog.messages import OpenRelay, RelayOpened
from weft.node.catalogtable import BridgeTable
from weft.node.settings import settings_of
from weft.shell.catalogdoors import CatalogDoors, check_bridge, check_role
from weft.shell.catalogrelays import Relays, reached_at
from weft.shell.sockets import Context, Socket


@pytest.mark.proves("BRI-012", part="the dialler")
def test_a_bridge_to_another_machine_needs_keys() -> None:
    far, near = BridgeTable(to=("10.0.0.7:5249",)), BridgeTable(to=("127.0.0.1:5249", "[::1]:5249"))
    with pytest.raises(UserError) as refused:
        check_bridge(far, is_safe=False)
    assert "insecure-bridge" == refused.value.code
    check_bridge(far, is_safe=True)
    check_bridge(near, is_safe=False)


@pytest.mark.proves("BRI-012", part="a node whose key may not bridge says so at its start, and what to type")
def test_a_key_that_may_not_bridge_ends_the_start_of_a_node_that_dials_another_machine() -> None:
    far, near = BridgeTable(to=("10.0.0.7:5249",)), BridgeTable(to=("127.0.0.1:5249",))
    sensor, collector, program = (
        Holder(b"m" * 16, "m2", frozenset({role}), (), 0, ()) for role in (Role.SENSOR, Role.COLLECTOR, Role.BRIDGE)
    )
    with pytest.raises(UserError, match="weft invite --role collector --names m2") as refused:
        check_role(far, sensor)
    assert "bridge-role" == refused.value.code
    check_role(near, sensor)
    for may in (collector, program, None):
        check_role(far, may)


@pytest.mark.proves(
    "BRI-012", part="the bridge's door stands where other machines reach it, whatever the own key was before"
)
def test_a_closed_nodes_bridge_listens_at_its_address_although_its_catalog_stays_on_loopback(tmp_path: Path) -> None:
    """A collector that was invited again does not find its new key in the configuration of before: it was dialled in vain."""
    settings = settings_of(
        {
            "node": {"name": "c", "host": "10.0.0.4"},
            "catalog": {"host": "127.0.0.1", "net": "a", "bridge": {"export": ["*"]}},
        }
    )
    runner = SimpleNamespace(performers={}, doors={})
    for is_closed, expected in ((True, "10.0.0.4"), (False, "127.0.0.1")):
        bound: list[tuple[str, str]] = []

        def serve_at(channel: str, host: str, port: int, bound: list[tuple[str, str]] = bound) -> bool:
            bound.append((channel, host))
            return port == 5_249

        keys = Keys("P" * 40, "S" * 40) if is_closed else None
        credentials = SimpleNamespace(is_closed=is_closed, keys=keys, table=KeyTable())
        links = SimpleNamespace(credentials=credentials, serve_at=serve_at)
        doors = CatalogDoors(settings, runner, links, tmp_path)  # type: ignore[arg-type]  # what it asks of them
        assert settings.catalog is not None
        assert settings.catalog.bridge is not None
        assert doors._bridge(settings.catalog.bridge, 5_249) == 5_249
        assert [("catalog-bridge", expected)] == bound


@pytest.mark.proves("BRI-004", part="the settings")
@pytest.mark.parametrize(
    ("table", "code"),
    [({"bridge": {}}, "E03 catalog.net"), ({"net": "a", "bridge": {"to": ["nowhere"]}}, "E05 catalog.bridge.to")],
)
def test_a_bridge_that_cannot_be_is_named_when_the_file_is_read(table: dict[str, object], code: str) -> None:
    with pytest.raises(UserError, match=code):
        settings_of({"catalog": table})


def test_who_listens_everywhere_is_reached_at_an_address_of_the_machine() -> None:
    assert ("127.0.0.1", "10.0.0.4") == (
        reached_at("localhost").replace("localhost", "127.0.0.1"),
        reached_at("10.0.0.4"),
    )
    assert "0.0.0.0" != reached_at("0.0.0.0")


def test_a_relay_without_a_free_port_is_watched_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its monitor stays, and ends the node's own end: a closed socket cannot be told to say nothing."""
    monkeypatch.setattr("weft.shell.catalogrelays.SPARE_PORTS", ())
    context: Context = zmq.Context()
    watched: list[Socket] = []
    credentials = SimpleNamespace(serve=lambda _: None, watch=watched.append, ignore=watched.remove)
    orders: list[Any] = []
    runner = SimpleNamespace(performers={}, doors={}, order=lambda _, order: orders.append(order))
    Relays("0.0.0.0", runner, SimpleNamespace(context=context, credentials=credentials))  # type: ignore[arg-type]  # what it asks of them
    runner.performers[OpenRelay](OpenRelay(b"tag"))
    context.term()
    assert ([RelayOpened(b"tag", "", 0)], []) == (orders, watched)
