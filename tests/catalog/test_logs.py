"""Log records of all services: in one form, in order, kept, published and remembered."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.listening import WALL_S, Broker, Process, own_form, vectors
from weft.base.now import SECOND
from weft.base.records import StreamRecord
from weft.cores.catalog import limits
from weft.cores.catalog.messages import HoldBack
from weft.wire.catalog.messages import Publication

WARN = b"log.thermo.WARNING"


def messages(answer: Any) -> list[str]:
    return [row["message"] for row in answer["logs"]]


# Forms


@pytest.mark.proves("LOG-002")
@pytest.mark.parametrize("row", vectors("pubhandler-"), ids=lambda row: str(row["id"]))
def test_what_a_pubhandler_says_is_understood(row: dict[str, Any]) -> None:
    broker = Broker()
    tag = broker.register("Rohan", topics=[])
    topic, body = (bytes.fromhex(frame) for frame in row["frames"])
    broker.subscribe(b"logs/")
    broker.hear(tag, topic, body)
    (log,) = broker.ask(b"dbp.logs")["logs"]
    assert [row["means"]["to_bus"]] * 2 == [bool(broker.kept()), bool(broker.topics(b"logs/"))]
    assert (row["means"]["service"], row["means"]["level"]) == (log["service"], log["level"].lower())
    assert body.decode().rstrip("\n") == log["message"]


@pytest.mark.proves("LOG-002")
@pytest.mark.parametrize(
    ("topic", "body", "expected"),
    [
        (b"log.s.INFO", b"text\n", ("s", "INFO", "", "text")),
        (b"log.s.INFO", b"two\n\n", ("s", "INFO", "", "two\n")),
        (b"log.s.INFO", b"\xffx", ("s", "INFO", "", "\ufffdx")),
        (b"log.a.b.WARN.motor.left", b"x", ("a.b", "WARNING", "motor.left", "x")),
        (b"log.s.FATAL.DEBUG", b"x", ("s", "CRITICAL", "DEBUG", "x")),
        (b"log.INFO", b"x", ("thermo", "INFO", "", "x")),
        (b"log.s.ERROR", b'{"v":2,"message":"x"}', ("s", "ERROR", "", '{"v":2,"message":"x"}')),
        (b"log.s.ERROR", b'{"v":1,"message":"\\ud800"}', ("s", "ERROR", "", '{"v":1,"message":"\\ud800"}')),
        (b"log.s.ERROR", b'{"v":1}', ("s", "ERROR", "", '{"v":1}')),
        (b"log.bad\0name.INFO", b"x", ("thermo", "INFO", "", "x")),
    ],
)
def test_the_first_token_that_is_a_level_is_it_and_what_is_no_json_of_ours_is_text(
    topic: bytes, body: bytes, expected: tuple[str, ...]
) -> None:
    broker = Broker()
    broker.hear(broker.register("thermo"), topic, body)
    (log,) = broker.ask(b"dbp.logs")["logs"]
    assert expected == (log["service"], log["level"], log["logger"], log["message"])


@pytest.mark.proves("LOG-004")
def test_what_a_plain_handler_says_below_the_threshold_of_its_record_is_remembered_and_goes_nowhere() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    for level in ("INFO", 20, None, "ERROR", "LOUD"):
        broker.update("thermo", bus_level=level)
        broker.hear(tag, b"log.thermo.INFO", f"under {level}".encode())
        broker.hear(tag, WARN, f"over {level}".encode())
    expected = ["under INFO", "over INFO", "under 20", "over 20", "over None", "over ERROR", "over LOUD"]
    assert expected == [log["message"] for log in broker.kept()]
    assert 10 == len(broker.ask(b"dbp.logs")["logs"])
    broker.hear(tag, b"log.thermo.INFO", own_form(1, level="INFO"))
    assert "message 1" == broker.kept()[-1]["message"]  # a service of this library has judged for itself


@pytest.mark.proves("LOG-005")
def test_the_normal_form_stands_in_the_journal_on_the_xpub_and_in_answers() -> None:
    broker = Broker(net="green")
    tag = broker.register("thermo", topics=[])
    broker.subscribe(b"logs/")
    broker.hear(tag, b"log.thermo.ERROR", own_form(1, "hot", ts=WALL_S - 0.25, level="ERROR", fields={"t": [1]}))
    expected: dict[str, Any] = {
        "ts": WALL_S - 0.25,
        "received": float(WALL_S),
        "net": "green",
        "level": "ERROR",
        "service": "thermo",
        "instance": "a",
        "logger": "m",
        "message": "hot",
        "seq": 1,
        "fields": {"t": [1]},
    }
    (record,) = broker.logged
    assert expected == json.loads(record.payload)
    assert [Publication(b"logs/ERROR/thermo", (record.payload,))] == broker.topics(b"logs/")
    assert {"logs": [expected]} == broker.ask(b"dbp.logs")
    about = {"level": "ERROR", "fmt": "json"}
    assert (
        StreamRecord(
            3, bytes(16), 1, 1, WALL_S * SECOND - SECOND // 4, WALL_S * SECOND, "thermo", record.payload, about
        )
        == record
    )


@pytest.mark.proves("LOG-005")
def test_the_stamp_of_a_wrong_clock_stands_in_the_record_and_is_not_believed() -> None:
    broker = Broker()
    broker.hear(broker.register("thermo"), WARN, own_form(1, ts=WALL_S + 86_401))
    assert ([WALL_S * SECOND], WALL_S + 86_401) == ([record.at for record in broker.logged], broker.kept()[0]["ts"])


@pytest.mark.proves("LOG-003")
def test_a_record_cannot_claim_to_be_of_another_instance_and_says_who_published_it() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    broker.hear(tag, WARN, own_form(1, service="bank", instance="safe"))
    broker.hear(tag, b"log.bank.ERROR", b"x")
    rows = [(log["service"], log["instance"], log["fields"]) for log in broker.kept()]
    assert [("bank", "a", {"publisher": "thermo"})] * 2 == rows


def test_a_long_message_is_cut_and_fields_that_nobody_could_read_are_left_out() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    broker.hear(tag, WARN, own_form(1, "x" * (limits.LOG_BYTES_MAX + 1), fields={"a": 1}))
    broker.hear(
        tag, WARN, own_form(2, "deep").replace(b'"fields": {}', b'"fields": {"a":' + b"[" * 40 + b"]" * 40 + b"}")
    )
    broker.hear(tag, WARN, own_form(3, ts="yesterday", level="LOUD"))
    rows = [(len(log["message"]), log["fields"], log["ts"], log["level"]) for log in broker.kept()]
    expected: list[Any] = [
        (limits.LOG_BYTES_MAX, {}, 1.5, "WARNING"),
        (4, {}, 1.5, "WARNING"),
        (9, {}, None, "WARNING"),
    ]
    assert expected == rows


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["v", "ts", "level", "service", "instance", "logger", "message", "seq", "fields"])
BODIES = st.binary(max_size=20) | st.dictionaries(KEYS, JSON).map(
    lambda said: json.dumps({"v": 1, "message": "m", **said}).encode()
)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.binary(max_size=8), st.lists(BODIES, max_size=3)), max_size=6), st.lists(BODIES, max_size=2)
)
def test_whatever_a_publisher_says_each_record_is_one_that_can_be_read(said: list[Any], refill: list[bytes]) -> None:
    broker = Broker()
    tag = broker.register("thermo")
    for number, (sub, bodies) in enumerate(said):
        broker.hear(tag, (WARN, b"log." + sub, WARN + sub)[number % 3], *bodies)
        broker.refill(b"10.0.0.1:9", *refill)
        broker.refill(b"10.0.0.1:9", b'{"logs":[' + b",".join(refill) + b"]}")
    broker.advance(20)
    answer = broker.ask(b"dbp.logs", b'{"limit":1000}')["logs"]
    for log in answer:
        assert {"ts", "received", "net", "level", "service", "instance", "logger", "message", "seq", "fields"} <= set(
            log
        )
    assert [log for log in answer if log["level"] != "INFO"] == [log for log in broker.kept() if log["level"] != "INFO"]


# Those who ask


@pytest.mark.proves("LOG-005")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["0 hot", "1 cold", "2 hot", "3 cold"]),
        ({"level": "warning"}, ["1 cold", "2 hot", "3 cold"]),
        ({"level": "ERROR"}, ["2 hot", "3 cold"]),
        ({"service": "b"}, ["1 cold", "3 cold"]),
        ({"contains": "hot"}, ["0 hot", "2 hot"]),
        ({"since": WALL_S + 2}, ["2 hot", "3 cold"]),
        ({"service": "a", "level": "INFO", "contains": "2"}, ["2 hot"]),
    ],
)
def test_records_can_be_asked_for_by_level_service_time_and_text(asked: dict[str, Any], expected: list[str]) -> None:
    broker = Broker()
    tags = {name: broker.register(name) for name in "ab"}
    for number, (name, level, text) in enumerate(
        [("a", "INFO", "hot"), ("b", "WARNING", "cold"), ("a", "ERROR", "hot"), ("b", "FATAL", "cold")]
    ):
        broker.hear(tags[name], f"log.{name}.{level}".encode(), f"{number} {text}".encode())
        broker.advance(1)
    assert expected == messages(broker.ask(b"dbp.logs", json.dumps(asked).encode()))


def test_the_newest_of_those_asked_for_are_told_and_how_many_more_there_are() -> None:
    broker = Broker(logs_max=5)
    tag = broker.register("thermo")
    for number in range(8):
        broker.hear(tag, WARN, b"%d" % number)
    answer = broker.ask(b"dbp.logs", b'{"limit":2}')
    assert (["6", "7"], 3) == (messages(answer), answer["more"])


@pytest.mark.parametrize(
    "asked", [b'{"level":"LOUD"}', b'{"limit":0}', b'{"limit":1001}', b'{"colour":1}', b"[]", b"\xff"]
)
def test_a_question_for_records_that_is_none_is_refused(asked: bytes) -> None:
    assert "bad-argument" == Broker().ask(b"dbp.logs", asked)["code"]


def test_what_nobody_subscribed_to_is_not_published() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    broker.subscribe(b"logs/ERROR/")
    broker.hear(tag, WARN, b"w")
    broker.hear(tag, b"log.thermo.ERROR", b"e")
    assert [b"logs/ERROR/thermo"] == [said.topic for said in broker.topics(b"logs/")]


# Too much


@pytest.mark.proves("LOG-007")
def test_more_than_ten_equal_records_in_ten_seconds_become_one_that_says_how_many() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    for _ in range(25):
        broker.hear(tag, WARN, b"again")
        broker.advance(0.1)
    broker.hear(tag, WARN, b"other")
    assert ["again"] * 10 + ["other"] == [log["message"] for log in broker.kept()]
    broker.advance(10)
    assert ("again", 15) == (broker.kept()[-1]["message"], broker.kept()[-1]["repeated"])
    assert 12 == len(broker.kept())
    broker.hear(tag, WARN, b"again")
    assert "repeated" not in broker.kept()[-1]


@pytest.mark.proves("LOG-007")
def test_records_that_differ_in_service_level_logger_or_text_are_not_equal() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    long = b"x" * 200
    for topic, body in ((WARN, b"m"), (b"log.b.WARNING", b"m"), (b"log.thermo.ERROR", b"m"), (WARN + b".l", b"m")):
        for _ in range(10):
            broker.hear(tag, topic, body)
    for _ in range(10):
        broker.hear(tag, WARN, long + b"1")
        broker.hear(tag, WARN, long + b"2")
    broker.advance(20)
    assert (60, 0) == (len(broker.kept()), broker.drops("log_repeated", ""))


def test_windows_of_equal_records_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOGS_MAX", 5)
    broker = Broker()
    tag = broker.register("thermo")
    for _ in range(12):
        broker.hear(tag, WARN, b"first")
    for number in range(20):
        broker.hear(tag, WARN, b"%d" % number)
    assert 2 == next(log["repeated"] for log in broker.kept() if "repeated" in log)
    assert len(broker.core.logs._repeats._windows) <= 6


@pytest.mark.proves("LOG-008")
def test_a_source_that_says_too_much_is_sampled_and_others_are_not() -> None:
    broker = Broker()
    flood, quiet = broker.register("flood"), broker.register("quiet")
    for number in range(1_500):
        broker.hear(flood, b"log.flood.ERROR", b"%d" % number)
        if number % 100 == 0:
            broker.hear(quiet, b"log.quiet.ERROR", b"%d" % number)
    services = [log["service"] for log in broker.kept()]
    assert (1_000, 15) == (services.count("flood"), services.count("quiet"))
    assert 500 == broker.drops("log_dropped", "sampled")
    broker.advance(1)
    broker.hear(flood, b"log.flood.ERROR", b"after")
    assert "after" == broker.kept()[-1]["message"]


@pytest.mark.proves("LOG-008")
def test_what_was_not_sampled_is_no_hole() -> None:
    broker = Broker()
    process = Process(broker, broker.register("thermo"))
    for _ in range(1_200):
        process.log()
    broker.advance(1)
    process.log()
    assert ([], 0, 1_001) == (broker.asked, broker.drops("log_gaps", ""), len(broker.kept()))


# The journal


def test_while_the_journal_is_full_records_wait_and_those_below_warning_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LOGS_MAX", 4)
    broker = Broker(logs_max=100)
    tag = broker.register("thermo", bus_level="DEBUG")
    broker.core.command(HoldBack(is_full=True), broker.now)
    for topic, text in (
        (WARN, "w1"),
        (b"log.t.INFO", "i1"),
        (WARN, "w2"),
        (b"log.t.DEBUG", "d1"),
        (WARN, "w3"),
        (WARN, "w4"),
    ):
        broker.hear(tag, topic, text.encode())
    broker.advance(1)
    assert ([], 2) == (broker.kept(), broker.drops("log_dropped", "queue"))
    broker.core.command(HoldBack(is_full=False), broker.now)
    broker.advance(0.001)
    assert ["w1", "w2", "w3", "w4"] == [log["message"] for log in broker.kept()]
    assert 6 == len(broker.ask(b"dbp.logs")["logs"])
    assert [1, 2, 3, 4] == [record.sequence for record in broker.logged]


def test_a_turn_keeps_no_more_than_the_journal_takes_however_many_messages_it_has() -> None:
    """A message of control characters is six times as long in JSON; all of a turn is one batch of the journal."""
    broker = Broker()
    tags = [broker.register(name) for name in ("thermo", "b", "c")]
    for number in range(20):
        for tag in tags:
            broker.hear(tag, WARN, b"%d" % number + b"\x01" * (limits.LOG_BYTES_MAX - 10))
    size = sum(len(record.payload) for record in broker.logged)
    assert 4 << 20 < size + 400_000
    assert size < (4 << 20) + 400_000
    broker.advance(0.01)
    assert 60 == len(broker.logged)
