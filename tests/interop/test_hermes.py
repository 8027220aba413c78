"""The catalog beside the reference upstream, which is run and never read, beside czmq, and beside plain pyzmq.

Each room is a network of its own with loopback alone: upstream binds everything, and broadcasts.
"""

import ast
import json
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.interop.catalog.island import HERE, Island
from tests.interop.moat.peers import Program, until

SERVICE: Final = 'from Hermes.Service import Service; Service(name="Rohan").start()'
BROKER: Final = "from Hermes.CoreCatalogService import CoreCatalogService as C; C().loop.start(display_incoming=False)"
CLIENT: Final = "from Hermes.Client import Client; c = Client(); "
ALONE_S: Final = 20.0


def client(island: Island, *calls: str) -> list[Any]:
    """What a client of upstream's has for these calls, each in the order they are given."""
    said = island.hermes_said(CLIENT + "; ".join(f"print('=', repr({call}))" for call in calls))
    return [ast.literal_eval(line[2:]) for line in said.splitlines() if line.startswith("= ")]


# Our broker


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Island]:
    """A broker of Weft, a watcher of its changes, and a service of upstream's."""
    with Island(tmp_path_factory.mktemp("ours")) as island:
        island.broker()
        watcher = island.woven("watch", "5247")
        until(lambda: '"tick"' in watcher.said(), watcher.said)
        service = island.hermes("rohan", SERVICE)
        until(lambda: "Rohan" in island.ask(""), service.said)
        yield island


def watched(island: Island) -> list[dict[str, Any]]:
    """All that the watcher has heard so far."""
    said = (island.place / "watch.log").read_text("utf-8")
    return [json.loads(line) for line in said[: said.rfind("\n") + 1].splitlines()]


def changes(island: Island, name: str) -> list[str]:
    """What has happened to a service so far."""
    return [line["op"] for line in watched(island) if line["name"] == name]


@pytest.mark.proves("CAT-001", "CAT-011", "BEA-001", "BEA-002")
def test_client_of_upstream_finds_its_service_by_our_broker_and_talks_to_it(ours: Island) -> None:
    calls = (
        "c.get_services()",
        'c.get_services("Rohan")',
        'c.get_services("Nope")',
        'c.request_from_service(name="Rohan")',
    )
    everybody, rohan, nobody, answer = client(ours, *calls)
    assert ["Rohan"] == list(everybody)
    assert everybody["Rohan"] == rohan
    assert {"ip": "127.0.0.1"}.items() <= rohan["interfaces"]["router"].items()
    assert nobody is None
    assert [b"Rohan"] == answer


@pytest.mark.proves("BEA-016", "BEA-017")
def test_service_of_upstream_stays_active_by_probes_alone(ours: Island) -> None:
    until(lambda: changes(ours, "Rohan")[-1:] == ["active"], lambda: f"{changes(ours, 'Rohan')}")
    alone_until = time.monotonic() + ALONE_S
    until(lambda: time.monotonic() > alone_until, "so long nobody asks for it", ALONE_S + 5)
    assert ["register", "suspect", "active"] == changes(ours, "Rohan")
    assert "active" == ours.ask("Rohan")["Rohan"]["_dbp"]["state"]


@pytest.mark.proves("CAT-005", "CAT-006")
def test_req_that_correlates_hears_no_answer_but_that_of_its_last_question(ours: Island) -> None:
    assert ours.ask("--correlate") is True


@pytest.mark.proves("LOG-001", "LOG-002", "LOG-004", "LOG-005")
def test_log_lines_of_pyzmqs_own_handler_reach_the_broker(ours: Island) -> None:
    talker = ours.woven("logger")

    def told() -> list[dict[str, Any]]:
        return list(ours.ask("dbp.logs", '{"service": "talker"}').get("logs", []))

    found = until(lambda: len(logs := told()) >= 4 and logs, talker.said)
    warning, error = (next(line for line in found if line["level"] == level) for level in ("WARNING", "ERROR"))
    assert ("talker", True) == (warning["service"], "disk " in warning["message"])
    assert "of the motor" in error["message"]
    assert [] == [line for line in found if line["message"].endswith("\n")]
    topics = until(lambda: len(heard := _log_topics(ours)) >= 2 and heard, talker.said)
    assert {"logs/WARNING/talker", "logs/ERROR/talker"} == topics, (
        "what is lower can be asked for, and is not passed on"
    )


def _log_topics(island: Island) -> set[str]:
    return {line["topic"] for line in watched(island) if line["topic"].startswith("logs/")}


