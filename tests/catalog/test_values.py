"""The last value of each topic, for who comes late."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.listening import HOUR_MS, WALL_S, Broker
from weft.cores.catalog import limits
from weft.cores.catalog.topics import Publisher, Topics, Value
from weft.wire.catalog.messages import DISCONNECT, Publication

TOPICS = st.lists(st.sampled_from([b"", b"a", b"\xfe", b"\xff"]), max_size=3).map(b"".join)


def names(answer: Any) -> list[tuple[str, str]]:
    return [(row["topic"], row["publisher"]) for row in answer["values"]]


@pytest.mark.proves("LVC-002")
@pytest.mark.proves("LVC-003")
def test_the_last_message_of_a_topic_is_kept_verbatim_with_all_its_frames() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    broker.hear(tag, b"t/1", b"old")
    broker.advance(1)
    broker.hear(tag, b"t/1", b"\xff\x00", b"", b"3")
    head, *frames = broker.query(b"dbp.lcv", b"t/1").body
    row = {
        "topic": "t/1",
        "publisher": "thermo",
        "instance": "a",
        "frames": 4,
        "received": WALL_S + 1.0,
        "stale": False,
    }
    assert {"values": [row]} == json.loads(head)
    assert [b"t/1", b"\xff\x00", b"", b"3"] == frames


@pytest.mark.proves("LVC-003")
def test_a_star_asks_for_a_prefix_and_the_frames_stand_one_value_behind_the_other() -> None:
    broker = Broker()
    one, two = broker.register("one"), broker.register("two")
    for tag, topic in ((one, b"t/2"), (one, b"t/1"), (two, b"t/1"), (two, b"u")):
        broker.hear(tag, topic, tag[:3])
    head, *frames = broker.query(b"dbp.lcv", b"t/*").body
    assert [("t/1", "one"), ("t/1", "two"), ("t/2", "one")] == names(json.loads(head))
    assert [b"t/1", b"one", b"t/1", b"two", b"t/2", b"one"] == frames
    assert [("t/1", "one"), ("t/1", "two")] == names(broker.ask(b"dbp.lcv", b"t/1"))
    assert [("t/1", "two")] == names(broker.ask(b"dbp.lcv", b"t/*", b'{"publisher":"two"}'))
    assert 4 == len(broker.ask(b"dbp.lcv", b"*")["values"])
    assert {"values": []} == broker.ask(b"dbp.lcv", b"t")


@pytest.mark.proves("LVC-003")
def test_an_answer_has_at_most_a_thousand_values_and_says_how_many_more_there_are() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    for number in range(1_003):
        broker.hear(tag, b"t/%d" % number)
    answer = broker.query(b"dbp.lcv", b"t/*")
    head = json.loads(answer.body[0])
    assert (1_000, 3, 1_001) == (len(head["values"]), head["more"], len(answer.body))


def test_an_answer_is_no_longer_than_its_limit_but_has_one_value_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    tag = broker.register("thermo")
    for topic in (b"t/1", b"t/2", b"t/3"):
        broker.hear(tag, topic, bytes(100))
    head = broker.ask(b"dbp.lcv", b"t/*")
    assert (3, None) == (len(head["values"]), head.get("more"))
    monkeypatch.setattr(limits, "LISTED_BYTES_MAX", 50)
    head = broker.ask(b"dbp.lcv", b"t/*")
    assert (1, 2) == (len(head["values"]), head["more"])


@pytest.mark.parametrize(
    "body",
    [
        (b"dbp.lcv",),
        (b"dbp.lcv", b"t", b'{"name":"x"}'),
        (b"dbp.lcv", b"t", b"[]"),
        (b"dbp.lcv", b"t", b"{" * 5_000),
        (b"dbp.topics", b'{"prefix":1}'),
        (b"dbp.topics", b"\xff"),
    ],
)
def test_arguments_that_are_none_are_refused(body: tuple[bytes, ...]) -> None:
    assert "bad-argument" == Broker().ask(*body)["code"]


@pytest.mark.proves("LVC-004")
def test_topics_are_told_with_publisher_count_bytes_and_age() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    broker.hear(tag, b"t/1", b"12345")
    broker.hear(tag, b"t/1", b"123")
    broker.advance(2.5)
    broker.hear(tag, b"u", b"")
    row = {"topic": "t/1", "publisher": "thermo", "instance": "a", "count": 2, "bytes": 6, "age_s": 2.5, "stale": False}
    assert [row] == broker.ask(b"dbp.topics", b'{"prefix":"t/"}')["topics"]
    whole = broker.ask(b"dbp.topics")
    assert (2, 2, 7, 0) == (len(whole["topics"]), whole["values"], whole["bytes"], whole["evicted"])


@pytest.mark.proves("LVC-005")
def test_who_subscribes_late_gets_what_is_kept_and_then_what_is_live() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    broker.hear(tag, b"t/1", b"old")
    broker.hear(tag, b"t/1", b"kept", b"too")
    broker.hear(tag, b"u", b"other")
    assert [] == broker.topics(b"lcv/")  # nobody wants it yet
    broker.subscribe(b"lcv/t/")
    broker.hear(tag, b"t/1", b"live")
    broker.hear(tag, b"u", b"other")
    expected = [Publication(b"lcv/t/1", (b"kept", b"too")), Publication(b"lcv/t/1", (b"live",))]
    assert expected == broker.topics(b"lcv/")
    broker.subscribe(b"lcv/t/", is_on=False)
    broker.hear(tag, b"t/1", b"unheard")
    assert expected == broker.topics(b"lcv/")


@pytest.mark.proves("LVC-005")
def test_many_kept_values_are_said_again_over_several_turns_and_never_after_a_newer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "REPLAY_TURN", 10)
    broker = Broker()
    tag = broker.register("thermo")
    for number in range(25):
        broker.hear(tag, b"t/%02d" % number, b"old")
    broker.subscribe(b"lcv/")
    assert 10 == len(broker.topics(b"lcv/"))
    broker.hear(tag, b"t/20", b"new")
    broker.advance(0)
    said = broker.topics(b"lcv/")
    assert 26 == len(said)
    assert [(b"new",), (b"new",)] == [one.body for one in said if one.topic == b"lcv/t/20"]


@pytest.mark.proves("LVC-007")
@pytest.mark.parametrize(("lvc_keep", "expected"), [(True, [True]), (False, [])])
def test_values_of_who_is_inactive_are_stale_until_it_is_removed_or_dropped_at_once(
    lvc_keep: bool, expected: list[bool]
) -> None:
    broker = Broker(lvc_keep=lvc_keep, reap_ns=600 * 10**9)
    broker.hear(broker.register("thermo"), b"t", b"1")
    broker.route(DISCONNECT, b"thermo", b"a")
    assert expected == [row["stale"] for row in broker.ask(b"dbp.lcv", b"t")["values"]]
    broker.advance(601)
    assert ([], 0) == (broker.ask(b"dbp.lcv", b"*")["values"], broker.core.values.bytes)


@pytest.mark.proves("LVC-007")
def test_values_of_who_is_back_are_not_stale() -> None:
    broker = Broker()
    broker.hear(broker.register("thermo"), b"t", b"1")
    broker.route(DISCONNECT, b"thermo", b"a")
    broker.register("thermo", heartbeat=HOUR_MS)
    assert [False] == [row["stale"] for row in broker.ask(b"dbp.lcv", b"t")["values"]]


@pytest.mark.proves("LVC-008")
@pytest.mark.parametrize(("limit", "expected"), [({"values_max": 2}, 2), ({"values_bytes_max": 25}, 2)])
def test_the_value_that_was_heard_longest_ago_makes_room(limit: dict[str, Any], expected: int) -> None:
    broker = Broker(**limit)
    tag = broker.register("thermo")
    for topic in (b"a", b"b", b"a", b"c"):
        broker.hear(tag, topic, bytes(9))
    assert [("a", "thermo"), ("c", "thermo")] == names(broker.ask(b"dbp.lcv", b"*"))
    told = broker.ask(b"dbp.topics")
    assert (expected, 1) == (told["values"], told["evicted"])


def test_a_message_that_is_too_long_is_not_kept_nor_what_it_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VALUE_BYTES_MAX", 10)
    broker = Broker()
    tag = broker.register("thermo")
    broker.hear(tag, b"t", bytes(9))
    assert 1 == len(broker.ask(b"dbp.lcv", b"t")["values"])
    broker.hear(tag, b"t", bytes(10))
    assert [] == broker.ask(b"dbp.lcv", b"t")["values"]
    assert (1, 0) == (broker.drops("lvc_dropped", "too-large"), broker.core.values.bytes)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), TOPICS, st.booleans()), max_size=60),
    TOPICS,
)
def test_a_question_by_prefix_finds_what_a_look_at_every_value_finds(steps: list[Any], prefix: bytes) -> None:
    topics, kept = Topics(), dict[tuple[str, bytes], Value]()
    publishers = {name: Publisher((name, "")) for name in "ab"}
    for name, topic, is_new in steps:
        known = kept.pop((name, topic), None)
        if known is not None:
            topics.drop(known)
        if is_new:
            value = kept[name, topic] = Value(topic, publishers[name])
            topics.add(value)
        expected = {key for key in kept if key[1].startswith(prefix)}
        found = [(value.publisher.key[0], value.topic) for value in topics.with_prefix(prefix)]
        assert (expected, len(expected)) == (set(found), len(found))
        assert len(expected) == topics.count(prefix)
        assert sorted(topic for _, topic in found) == [topic for _, topic in found]
        assert {key for key in kept if key[1] == prefix} == {
            (value.publisher.key[0], value.topic) for value in topics.of_topic(prefix)
        }


def test_ever_new_topics_leave_nothing_behind() -> None:
    broker = Broker(values_max=10)
    tag = broker.register("thermo")
    for number in range(5_000):
        broker.hear(tag, b"t/%d" % number)
    topics = broker.core.values._topics
    assert 10 == len(broker.core.values)
    assert len(topics._by_topic) < 2_100
