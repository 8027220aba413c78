"""Requests to a broker that does not answer, or wrongly; which instance is picked; which broker is meant."""

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.client.catalogbroker import Scripted
from tests.client.node import in_loop
from tests.patience import TRY_S
from weft.catalog import CallFailed, CatalogTimeout, Client, Denied, Entry, NotFound, Unreachable, Value
from weft.client.catalog.asking import Asker, told_by
from weft.client.catalog.client import values_of
from weft.client.catalog.entries import Address, entries_of
from weft.client.catalog.errors import error_of
from weft.client.catalog.finding import address_of, keepers_door, seeds_of
from weft.client.catalog.picking import Picker
from weft.client.catalog.subscribing import Latest, place_of
from weft.wire.catalog.messages import REPLY, REQUEST, Message

TIME = b"\0\0\0\0"
STATUS = {"dbp": 1, "epoch": "0f", "hb": 0, "pub": 0, "net": "", "caps": []}


def replying(*told: Any, command: bytes = b"o_O") -> Any:
    """Answers each in turn; the last for ever. What is no JSON object is silence."""
    left = list(told)

    def answer(frames: list[bytes]) -> list[bytes] | None:
        at = frames.index(b"")
        envelope = frames[: at + 1]
        if frames[at + 3 : at + 4] == [b"dbp.status"]:
            return [*envelope, b"o_O", TIME, json.dumps(STATUS).encode()]
        now = left.pop(0) if len(left) > 1 else left[0]
        return None if now is None else [*envelope, command, TIME, json.dumps(now).encode()]

    return answer


@pytest.mark.proves("CAT-024")
@in_loop
async def test_a_request_without_an_answer_is_said_three_times_each_on_a_new_socket() -> None:
    async with Scripted() as broker:
        asker = Asker(Address("127.0.0.1", broker.port), timeout_s=TRY_S)
        with pytest.raises(CatalogTimeout):
            await asker.ask(REQUEST, b"thermo")
        assert [3, 3] == [len(broker.heard), len(set(broker.peers))]
        asker.close()


@pytest.mark.proves("CAT-024")
@in_loop
async def test_a_request_whose_first_answer_is_lost_has_its_second() -> None:
    told = {"thermo": {"ip": "10.0.0.1", "port": 7}}
    async with Scripted(replying(None, told)) as broker, Client(broker.broker, timeout=TRY_S) as client:
        assert Address("10.0.0.1", 7) == (await client.get("thermo")).address


@in_loop
async def test_answers_in_any_order_find_who_asked() -> None:
    async with Scripted() as broker:
        held: list[tuple[bytes, list[bytes]]] = []

        def answer(frames: list[bytes]) -> list[bytes] | None:
            held.append((broker.peers[-1], frames))
            if len(held) == 3:
                for peer, (number, _, _, _, name) in reversed(held):
                    broker._socket.send_multipart([peer, number, b"", b"o_O", TIME, name])
            return None

        broker.answer = answer
        asker = Asker(Address("127.0.0.1", broker.port))

        told = await asyncio.gather(*(asker.ask(REQUEST, name) for name in (b"a", b"b", b"c")))
        assert [(b"a",), (b"b",), (b"c",)] == [answer.body for answer in told]
        asker.close()


@in_loop
async def test_an_existing_broker_is_asked_without_an_envelope_and_has_no_queries() -> None:
    def answer(frames: list[bytes]) -> list[bytes]:
        known = frames[-1] != b"dbp.status"
        return [
            b"",
            b"o_O",
            TIME,
            json.dumps({"Rohan": {"ip": "1.2.3.4", "port": 9}} if known else {"Error": "x"}).encode(),
        ]

    async with Scripted(answer) as broker, Client(broker.broker) as client:
        assert ["Rohan"] == list(await client.list())
        assert [b"", b"u_U", b""] == [frame for frame in broker.heard[-1] if len(frame) != 4]
        with pytest.raises(Exception, match="not Weft's"):
            await client.query()


@pytest.mark.parametrize(
    "told, kind, code",
    [
        ({"Error": "x", "code": "name-taken"}, "NameTaken", "name-taken"),
        ({"Error": "x", "code": "bad-field", "fields": ["port"]}, "BadRequest", "bad-field"),
        ({"Error": "x", "code": "novel"}, "Denied", "novel"),
        ({"Error": "x", "code": "unsupported"}, "Unsupported", "unsupported"),
        ({"Error": "x", "warning": "inactive", "state": "left", "code": "bad-name"}, "NotFound", "inactive"),
        ({"Error": "not found"}, "NotFound", "inactive"),
    ],
)
def test_a_refusal_is_an_error_of_its_kind(told: dict[str, Any], kind: str, code: str) -> None:
    error = error_of(told)
    assert (kind, code) == (type(error).__name__, error.code)


