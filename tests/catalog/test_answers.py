"""What a lookup is answered (CAT-017, CAT-030..033)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.entered import WALL, Entered
from weft.cores.catalog import answers
from weft.cores.catalog.book import Book
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.states import State

WALL_S = WALL / 1e9


def ids(record: dict[str, Any]) -> list[str]:
    return [found["_dbp"]["instance"] for found in record["instances"]]


@pytest.mark.proves("CAT-017")
def test_a_record_is_what_its_sender_said_and_what_the_broker_says_of_it() -> None:
    broker = Entered(net="blue")
    broker.enter("A", ip="1.2.3.4", port=9, x=[None], heartbeat=500, seen_at="10.0.0.4")
    about = {"state": "active", "health": "unknown", "since": WALL_S, "interval_ms": 500, "observed_ip": "10.0.0.4"}
    about |= {"instance": "1.2.3.4:9", "index": 1, "net": "blue"}
    expected = {"A": {"ip": "1.2.3.4", "port": 9, "x": [None], "heartbeat": 500, "_dbp": about}}
    assert expected == broker.ask("A") == broker.ask("") == broker.ask() == broker.ask("A", "") == broker.ask("", "A")


@pytest.mark.proves("CAT-016")
@pytest.mark.parametrize("rewrite, ip", [("loopback", "10.0.0.4"), ("never", "127.0.0.1"), ("always", "10.0.0.4")])
def test_an_answer_says_the_address_that_others_can_reach(rewrite: str, ip: str) -> None:
    broker = Entered(rewrite=rewrite)
    broker.enter("A", ip="127.0.0.1", port=9, interfaces={"pub": {"ip": "127.0.0.1", "port": 8}}, seen_at="10.0.0.4")
    record = broker.ask("A")["A"]
    assert (ip, {"pub": {"ip": ip, "port": 8}}) == (record["ip"], record["interfaces"])
    assert (f"{ip}:9", None if rewrite == "never" else "127.0.0.1") == (
        record["_dbp"]["instance"],
        record["_dbp"].get("declared"),
    )


# One name


@pytest.mark.proves("CAT-030")
def test_the_best_instance_is_the_healthiest_then_the_active_then_the_heaviest_then_the_eldest() -> None:
    broker = Entered()
    broker.enter("a", id="suspect and passing", health="passing", state=State.SUSPECT)
    broker.enter("a", id="warning", health="warning", weight=65535)
    broker.enter("a", id="critical", health="critical", weight=65535)
    broker.enter("a", id="gone", health="passing", state=State.INACTIVE)
    broker.enter("a", id="light", weight=0)
    broker.enter("a", id="younger", health="passing")
    broker.enter("a", id="heavy", weight=7)
    broker.enter("a", id="as heavy but younger", weight=7)
    broker.enter("a", id="suspect", weight=9, state=State.SUSPECT)
    record = broker.ask("a")["a"]
    expected = ["younger", "suspect and passing", "heavy", "as heavy but younger", "light", "suspect", "warning"]
    assert (expected, "younger", 0) == (ids(record), record["_dbp"]["instance"], record["more"])


@pytest.mark.proves("CAT-030")
def test_of_many_instances_sixteen_are_named_and_the_others_counted() -> None:
    broker = Entered()
    for number in range(20):
        broker.enter("a", id=f"{number:02}", port=1 + number)
    record = broker.ask("a")["a"]
    assert ([f"{number:02}" for number in range(16)], 4) == (ids(record), record["more"])
    assert [1 + number for number in range(16)] == [found["port"] for found in record["instances"]]
    assert all(found.keys() == {"id", "port", "_dbp"} for found in record["instances"])


def test_a_senders_own_key_of_that_name_gives_way_where_there_are_several() -> None:
    broker = Entered()
    broker.enter("a", id="1", instances="mine", more="mine")
    assert ("mine", "mine") == ((alone := broker.ask("a")["a"])["instances"], alone["more"])
    broker.enter("a", id="2")
    pairs = json.loads(broker.answers.one(b"a"), object_pairs_hook=lambda pairs: pairs)[0][1]
    assert ["id", "_dbp", "instances", "more"] == [key for key, _ in pairs]
    assert "mine" == broker.ask("a")["a"]["instances"][0]["more"]


# All, several


@pytest.mark.proves("CAT-031")
def test_all_are_the_names_that_one_could_use_and_nothing_else() -> None:
    broker = Entered()
    assert {} == broker.ask("")
    broker.enter("b", id="1")
    broker.enter("a", id="1", state=State.SUSPECT)
    broker.enter("a", id="2", health="critical")
    broker.enter("gone", state=State.INACTIVE)
    broker.enter("ill", health="critical")
    told = broker.ask("")
    assert ["a", "b"] == list(told)
    assert told == {**broker.ask("a"), **broker.ask("b")}


@pytest.mark.proves("CAT-032")
def test_of_several_names_those_found_are_told_and_the_others_named() -> None:
    broker = Entered()
    broker.enter("A", ip="1.2.3.4", port=9)
    broker.enter("B")
    broker.turn(broker.enter("left"), State.INACTIVE, "left")
    found = broker.ask("A")
    assert {**found, "_dbp": {"missing": [{"service": "zz", "state": "unknown"}]}} == broker.ask("A", "zz")
    assert {**found, **broker.ask("B")} == broker.ask("B", "A", "B")
    missing = [{"service": "left", "state": "left"}, {"service": "\ufffd", "state": "unknown"}]
    assert {"_dbp": {"missing": missing}} == broker.ask("left", b"\xff", "left")


# Nothing found


def absence(service: str, state: str, seen: float | None) -> dict[str, Any]:
    return {"warning": "inactive", "service": service, "state": state, "last_seen": seen}


def said(broker: Entered, name: str | bytes) -> dict[str, Any]:
    told = broker.ask(name)
    assert isinstance(told.pop("Error"), str)
    return told


@pytest.mark.proves("CAT-033")
def test_who_is_not_found_was_never_there_or_fell_silent_or_left_or_is_critical() -> None:
    broker = Entered()
    silent, left, ill = broker.enter("silent"), broker.enter("left"), broker.enter("ill", health="critical")
    silent.heard_at = left.heard_at = ill.heard_at = broker.context.now.mono
    broker.expire(3000)
    broker.turn(silent, State.INACTIVE, "silent")
    broker.turn(left, State.INACTIVE, "left")
    broker.expire(1500)
    assert [
        absence("zz", "unknown", None),
        absence("silent", "inactive", WALL_S),
        absence("left", "left", WALL_S),
        absence("ill", "critical", WALL_S),
        absence("dbpx", "unknown", None),
        absence("a@b", "unknown", None),
    ] == [said(broker, name) for name in ("zz", "silent", "left", "ill", "dbpx", "a@b")]


def test_of_several_that_are_gone_the_last_says_why() -> None:
    broker = Entered()
    first, second = broker.enter("a", id="1"), broker.enter("a", id="2")
    broker.turn(first, State.INACTIVE, "left")
    broker.turn(second, State.INACTIVE, "silent")
    assert absence("a", "inactive", WALL_S) == said(broker, "a")
    broker.turn(first, State.INACTIVE, "left")
    assert absence("a", "left", WALL_S) == said(broker, "a")
    broker.enter("a", id="3", health="critical")
    assert absence("a", "critical", WALL_S) == said(broker, "a")


@pytest.mark.proves("CAT-033")
def test_a_name_that_is_no_text_is_a_bad_one() -> None:
    broker = Entered()
    broker.enter("\ufffd")
    assert absence("\ufffd", "unknown", None) | {"code": "bad-name"} == said(broker, b"\xff")
    assert {"_dbp": {"missing": [{"service": "\ufffd", "state": "unknown"}]}} == broker.ask(b"\xff", b"\xff")
    assert 255 == len(said(broker, b"a" * 1_000_000)["service"])


def test_an_entry_of_another_network_is_found_under_its_full_name_only() -> None:
    broker = Entered(net="blue")
    imported = Instance("thermo@green", "1", "", "")
    imported.net = "green"
    broker.book.put(imported)
    assert "green" == broker.ask("thermo@green")["thermo@green"]["_dbp"]["net"]
    assert absence("thermo", "unknown", None) == said(broker, "thermo")


# What is kept


def check_that_health_is_told() -> None:
    broker = Entered()
    instance = broker.enter("a")
    assert ("unknown", ["a"]) == (broker.ask("a")["a"]["_dbp"]["health"], list(broker.ask("")))
    instance.health = "warning"
    broker.announce("health", instance)
    assert "warning" == broker.ask("a")["a"]["_dbp"]["health"]
    instance.health = "critical"
    broker.announce("health", instance)
    assert "critical" == broker.ask("a")["state"]
    assert {} == broker.ask("")


@pytest.mark.proves("CAT-017")
def test_an_answer_follows_a_change_of_health() -> None:
    check_that_health_is_told()


def test_a_kept_answer_that_outlives_a_change_of_health_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Book.changed

    def planted(self: Book, instance: Instance) -> None:
        noted = self._noted.get(instance.key)
        if noted is None or noted.state is not instance.state:
            honest(self, instance)

    monkeypatch.setattr(Book, "changed", planted)
    with pytest.raises(AssertionError):
        check_that_health_is_told()


STEPS = st.tuples(
    st.sampled_from(["enter", "active", "suspect", "inactive", "health", "record", "drop", "ask", "all"]),
    st.sampled_from("abc"),
    st.sampled_from("12"),
    st.sampled_from(["passing", "unknown", "warning", "critical"]),
)


@pytest.mark.proves("CAT-017")
@settings(max_examples=50)
@given(st.lists(STEPS, max_size=25))
def test_what_is_kept_is_what_would_be_made_anew(steps: list[tuple[str, str, str, str]]) -> None:
    broker = Entered()
    for step, name, instance_id, health in steps:
        found = broker.book.get(name, instance_id)
        if step == "ask":
            broker.ask(name)
        elif step == "all":
            broker.ask("")
        elif step == "enter" or found is None:
            broker.enter(name, id=instance_id, health=health)
        else:
            change(broker, found, step, health)
    fresh = answers.Answers(broker.context, broker.book)
    assert fresh.all() == broker.answers.all()
    assert [fresh.one(name) for name in (b"a", b"b", b"c")] == [broker.answers.one(name) for name in (b"a", b"b", b"c")]


def change(broker: Entered, found: Instance, step: str, health: str) -> None:
    if step == "drop":
        broker.book.drop(found)
        broker.announce("remove", found)
    elif step == "health":
        found.health = health
        broker.announce("health", found)
    elif step == "record":
        found.record = {**found.record, "x": health}
        broker.announce("update", found)
    else:
        broker.turn(found, State[step.upper()])


def test_a_second_answer_is_made_of_what_is_kept_and_a_change_costs_its_own_name_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Entered()
    entered = [broker.enter(f"s{number}", id="1") for number in range(100)]
    first = broker.ask("")
    made: list[object] = []
    honest = answers.encode

    def encode(value: object) -> bytes:
        made.append(value)
        return honest(value)

    monkeypatch.setattr(answers, "encode", encode)
    assert first == broker.ask("")
    assert {"s7": first["s7"]} == broker.ask("s7")
    assert [] == made
    broker.turn(entered[7], State.SUSPECT)
    assert "suspect" == broker.ask("")["s7"]["_dbp"]["state"]
    assert ["s7", broker.answers.shown(entered[7]), "s7", "1"] == made


def test_nothing_is_kept_of_names_that_nobody_has() -> None:
    broker = Entered()
    for number in range(100):
        broker.ask(f"s{number}", "zz")
    instance = broker.enter("a")
    broker.ask("a")
    broker.book.drop(instance)
    assert 0 == len(broker.answers._names) + len(broker.answers._rows)