@pytest.mark.proves("CAT-033", "BEA-016")
def test_service_of_upstream_that_is_killed_is_inactive_until_it_is_back(ours: Island) -> None:
    extra = ours.hermes("gondor", SERVICE.replace("Rohan", "Gondor"))
    until(lambda: "Gondor" in ours.ask(""), extra.said)
    extra.kill()
    until(lambda: "inactive" in changes(ours, "Gondor"), lambda: f"{changes(ours, 'Gondor')}")
    assert ("inactive", "inactive") == tuple(ours.ask("Gondor")[key] for key in ("warning", "state"))
    assert [None] == client(ours, 'c.get_services("Gondor")')
    extra.start()
    until(lambda: "Gondor" in ours.ask("Gondor"), extra.said)
    (answer,) = client(ours, 'c.request_from_service(name="Gondor")')
    assert [b"Gondor"] == answer


# czmq


@pytest.mark.proves("BEA-003")
def test_beacon_of_czmq_leads_to_the_broker_whose_port_it_says(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Island(tmp_path_factory.mktemp("czmq")) as island:
        island.broker("beacons = false\nport = 5261")
        beacon = island.woven("shalom", "SHALOM 5261")
        until(lambda: "says" in beacon.said(), beacon.said)
        found = island.said(sys.executable, "-c", FIND)
        assert ["127.0.0.1", 5261] == json.loads(found)


FIND: Final = """
import asyncio, json
from weft.catalog import find_broker
found = asyncio.run(find_broker(wait_s=10.0))
print(json.dumps([found.host, found.port]))
"""


# Their broker


@pytest.fixture
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Island, Program]]:
    """A broker of upstream's; a fresh one for each test, as it ends of little."""
    with Island(tmp_path_factory.mktemp("theirs")) as island:
        broker = island.hermes("broker", BROKER)
        until(lambda: island.said(sys.executable, "-c", FIND), broker.said)
        yield island, broker


@pytest.mark.proves("BEA-004", "CAT-023")
def test_our_service_is_found_and_asked_by_clients_of_upstream_at_their_broker(theirs: tuple[Island, Program]) -> None:
    island, broker = theirs
    service = island.woven("woven")
    until(lambda: "up as" in service.said() or not service.is_alive, service.said)
    everybody, woven, answer = client(
        island, "c.get_services()", 'c.get_services("Woven")', 'c.request_from_service(name="Woven")'
    )
    assert (["Woven"], woven) == (list(everybody), everybody["Woven"])
    assert "127.0.0.1" == woven["interfaces"]["router"]["ip"]
    assert [b"Woven"] == answer
    assert (True, True) == (service.is_alive, broker.is_alive)


@pytest.mark.proves("BEA-004", "CAT-011", "CAT-024")
def test_our_client_finds_services_of_upstream_at_their_broker_and_leaves_it_alive(
    theirs: tuple[Island, Program],
) -> None:
    island, broker = theirs
    service = island.hermes("rohan", SERVICE)
    look = [sys.executable, str(HERE / "look.py"), "Rohan"]
    seen = until(lambda: (found := json.loads(island.said(*look)))["names"] and found, service.said)
    expected = {"is_legacy": True, "names": ["Rohan"], "same": True, "missing": True, "answered": ["Rohan"]}
    assert expected == seen
    assert broker.is_alive
    assert seen == json.loads(island.said(*look))


def test_one_island_holds_our_and_their_services_and_clients_side_by_side(ours: Island) -> None:
    service = ours.woven("woven")
    until(lambda: "up as" in service.said() or not service.is_alive, service.said)
    (answer,) = client(ours, 'c.request_from_service(name="Woven")')
    assert [b"Woven"] == answer
    seen = json.loads(ours.said(sys.executable, str(HERE / "look.py"), "Rohan", "Woven"))
    assert (False, True, True) == (seen["is_legacy"], seen["same"], seen["missing"])
    assert ["Rohan", "Woven"] == seen["answered"]


@pytest.mark.proves("CAT-051", "BEA-017")
def test_service_of_upstream_that_never_registers_again_is_known_after_our_broker_was_killed(ours: Island) -> None:
    before = ours.ask("dbp.status")["epoch"]
    ours.node.kill()
    ours.node.start()

    def is_heard() -> bool:
        """By an answer to a probe of the new run, and not by what was kept."""
        (rohan,) = (line["record"]["_dbp"] for line in ours.ask("dbp.instances", "Rohan")["records"])
        return ("active", False) == (rohan["state"], rohan["restored"])

    until(is_heard, ours.node.said)
    assert before != ours.ask("dbp.status")["epoch"]
    (answer,) = client(ours, 'c.request_from_service(name="Rohan")')
    assert [b"Rohan"] == answer
