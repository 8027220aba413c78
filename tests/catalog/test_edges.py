"""What a peer can do to the broker by saying odd things: make it remember much, talk to itself, or to the wrong one."""

import json

import pytest

from tests.catalog.rig import Broker
from weft.base.effects import Send, Source
from weft.base.now import SECOND
from weft.cores.catalog import limits
from weft.cores.catalog.context import EVENTS, PROBE, VALUES, Asker
from weft.cores.catalog.messages import HoldBack
from weft.cores.catalog.topics import Publisher, Topics, Value
from weft.wire.catalog.messages import Publication, Subscription, Taken

PLACE = {"ip": "127.0.0.1", "port": 7_000}
SOMEBODY = Asker(b"somebody", "REQ", "127.0.0.1", (), b"")


def subscribe(broker: Broker, topic: bytes, *, is_on: bool = True) -> None:
    broker.core.receive(Subscription(is_on=is_on, topic=topic), Source(EVENTS, b""), broker.now)


# Whom it calls


@pytest.mark.proves("CAT-016", "BEA-016")
@pytest.mark.parametrize(
    ("said", "probed"),
    [
        ({"interfaces": {"pub": PLACE}}, set()),
        ({"interfaces": {"pub": PLACE, "router": {**PLACE, "port": 7_001}}}, {"127.0.0.1:7001"}),
        ({"interfaces": {"pub": PLACE}, "ip": "127.0.0.1", "port": 7_002}, {"127.0.0.1:7002"}),
    ],
)
def test_only_who_can_answer_is_asked(said: dict[str, object], probed: set[str]) -> None:
    """A PUB answers nothing, so it is not called."""
    broker = Broker()
    broker.req().say(b"UwU", {"name": "a", **said})
    broker.pass_time(3)
    assert probed == set(broker.probed)


@pytest.mark.proves("LOG-006")
def test_a_publisher_without_an_endpoint_is_not_asked_for_lost_records() -> None:
    broker = Broker()
    broker.req().say(b"UwU", {"name": "a", "interfaces": {"pub": PLACE}})
    (tag,) = broker.core.sources.feeds
    for number in (1, 3):
        body = json.dumps({"v": 1, "message": "hot", "seq": number}).encode()
        broker.core.receive(Taken((b"log.a.WARNING", body)), Source(VALUES, tag), broker.now)
    said = [effect for effect in broker.turn() if isinstance(effect, Send) and effect.channel == PROBE]
    assert [] == said
    assert 1 == broker.counted("log_gaps")


@pytest.mark.proves("CAT-081", "BEA-016")
def test_many_that_fall_silent_at_once_are_not_called_in_one_go() -> None:
    """Each call may need a socket, and everybody else waits meanwhile."""
    broker = Broker()
    for number in range(100):
        broker.core.registry.enter(
            broker.core.registry.plan(
                json.dumps({"name": f"s{number}", "ip": "127.0.0.1", "port": 7_000 + number}).encode(), SOMEBODY
            )
        )
    broker.skip(1.5)
    turns = []
    while len(set(broker.probed)) < 100:
        before = len(broker.probed)
        broker.core.wake(broker.now)
        broker.turn()
        turns.append(len(broker.probed) - before)
        broker.skip(max(0, (broker.core.deadline() or 0) - broker.now.mono) / SECOND)
    assert 32 == max(turns)
    assert len(turns) < 20


# Who talks to whom


@pytest.mark.proves("CAT-006", "CAT-020")
def test_what_a_dealer_was_is_not_what_a_req_of_its_identity_is() -> None:
    """Other peers are NEW or IGNORED only; a program that comes back with another socket says so by its type."""
    broker = Broker()
    dealer, req = broker.dealer(), broker.req()
    req.identity = dealer.identity
    dealer.say(b"UwU", {"name": "a", "id": "1"})
    assert ["a"] == list(req.ask(b"a"))
    broker.pass_time(1.6)
    assert [] == req.heard()
    dealer.say(b"</3")
    assert ["unknown"] == [req.ask(b"zz")["state"]]


@pytest.mark.proves("LVC-005", "CAT-081")
def test_a_broker_that_listens_to_itself_does_not_echo_for_ever() -> None:
    """Whoever registers the broker's own XPUB as a publisher makes it hear what it says."""
    broker = Broker()
    broker.req().say(b"UwU", {"name": "a", "id": "1", "interfaces": {"pub": {"ip": "127.0.0.1", "port": 5_247}}})
    (tag,) = broker.core.sources.feeds
    subscribe(broker, b"")
    heard: list[bytes] = []
    waiting = [Publication(b"tick", (b"{}", b""))]
    while waiting and len(heard) < 10:
        said = waiting.pop()
        heard.append(said.topic)
        broker.core.receive(Taken((said.topic, *said.body)), Source(VALUES, tag), broker.now)
        effects = broker.core.effects()
        topics = [effect.message for effect in effects if isinstance(effect, Send) and effect.channel == EVENTS]
        waiting += [message for message in topics if message.topic.startswith(b"lcv/")]
    assert b"lcv/tick" in heard
    assert len(heard) < 10


@pytest.mark.proves("CAT-081", "LVC-005")
def test_a_burst_of_subscriptions_says_what_is_kept_not_a_time_each() -> None:
    """Every subscriber hears all that is said; whoever subscribes again and again must not keep the broker from others."""
    broker = Broker()
    broker.req().say(b"UwU", {"name": "a", "id": "1", "interfaces": {"pub": PLACE}})
    (tag,) = broker.core.sources.feeds
    for number in range(10):
        broker.core.receive(Taken((b"%d" % number, b"v")), Source(VALUES, tag), broker.now)
    broker.turn()
    for _ in range(50):
        subscribe(broker, b"lcv/")
    assert 10 == len(broker.turn())
    for number in range(limits.REPLAYS_MAX):
        subscribe(broker, b"lcv/%d" % number)
    effects = len(broker.turn())
    broker.pass_time(0.1)
    subscribe(broker, b"lcv/")
    assert 10 == effects
    assert 10 == len(broker.turn())