def test_a_warning_says_what_became_of_the_service() -> None:
    body = b'{"Error":"gone","warning":"inactive","service":"zz","state":"left","last_seen":12.5}'
    with pytest.raises(NotFound) as caught:
        told_by(Message(REPLY, TIME, (body,)))
    assert ("zz", "left", 12.5) == (caught.value.service, caught.value.state, caught.value.last_seen)


def test_the_frames_of_cached_values_are_told_apart() -> None:
    rows = [
        {"topic": "a", "publisher": "p", "instance": "i", "frames": 3, "received": 5, "stale": True},
        {"topic": "b", "frames": 1, "received": 6.5},
    ]
    answer = Message(REPLY, TIME, (json.dumps({"values": rows}).encode(), b"a", b"1", b"2", b"b"))
    expected = [Value("a", (b"1", b"2"), "p", "i", 5.0, is_stale=True), Value("b", (), "", "", 6.5)]
    assert expected == values_of(answer)
    with pytest.raises(Exception, match="more frames"):
        values_of(Message(REPLY, TIME, answer.body[:-1]))


# Which instance


def entry(instance: str, *, state: str = "active", health: str = "unknown", weight: int = 1) -> Entry:
    return Entry(name="n", instance=instance, record={"weight": weight}, facts={"state": state, "health": health})


@pytest.mark.proves("CAT-072")
def test_instances_are_picked_by_policy() -> None:
    picker, all_of = Picker(random.Random(7)), [entry("b", weight=3), entry("a"), entry("c", weight=0)]
    turns = [picker.pick(all_of, "round_robin") for _ in range(4)]
    assert ["a", "b", "c", "a"] == [one.instance for one in turns if one]
    assert "b" == picker.pick(all_of, "first").instance  # type: ignore[union-attr]  # there is one
    weighted = Counter(picker.pick(all_of, "weighted").instance for _ in range(400))  # type: ignore[union-attr]  # as above
    assert [True, 0] == [250 < weighted["b"] < 350, weighted["c"]]
    drawn = Counter(picker.pick(all_of, "random").instance for _ in range(300))  # type: ignore[union-attr]  # as above
    assert all(drawn[name] > 60 for name in "abc")


@pytest.mark.parametrize("policy", ["first", "random", "round_robin", "weighted"])
@pytest.mark.proves("CAT-072")
def test_what_is_suspect_is_picked_last_and_what_is_critical_or_gone_never(policy: Any) -> None:
    picker = Picker(random.Random(1))
    others = [entry("g", state="inactive"), entry("k", health="critical"), entry("s", state="suspect")]
    assert ["a", "s", None] == [
        picked and picked.instance
        for picked in (
            picker.pick([*others, entry("a", weight=0)], policy),
            picker.pick(others, policy),
            picker.pick(others[:2], policy),
        )
    ]


def test_the_instances_of_an_answer_come_in_its_order() -> None:
    one, two = {"ip": "a", "port": 1, "_dbp": {"instance": "x"}}, {"ip": "b", "port": 2, "_dbp": {"instance": "y"}}
    assert ["x", "y"] == [found.instance for found in entries_of("n", {**one, "instances": [one, two]})]
    [alone] = entries_of("n", one)
    assert ("x", {"ip": "a", "port": 1}) == (alone.instance, alone.record)


@pytest.mark.parametrize(
    "record, address",
    [
        ({"ip": "1.2.3.4", "port": 5, "interfaces": {"router": {"ip": "x", "port": 1}}}, Address("1.2.3.4", 5)),
        ({"interfaces": {"pub": {"ip": "p", "port": 2}, "router": {"ip": "r", "port": 1}}}, Address("r", 1)),
        ({"interfaces": {"pub": {"ip": "p", "port": 2}}}, Address("p", 2)),
        ({"ip": "1.2.3.4"}, None),
        ({"interfaces": ["no table"]}, None),
    ],
)
@pytest.mark.proves("CAT-016")
def test_a_service_is_called_where_its_record_says(record: dict[str, Any], address: Address | None) -> None:
    assert address == Entry(name="n", record=record).address


# Last values


@pytest.mark.proves("LVC-006")
def test_a_value_of_the_broker_is_left_out_where_a_live_one_came_first() -> None:
    latest = Latest()
    latest.live("a")
    cached = [Value("a", (b"old",), "p", "i", 1.0), Value("b", (b"kept",), "p", "i", 1.0)]
    assert ["b"] == [value.topic for value in latest.cached(cached)]


