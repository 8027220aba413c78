"""Whom the broker listens to, and for what."""

from typing import Any

import pytest

from tests.catalog.listening import HOUR_MS, Broker
from weft.cores.catalog import limits
from weft.cores.catalog.messages import Ports
from weft.wire.catalog.messages import DISCONNECT


def subscriptions(broker: Broker) -> list[tuple[str, tuple[bytes, ...]]]:
    return [(link.endpoint, link.topics) for link in broker.links.values()]


@pytest.mark.proves("LVC-001")
@pytest.mark.proves("LOG-001")
@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({}, (b"",)),
        ({"topics": None}, (b"",)),
        ({"topics": []}, (b"log.",)),
        ({"topics": ["temp/", "hum/"]}, (b"temp/", b"hum/", b"log.")),
        ({"topics": ["temp/", "temp/", "log."]}, (b"temp/", b"log.")),
        ({"topics": ["", "temp/"]}, (b"", b"temp/")),
    ],
)
def test_topics_are_prefixes_and_logs_are_heard_even_of_who_has_none(record: dict[str, Any], expected: Any) -> None:
    broker = Broker()
    broker.register("thermo", **record)
    assert [("10.0.0.1:5300", expected)] == subscriptions(broker)


@pytest.mark.proves("LVC-001")
@pytest.mark.parametrize(
    ("interfaces", "expected"),
    [
        ({"pub": {"ip": "10.0.0.1", "port": 1}}, ["10.0.0.1:1"]),
        ({"data": {"ip": "10.0.0.1", "port": 2, "type": "PUB"}}, ["10.0.0.1:2"]),
        ({"router": {"ip": "10.0.0.1", "port": 3}, "sub": {"ip": "10.0.0.1", "port": 4, "type": "SUB"}}, []),
        (
            {"pub": {"ip": "10.0.0.1", "port": 1}, "b": {"ip": "10.0.0.1", "port": 5, "type": "PUB"}},
            ["10.0.0.1:1", "10.0.0.1:5"],
        ),
        ({"pub": {"ip": "10.0.0.1", "port": 1}, "b": {"ip": "10.0.0.1", "port": 1, "type": "PUB"}}, ["10.0.0.1:1"]),
        ({"pub": {"ip": "fd00::7", "port": 1}}, ["[fd00::7]:1"]),
        ({"pub": {"ip": "127.0.0.1", "port": 1}}, ["10.0.0.1:1"]),
        ({"pub": {"ip": "0.0.0.0", "port": 1}}, ["10.0.0.1:1"]),
        ({"pub": {"ip": "publisher.example", "port": 1}}, []),
        ({"pub": {"port": 1}}, []),
    ],
)
def test_publishers_are_called_pub_or_say_so_and_are_reached_where_answers_say(
    interfaces: Any, expected: list[str]
) -> None:
    broker = Broker()
    broker.register("thermo", interfaces=interfaces)
    assert expected == [link.endpoint for link in broker.links.values()]


@pytest.mark.proves("LVC-001")
def test_an_update_moves_the_subscription_and_only_if_it_changes_it() -> None:
    broker = Broker()
    broker.register("thermo")
    broker.update("thermo", tags=["green"])
    assert (1, [("10.0.0.1:5300", (b"",))]) == (broker.opened, subscriptions(broker))
    broker.update("thermo", topics=["t/"])
    assert (2, [("10.0.0.1:5300", (b"t/", b"log."))]) == (broker.opened, subscriptions(broker))
    broker.update("thermo", interfaces={"pub": {"ip": "10.0.0.1", "port": 5301}})
    assert (3, [("10.0.0.1:5301", (b"t/", b"log."))]) == (broker.opened, subscriptions(broker))
    broker.update("thermo", interfaces=None)
    assert [] == subscriptions(broker)


@pytest.mark.proves("LVC-001")
def test_nobody_listens_to_who_is_inactive_until_it_is_back() -> None:
    broker = Broker(reap_ns=0)
    broker.register("thermo", heartbeat=1000)
    broker.advance(2)
    assert 1 == len(broker.links)  # it is only suspect
    broker.advance(2)
    assert {} == broker.links
    broker.register("thermo", heartbeat=HOUR_MS)
    assert 1 == len(broker.links)
    broker.route(DISCONNECT, b"thermo", b"a")
    assert {} == broker.links


def test_who_was_restored_is_listened_to_once_the_broker_serves() -> None:
    before = Broker()
    before.register("thermo")
    after = Broker(is_open=False, before=before.core.condense())
    assert {} == after.links
    after.core.command(Ports(5246, 5247), after.now)
    after.pump()
    assert [("10.0.0.1:5300", (b"",))] == subscriptions(after)


def test_publishers_beyond_the_limit_wait_until_another_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SOURCES_MAX", 2)
    broker = Broker()
    for name in ("a", "b", "c", "d"):
        broker.register(name)
    assert [b"a\0a\0pub", b"b\0a\0pub"] == list(broker.links)
    broker.route(DISCONNECT, b"c", b"a")
    broker.route(DISCONNECT, b"a", b"a")
    assert [b"b\0a\0pub", b"d\0a\0pub"] == list(broker.links)


def test_what_a_closed_socket_still_said_is_dropped_and_counted() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    broker.route(DISCONNECT, b"thermo", b"a")
    broker.hear(tag, b"t", b"1")
    assert (1, []) == (broker.drops("dropped", "no-source"), broker.ask(b"dbp.topics")["topics"])


def test_a_log_is_no_value_and_what_is_no_log_is_one_if_it_was_wanted() -> None:
    broker = Broker()
    everything = broker.register("all")
    nothing = broker.register("none", topics=[])
    for tag in (everything, nothing):
        broker.hear(tag, b"log.x.ERROR", b"text")
        broker.hear(tag, b"log.position", b"7")
    assert [("log.position", "all")] == [
        (row["topic"], row["publisher"]) for row in broker.ask(b"dbp.topics")["topics"]
    ]
    assert (2, 1) == (len(broker.logged), broker.drops("dropped", "no-log"))
