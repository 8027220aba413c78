"""Topics of filters: what enters and leaves them, who keeps them alive, and what a change costs (CAT-041)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.test_publishing import events
from tests.catalog.watchrig import Broker
from weft.cores.catalog.filters import Filter
from weft.cores.catalog.instances import Instance

FILTERS = [
    vector["means"]
    for line in (Path(__file__).parents[1] / "vectors" / "catalog-computed.jsonl").read_text("utf-8").splitlines()
    if (vector := json.loads(line))["id"].startswith("filter-")
]
LAB = {"tags": ["lab"]}


def topic_of(broker: Broker, given: dict[str, Any]) -> str:
    """The topic of a filter, which is watched from now on."""
    return str(broker.watch(given)["topic"])


# The answer


@pytest.mark.proves("CAT-041")
@pytest.mark.parametrize("means", FILTERS, ids=lambda means: means["topic"])
def test_a_filter_has_the_topic_of_the_vectors(means: dict[str, Any]) -> None:
    assert means["topic"] == topic_of(Broker(), means["filter"])


@pytest.mark.proves("CAT-041")
def test_a_watch_is_answered_with_topic_epoch_index_and_what_matches() -> None:
    broker = Broker()
    broker.register("thermo", "t1", tags=["lab"], port=9)
    broker.register("hygro")
    answer = broker.watch(LAB)
    assert {"topic", "epoch", "index", "records"} == answer.keys()
    assert (broker.context.epoch, 2) == (answer["epoch"], answer["index"])
    [told] = answer["records"]
    assert ("thermo", "t1", 9) == (told["name"], told["instance"], told["record"]["port"])
    assert 2 == len(broker.watch({})["records"])
    assert ["hygro"] == [told["name"] for told in broker.watch({"name": "hygro"})["records"]]


@pytest.mark.proves("CAT-034")
@pytest.mark.parametrize("given", [{"colour": "red"}, {"tags": "lab"}, {"state": ["asleep"]}])
def test_a_filter_that_is_none_is_a_bad_argument(given: dict[str, Any]) -> None:
    broker = Broker()
    assert "bad-argument" == broker.watch(given)["code"]
    assert 0 == len(broker.publishing._watching)


@pytest.mark.proves("CAT-080")
def test_beyond_so_many_filters_the_next_is_refused_and_those_there_are_not() -> None:
    broker = Broker(topics_max=2)
    broker.watch({"name": "a"})
    broker.watch({"name": "b"})
    assert "limit" == broker.watch({"name": "c"})["code"]
    assert "topic" in broker.watch({"name": "b"})


# Events


@pytest.mark.proves("CAT-041")
def test_what_begins_to_match_enters_and_what_ceases_to_leaves_each_behind_the_event_before_of_the_topic() -> None:
    broker = Broker()
    topic = topic_of(broker, LAB)
    broker.register("hygro")
    broker.register("thermo", tags=["lab"])
    broker.update("hygro", tags=["x", "lab"])
    broker.state("hygro", "suspect")
    broker.update("thermo", tags=["x"])
    broker.update("thermo", tags=None)
    broker.remove("hygro")
    broker.remove("thermo")
    assert [
        "enter thermo 2<0",
        "enter hygro 3<2",
        "suspect hygro 4<3",
        "leave thermo 5<4",
        "remove hygro 7<5",
    ] == events(broker, topic)


@pytest.mark.proves("CAT-041")
def test_a_state_or_a_health_can_make_something_enter_and_leave() -> None:
    broker = Broker()
    broker.register("thermo")
    active, well = topic_of(broker, {"state": "active"}), topic_of(broker, {"health": ["passing", "unknown"]})
    broker.state("thermo", "suspect")
    broker.health("thermo", "critical")
    broker.state("thermo", "active")
    broker.health("thermo", "passing")
    said = broker.published()
    shown = {
        topic: [(one.meta["op"], one.meta["prev"]) for one in said if one.topic == topic] for topic in (active, well)
    }
    assert [("leave", 0), ("enter", 2), ("health", 4)] == shown[active]
    assert [("suspect", 0), ("leave", 2), ("enter", 3)] == shown[well]


@pytest.mark.proves("CAT-041")
def test_what_leaves_shows_what_it_has_become() -> None:
    broker = Broker()
    broker.register("thermo")
    topic = topic_of(broker, {"state": "active"})
    broker.published()
    broker.state("thermo", "inactive", reason="left")
    _, left = broker.published()
    assert (topic, "leave", "left") == (left.topic, left.meta["op"], left.meta["reason"])
    assert left.record is not None
    assert "inactive" == left.record["_dbp"]["state"]


def test_what_matched_before_the_watch_began_leaves_it_too() -> None:
    broker = Broker()
    broker.register("thermo", tags=["lab"])
    topic = topic_of(broker, LAB)
    broker.update("thermo", tags=[])
    assert ["leave thermo 2<0"] == events(broker, topic)


# What a change costs


def test_a_change_is_tried_only_on_filters_of_its_name_of_its_tags_and_of_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker()
    for number in range(300):
        broker.watch({"name": f"job-{number}"})
        broker.watch({"tags": [f"tag-{number}", "common"]})
    broker.watch({"state": "active"})
    broker.watch({"name": "job-*"})
    tried: list[bytes] = []
    matches = Filter.matches

    def noted(self: Filter, instance: Instance) -> bool:
        tried.append(self.canonical)
        return matches(self, instance)

    monkeypatch.setattr(Filter, "matches", noted)
    broker.register("job-7", tags=["common", "tag-9", "tag-3"])
    assert {
        b'{"name":"job-7"}',
        b'{"tags":["tag-9","common"]}',
        b'{"tags":["tag-3","common"]}',
        b'{"state":"active"}',
        b'{"name":"job-*"}',
    } == set(tried)
    assert 5 == len(tried)


# Who keeps a topic


@pytest.mark.proves("CAT-041")
def test_a_topic_that_nobody_subscribes_to_goes_after_a_minute() -> None:
    broker = Broker()
    topic = topic_of(broker, LAB)
    broker.register("thermo", tags=["lab"])
    broker.advance(59.9)
    assert 1 == len(broker.publishing._watching)
    broker.advance(0.2)
    assert 0 == len(broker.publishing._watching)
    assert 1 == broker.context.counters["topics_dropped", ""]
    broker.published()
    broker.update("thermo", tags=[])
    assert [] == events(broker, topic)
    assert {} == broker.publishing._watching._matched


@pytest.mark.proves("CAT-041")
@pytest.mark.parametrize("size", [0, len("watch/"), len("watch/1")])
def test_a_topic_stays_as_long_as_somebody_subscribes_to_a_prefix_of_it(size: int) -> None:
    broker = Broker()
    prefix = topic_of(broker, LAB)[:size].encode()
    broker.subscribe(prefix)
    broker.advance(300)
    assert 1 == len(broker.publishing._watching)
    broker.subscribe(prefix, is_on=False)
    broker.advance(125)
    assert 0 == len(broker.publishing._watching)


@pytest.mark.proves("CAT-041")
def test_who_subscribes_before_it_asks_keeps_its_topic() -> None:
    broker = Broker()
    name = Filter(LAB).topic.encode()
    broker.subscribe(name)
    broker.watch(LAB)
    broker.advance(300)
    assert 1 == len(broker.publishing._watching)
    broker.subscribe(name, is_on=False)
    broker.advance(59.9)
    assert 1 == len(broker.publishing._watching)
    broker.advance(0.2)
    assert 0 == len(broker.publishing._watching)


def test_asking_again_gives_a_topic_another_minute() -> None:
    broker = Broker()
    broker.watch(LAB)
    broker.advance(50)
    broker.watch(LAB)
    broker.advance(50)
    assert 1 == len(broker.publishing._watching)


def test_a_topic_that_was_dropped_meanwhile_shows_that_something_may_be_missing() -> None:
    broker = Broker()
    broker.watch(LAB)
    broker.register("thermo", tags=["lab"])
    broker.advance(61)
    broker.update("thermo", tags=[])
    broker.published()
    topic = topic_of(broker, LAB)
    broker.register("thermo", tags=["lab"])
    assert ["enter thermo 3<2"] == events(broker, topic)


@pytest.mark.parametrize("given", [{}, LAB, {"name": "thermo"}])
def test_a_place_that_became_free_is_of_the_next_filter_alone(given: dict[str, Any]) -> None:
    broker = Broker(topics_max=1)
    broker.register("thermo", tags=["lab"])
    broker.watch(given)
    broker.advance(61)
    topic = topic_of(broker, {"name": "hygro"})
    broker.published()
    broker.update("thermo", port=1)
    broker.register("hygro")
    assert ["enter hygro 3<1"] == events(broker, topic)


@pytest.mark.parametrize("given", [{}, LAB, {"name": "thermo"}])
def test_changes_go_on_when_the_last_topic_is_gone(given: dict[str, Any]) -> None:
    broker = Broker()
    broker.watch(given)
    broker.advance(61)
    broker.published()
    broker.register("thermo", tags=["lab"])
    assert ["register thermo 1<0"] == events(broker, "")


def test_subscriptions_to_what_is_not_there_are_remembered_up_to_a_bound() -> None:
    broker = Broker(topics_max=10)
    watching = broker.publishing._watching
    for number in range(50):
        broker.subscribe(f"watch/{number:016x}".encode())
        broker.subscribe(f"other/{number}".encode())
    assert 10 == len(watching._others)
    for number in range(50):
        broker.subscribe(f"watch/{number:016x}".encode(), is_on=False)
    assert {} == watching._others