@pytest.mark.proves("LVC-006")
def test_a_subscriber_that_told_old_values_behind_live_ones_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug is planted: nothing that came live is noted."""
    monkeypatch.setattr(Latest, "live", lambda self, topic: None)
    with pytest.raises(AssertionError):
        test_a_value_of_the_broker_is_left_out_where_a_live_one_came_first()


@pytest.mark.parametrize(
    "record, state, place",
    [
        ({"interfaces": {"pub": {"ip": "p", "port": 2}}}, "active", Address("p", 2)),
        ({"interfaces": {"values": {"ip": "p", "port": 2, "type": "PUB"}}}, "suspect", Address("p", 2)),
        ({"interfaces": {"pub": {"ip": "p", "port": 2}}}, "inactive", None),
        ({"ip": "p", "port": 2}, "active", None),
        ({"interfaces": 7}, "active", None),
    ],
)
@pytest.mark.proves("LVC-006")
def test_a_publisher_is_heard_where_it_says(record: dict[str, Any], state: str, place: Address | None) -> None:
    assert place == place_of(Entry(name="n", record=record, facts={"state": state}))


# Which broker


@pytest.mark.parametrize(
    "broker, seeds",
    [
        (None, ("h:1", "k:5246")),
        ("10.0.0.7:99", ("10.0.0.7:99",)),
        (99, ("127.0.0.1:99",)),
        ("99", ("127.0.0.1:99",)),
        ("[::1]:99", ("[::1]:99",)),
        ("::1", ("[::1]:5246",)),
        (("a", "b:2"), ("a:5246", "b:2")),
    ],
)
def test_a_broker_is_named_in_several_ways(broker: Any, seeds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CATALOG", "h:1, k")
    assert seeds == seeds_of(broker)


@pytest.mark.parametrize("broker", ["", "a:b", "h:0", "h:65536", "no/such/path"])
def test_what_names_no_broker_is_refused(broker: str) -> None:
    with pytest.raises(Unreachable):
        seeds_of([broker])


def test_an_address_of_six_has_brackets_where_people_read_it() -> None:
    place = address_of("[::1]:99")
    assert ("[::1]:99", "tcp://[::1]:99") == (str(place), place.endpoint)


def test_a_keeper_is_told_that_there_is_no_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for state in (None, str(tmp_path)):
        with pytest.raises(Unreachable):
            keepers_door(state)
    (tmp_path / "catalog.endpoint").write_text("ipc:///elsewhere/catalog.sock\n")
    assert "ipc:///elsewhere/catalog.sock" == keepers_door(tmp_path)


# Calls


@pytest.mark.proves("CAT-070")
@in_loop
async def test_a_call_that_is_refused_says_the_code_of_the_service() -> None:
    def service(frames: list[bytes]) -> list[bytes]:
        told = (
            [b"o_O", TIME, *frames[3:]] if frames[1] == b"echo" else [b"(O_O)", TIME, b'{"Error":"no","code":"busy"}']
        )
        return [b"", *told]

    async with Scripted(service) as thermo:
        record = {"thermo": {"ip": "127.0.0.1", "port": thermo.port}}
        async with Scripted(replying(record)) as broker, Client(broker.broker) as client:
            assert (b"1", b"2") == await client.call("thermo", "echo", [b"1", b"2"])
            assert (b"x",) == await client.call("thermo", "echo", "x")
            with pytest.raises(CallFailed) as caught:
                await client.call("thermo", "other")
            assert "busy" == caught.value.code
            assert 1 == len(set(thermo.peers))


@in_loop
async def test_a_call_without_an_answer_is_not_repeated() -> None:
    async with Scripted() as thermo:
        record = {"thermo": {"ip": "127.0.0.1", "port": thermo.port}}
        async with Scripted(replying(record)) as broker, Client(broker.broker) as client:
            with pytest.raises(CatalogTimeout):
                await client.call("thermo", "pay", timeout=TRY_S)
            assert 1 == len(thermo.heard)


@in_loop
async def test_a_denied_registration_is_raised() -> None:
    told = {"Error": "taken", "code": "name-taken", "service": "A"}
    async with Scripted(replying(told, command=b"(O_O)")) as broker, Client(broker.broker) as client:
        with pytest.raises(Denied) as caught:
            await client.register("A", ip="1.2.3.4", port=9)
        assert ("name-taken", "A") == (caught.value.code, caught.value.service)
