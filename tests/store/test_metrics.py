"""What the store counts and measures, for status and metrics (ADM-030)."""

from typing import Any

import pytest

from tests.store.net import Net
from tests.store.test_acking import Asker, trio
from tests.store.test_watching import behind
from weft.cores.store.linkstates import LinkState
from weft.shell.facts import FACTS, TIMINGS

NAMED = (
    *("events_total{outcome}", "sets_total", "acks_total{level,outcome}", "malformed_total{reason}"),
    *("pings_total{outcome}", "recoveries_total{step}", "resent_total", "repairs_total", "missing{node}", "entries"),
    *("tombstones", "purged_total", "link_up{link,peer}", "dropped_total{reason}", "watch_lag", "replicate_seconds"),
)
"""As the specification names them, after `weft_store_`."""
HAPPENED = ("sets_total", "resent_total", "repairs_total", "purged_total")
"""Shown as `weft_store_happened_total{what}`; `persist_seconds` is `weft_journal_sync_seconds`: all cores share one append."""


def links(net: Net, name: str) -> Any:
    return net[name].store.facts()["links"]


@pytest.mark.proves("ADM-030")
def test_every_metric_of_the_store_has_its_name_and_labels() -> None:
    shown = {f"{fact.metric}{{{','.join(fact.labels)}}}".removesuffix("{}") for fact in FACTS if fact.metric}
    shown |= {metric for metric, _ in TIMINGS.values()}
    assert [] == [name for name in NAMED if name not in HAPPENED and f"weft_store_{name}" not in shown]
    assert "weft_store_happened_total{what}" in shown
    net = trio()
    before = net["a"].store.facts()["counts"]["sets"]
    net["a"].write("x", 1)
    assert before + 1 == net["a"].store.facts()["counts"]["sets"]


@pytest.mark.proves("ADM-030", part="acknowledgements by level and outcome, and how long they took")
def test_acknowledgements_are_counted_and_timed() -> None:
    net = trio()
    asker = Asker(net, "a")
    asker.set("x", "majority")
    net.run_until(lambda: asker.last() is not None, 4, step_s=0.001)
    net.cut({"a"}, {"b", "c"})
    asker.set("y", 3)
    net.run(6)
    facts = net["a"].store.facts()
    assert {"majority:reached": 1, "3:unconfirmed": 1} == facts["acks"]
    took = facts["replicate_seconds"]
    assert 1 == took["count"], "what nobody confirmed took no time that could be told"
    assert 0 < took["sum"] < 4


@pytest.mark.proves("ADM-030", part="links by peer, and what no link could take")
def test_links_are_shown_by_peer_and_what_none_could_take_is_counted() -> None:
    net = trio()
    assert ({"mesh:b": 1, "mesh:c": 1}, {}) == (links(net, "a"), net["a"].store.facts()["dropped"])
    net.cut({"a"}, {"b", "c"})
    net.run(20)
    net["a"].write("x", 1)
    assert {"mesh:b": 0, "mesh:c": 0} == links(net, "a")
    assert net["a"].store.facts()["dropped"]["no-link"] >= 1
    net.heal()
    net.settle()
    assert {"mesh:b": 1, "mesh:c": 1} == links(net, "a")
    assert all(peer.state is LinkState.UP for peer in net["a"].store.mesh.peers.values())


@pytest.mark.proves("ADM-030", part="links by peer: of the broker, once there was one")
def test_the_link_to_a_broker_is_shown_when_it_was_up_once() -> None:
    assert [] == [name for name in links(trio(), "a") if name.startswith("mqtt")]
    assert {"mqtt:broker": 1} == links(trio("mqtt"), "a")


@pytest.mark.proves("ADM-030", part="the lag of the slowest watcher")
def test_the_lag_of_the_slowest_watcher_is_shown() -> None:
    desk, client, _, ahead = behind(500)
    assert 0 < 500 - ahead <= desk.serving.place.lag <= 501
    client.resume()
    desk.settle()
    assert 0 == desk.serving.place.lag