# What it remembers


@pytest.mark.proves("CAT-081")
def test_a_long_time_is_not_remembered() -> None:
    broker = Broker()
    dealer = broker.dealer()
    dealer.say(b"UwU", {"name": "a", "id": "1"}, time=b"t" * (1 << 20))
    assert len(broker.core.connections.time_of(dealer.identity)) < 100
    dealer.say(b"<3", b"a", b"1", time=b"t" * (1 << 20))
    assert len(broker.core.connections.time_of(dealer.identity)) < 100


@pytest.mark.proves("CAT-081")
def test_long_subscriptions_are_not_remembered() -> None:
    broker = Broker()
    long = b"x" * (1 << 20)
    for prefix in (b"lcv/", b"logs/", b"watch/"):
        subscribe(broker, prefix + long)
    watching, values, logs = broker.core.publishing._watching, broker.core.values, broker.core.logs
    kept = [*watching._others, *values._wanted._topics, *logs._wanted._topics]
    assert [] == [topic for topic in kept if len(topic) > 1 << 10]


@pytest.mark.proves("LVC-005")
def test_a_subscription_that_is_too_long_to_remember_is_served_all_the_same() -> None:
    broker = Broker()
    broker.req().say(b"UwU", {"name": "a", "id": "1", "interfaces": {"pub": PLACE}})
    (tag,) = broker.core.sources.feeds
    topic = b"t" * (limits.SUBSCRIPTION_BYTES_MAX + 1)
    subscribe(broker, b"lcv/" + topic)
    broker.core.receive(Taken((topic, b"1")), Source(VALUES, tag), broker.now)
    said = [effect.message.topic for effect in broker.core.effects() if isinstance(effect, Send)]
    assert b"lcv/" + topic in said


@pytest.mark.proves("CAT-081")
def test_a_subscription_for_which_there_was_no_room_is_served_and_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SUBSCRIBED_TOPICS_MAX", 1)
    broker = Broker()
    broker.req().say(b"UwU", {"name": "a", "id": "1", "interfaces": {"pub": PLACE}})
    (tag,) = broker.core.sources.feeds
    for topic in (b"lcv/one", b"lcv/second", b"lcv/three"):
        subscribe(broker, topic)
    subscribe(broker, b"lcv/second", is_on=False)
    broker.core.receive(Taken((b"three", b"3")), Source(VALUES, tag), broker.now)
    said = [effect.message.topic for effect in broker.core.effects() if isinstance(effect, Send)]
    assert b"lcv/three" in said


@pytest.mark.proves("CAT-081", "LVC-008")
def test_topics_that_are_gone_take_no_room() -> None:
    topics, publisher = Topics(), Publisher(("a", "1"))
    for number in range(200):
        value = Value(b"%d" % number + b"x" * (1 << 20), publisher)
        topics.add(value)
        topics.drop(value)
    assert sum(map(len, topics._by_topic)) <= (16 << 20) + (2 << 20)


@pytest.mark.proves("CAT-081", "LOG-006")
def test_records_behind_a_hole_are_bounded_by_their_bytes() -> None:
    broker = Broker()
    broker.req().say(b"UwU", {"name": "a", **PLACE, "interfaces": {"pub": {**PLACE, "port": 7_001}}})
    (tag,) = broker.core.sources.feeds
    text = "x" * limits.LOG_BYTES_MAX
    for number in (1, *range(3, 1_100)):
        if number == limits.LOG_RATE_MAX:  # else the rest is sampled
            broker.skip(1)
        body = json.dumps({"v": 1, "message": text, "seq": number}).encode()
        broker.core.receive(Taken((b"log.a.WARNING", body)), Source(VALUES, tag), broker.now)
    assert broker.core.logs._held_bytes <= (64 << 20) + (64 << 10) * 2
    assert 1 == broker.counted("log_gaps")


# What it refuses


@pytest.mark.proves("CAT-050", "CAT-080")
def test_a_full_journal_turns_nobody_away_who_says_nothing_new() -> None:
    """Else services that only reconnect would be evicted."""
    broker = Broker()
    record = {"name": "a", "id": "1", "tags": ["x"]}
    broker.req().say(b"UwU", record)
    broker.core.command(HoldBack(is_full=True), broker.now)
    assert [b"OwO"] == broker.dealer().commands(b"UwU", record)
    assert [b"u.u"] == broker.req().commands(b"UoU", {"name": "a", "tags": ["x"]})
    assert "limit" == broker.req().code(b"UwU", {**record, "tags": ["y"]})
    assert "limit" == broker.req().code(b"UoU", {"name": "a", "tags": ["y"]})
    assert "limit" == broker.req().code(b"UwU", {"name": "b"})
    assert [("register", "a")] == broker.changes


# When it is woken


@pytest.mark.proves("BEA-015")
def test_who_comes_back_by_a_lookup_is_missed_in_time() -> None:
    broker = Broker()
    dealer = broker.dealer()
    dealer.say(b"UwU", {"name": "a", "id": "1", "heartbeat": 50})
    broker.pass_time(10.33)
    before = len(broker.rows)
    asked_at = broker.now.wall
    dealer.say(b"u_U", b"zz")
    broker.pass_time(2)
    after = [(row.attributes["op"], round((row.at - asked_at) / 1e6)) for row in broker.rows[before:]]
    assert [("active", 0), ("suspect", 75), ("inactive", 150)] == after
