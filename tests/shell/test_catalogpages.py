"""The catalog asked by HTTP, in the shape of Consul's API (CAT-074)."""

import json
from typing import Any

import pytest

from tests.catalog.listening import HOUR_MS, Broker
from tests.shell.test_http import ask, get
from weft.cores.catalog import limits
from weft.shell import catalogpages
from weft.shell.catalogpages import routes_of
from weft.wire.catalog.messages import DISCONNECT


def page(broker: Broker, path: str) -> tuple[int, dict[str, str], Any]:
    """Status, headers and what was said."""
    (answer,) = ask(get(path), routes=routes_of(broker.core))
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().lower().split("\r\n")
    said = json.loads(body) if body[:1] in (b"{", b"[") else body.decode()
    return int(first.split()[1]), dict(line.partition(": ")[::2] for line in lines), said


def told(broker: Broker, path: str) -> Any:
    status, _, said = page(broker, path)
    assert 200 == status
    return said


def two() -> Broker:
    broker = Broker()
    broker.register("web", port=80, tags=["lab", "v1"], metadata={"room": "k1"}, health="passing")
    broker.register("web", id="b", port=81, tags=["roof"], health="warning")
    broker.register("thermo", ip="127.0.0.1", port=7)
    return broker


@pytest.mark.proves("CAT-074", part="an HTTP reader")
def test_names_are_listed_with_their_tags() -> None:
    assert {"thermo": [], "web": ["lab", "roof", "v1"]} == told(two(), "/v1/catalog/services")


@pytest.mark.proves("CAT-074", part="an HTTP reader")
def test_a_service_is_shown_with_the_place_where_it_is_called() -> None:
    broker = two()
    status, headers, (first, second) = page(broker, "/v1/catalog/service/web")
    expected = {
        "Node": "10.0.0.1",
        "Address": "10.0.0.1",
        "Datacenter": "",
        "ServiceID": "a",
        "ServiceName": "web",
        "ServiceAddress": "10.0.0.1",
        "ServicePort": 80,
        "ServiceTags": ["lab", "v1"],
        "ServiceMeta": {"room": "k1"},
        "ModifyIndex": 1,
    }
    assert (200, expected, "b") == (status, first, second["ServiceID"])
    assert str(broker.core.context.index) == headers["x-consul-index"]
    assert [] == told(broker, "/v1/catalog/service/nobody")


@pytest.mark.proves("CAT-074", part="an HTTP reader")
def test_health_is_that_of_the_broker_and_only_what_passes_may_be_asked_for() -> None:
    broker = two()
    broker.register("web", id="c", port=82, heartbeat=HOUR_MS)
    broker.route(DISCONNECT, b"web", b"c")
    rows = told(broker, "/v1/health/service/web")
    assert [("a", "passing"), ("b", "warning"), ("c", "critical")] == [
        (row["Service"]["ID"], row["Checks"][0]["Status"]) for row in rows
    ]
    assert "left" == rows[2]["Checks"][0]["Output"]
    assert ["a"] == [row["Service"]["ID"] for row in told(broker, "/v1/health/service/web?passing")]
    assert 3 == len(told(broker, "/v1/health/service/web?passing=false"))


def test_a_name_in_an_address_may_have_any_character() -> None:
    broker = Broker()
    broker.register("a b/ü", port=1)
    assert ["a b/ü"] == [row["ServiceName"] for row in told(broker, "/v1/catalog/service/a%20b%2F%C3%BC")]
    assert [] == told(broker, "/v1/catalog/service/%FF")
    assert 404 == page(broker, "/v1/catalog/service/a/b")[0]


@pytest.mark.proves("CAT-074", part="an HTTP reader: bounded, and nothing is written")
def test_more_names_than_a_page_has_are_refused_with_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogpages, "LIST_MAX", 1)
    status, _, said = page(two(), "/v1/catalog/services")
    assert (413, "too-many") == (status, said["error"])
    assert limits.LIST_MAX >= 1_000
    (answer,) = ask(b"PUT /v1/catalog/register HTTP/1.1\r\nHost: localhost\r\n\r\n", routes=routes_of(two().core))
    assert answer.startswith(b"HTTP/1.1 405")
