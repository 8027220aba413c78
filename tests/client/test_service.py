"""A program as a service: it is registered, called, changed and stopped (CAT-070, CAT-071, CAT-023)."""

import asyncio
import json
import os
import signal
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from tests.client.node import in_loop, until
from tests.client.servicebroker import TIME, Caller, FakeBroker, Plain
from tests.examples import examples
from tests.shell.ports import free_port
from weft.base.effects import Connect
from weft.catalog import CatalogError, Denied, NameTaken, Service, Unreachable
from weft.client.catalog.driving import _PERFORMS, Driver
from weft.client.catalog.endpoints import Endpoints
from weft.client.catalog.errors import BadRequest, CallFailed, Closed
from weft.client.catalog.servicelimits import CALLS_MAX
from weft.cores.service import limits as core_limits


def service_of(broker: FakeBroker, **parts: Any) -> Service:
    return Service("thermo", **{"broker": broker.seed, "beacon_port": 0, "interval_s": 0.05, **parts})


def with_endpoints(service: Service) -> Service:
    @service.endpoint
    async def echo(*frames: bytes) -> tuple[bytes, ...]:
        return frames

    @service.endpoint("add")
    def _(a: bytes, b: bytes) -> int:
        return int(a) + int(b)

    @service.endpoint
    async def fails(kind: bytes) -> None:
        if kind == b"own":
            raise CallFailed("no more tea", "no-tea")
        if kind == b"cancelled":
            raise asyncio.CancelledError
        raise KeyError("a")

    return service


# Registering


@pytest.mark.proves("CAT-070", "CAT-071")
@in_loop
async def test_a_service_says_where_it_is_called_and_what_it_is() -> None:
    async with FakeBroker() as broker:
        service = service_of(broker, id="t1", tags=["lab"], metadata={"room": "7"}, version="2", record={"weight": 3})
        async with service:
            assert service.address is not None
            assert ("i1", True) == (service.instance, service.is_registered)
            record = broker.records[0]
            router = {"ip": "127.0.0.1", "port": service.address[1]}
            assert router == record["interfaces"]["router"]
            assert "127.0.0.1" == record["interfaces"]["pub"]["ip"]
            del record["interfaces"]
        expected = {"name": "thermo", "id": "t1", "heartbeat": 50, "topics": [], "tags": ["lab"], "version": "2"}
        assert {
            **expected,
            **router,
            "metadata": {"room": "7"},
            "weight": 3,
            "beacon": False,
            "caps": ["tap"],
        } == record


@pytest.mark.proves("CAT-070")
@in_loop
async def test_a_service_that_listens_everywhere_says_an_address_that_the_broker_mends() -> None:
    async with FakeBroker() as broker, service_of(broker, host="0.0.0.0"):
        assert "127.0.0.1" == broker.records[0]["ip"]
    async with FakeBroker() as broker, service_of(broker, advertise="10.0.0.9", topics=None):
        assert ("10.0.0.9", None) == (broker.records[0]["interfaces"]["pub"]["ip"], broker.records[0]["topics"])


@pytest.mark.proves("CAT-023", "CAT-070")
@in_loop
async def test_a_service_beats_and_comes_back_by_itself() -> None:
    async with FakeBroker() as broker, service_of(broker):
        assert [b"thermo", b"i1"] == await broker.hears(b"<3", 2)
        first = broker.last[0]
        broker.say(first, b"", b"</3", TIME)
        await broker.hears(b"UwU", 2)
        await until(lambda: broker.last[0] != first)


@pytest.mark.proves("CAT-023", "BEA-004")
@in_loop
async def test_an_existing_broker_that_was_away_for_a_moment_is_registered_with_again() -> None:
    broker = FakeBroker()
    broker.told = {}
    service = service_of(broker)
    await service.start()
    port = broker.port
    broker.close()
    async with FakeBroker() as other:
        other.told = {}
        await other.returns_to(port)
        await other.hears(b"UwU")
        await service.stop()


@pytest.mark.proves("CAT-023")
@in_loop
async def test_stopping_says_goodbye() -> None:
    async with FakeBroker() as broker:
        async with service_of(broker) as service:
            pass
        assert [b"thermo", b"i1"] == await broker.hears(b"</3")
        assert (None, False) == (service.address, service.is_registered)
        await service.stop()
        async with service:
            assert 2 == len(broker.records)


@pytest.mark.proves("CAT-023")
@in_loop
async def test_a_refusal_for_good_is_an_error() -> None:
    async with FakeBroker() as broker:
        broker.denial = {"Error": "no list", "code": "bad-field", "fields": ["tags"]}
        with pytest.raises(BadRequest) as refused:
            await service_of(broker).start()
        assert ("bad-field", ("tags",)) == (refused.value.code, refused.value.fields)
        with pytest.raises(BadRequest):
            await service_of(broker).run()


@pytest.mark.proves("CAT-023")
@in_loop
async def test_who_is_put_off_for_too_long_is_told_why() -> None:
    async with FakeBroker() as broker:
        broker.denial = {"Error": "there is one", "code": "name-taken"}
        with pytest.raises(NameTaken):
            await service_of(broker).start(wait_s=0.5)
        service = service_of(broker)
        await service.start(wait_s=None)
        await broker.hears(b"UwU", 2)
        broker.denial = None
        await until(lambda: service.is_registered)
        await service.stop()


@in_loop
async def test_where_there_is_no_broker_starting_ends_and_running_does_not() -> None:
    seed = f"127.0.0.1:{free_port()}"
    service = Service("thermo", broker=seed, beacon_port=0)
    with pytest.raises(Unreachable):
        await service.start(wait_s=0.01)
    running = asyncio.ensure_future(service.run())
    await until(lambda: service.address is not None)
    async with Caller(service.address) as caller:
        assert (b"pong", [b"thermo"]) == await caller.call(b"ping", b"")
    running.cancel()
    await asyncio.wait([running])
    assert (True, None) == (running.cancelled(), service.address)


@in_loop
async def test_a_taken_port_is_said() -> None:
    async with FakeBroker() as broker:
        with pytest.raises(CatalogError) as taken:
            await service_of(broker, port=broker.port).start()
        with pytest.raises(CatalogError) as none:
            await service_of(broker, host="192.0.2.1").start()
        assert ("port-in-use", "bad-address") == (taken.value.code, none.value.code)
        async with service_of(broker) as service:
            with pytest.raises(CatalogError):
                await service.start()


@in_loop
async def test_a_service_without_a_loop_that_runs_says_so() -> None:
    service = Service("thermo")
    with pytest.raises(Closed):
        service.publish("a", b"")
    with pytest.raises(Closed):
        await service.update(tags=[])


@in_loop
async def test_told_to_terminate_a_running_service_says_goodbye_and_returns() -> None:
    async with FakeBroker() as broker:
        service = service_of(broker)
        running = asyncio.ensure_future(service.run())
        await until(lambda: service.is_registered)
        os.kill(os.getpid(), signal.SIGTERM)
        await running
        assert [b"thermo", b"i1"] == await broker.hears(b"</3")
        assert signal.SIG_DFL is signal.getsignal(signal.SIGTERM)


@pytest.mark.proves("CAT-023")
@in_loop
async def test_a_socket_that_cannot_be_opened_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, told = Driver._connect, []

    def fails_once(driver: Driver, effect: Any) -> None:
        told.append(effect.endpoint)
        if len(told) == 1:
            raise zmq.ZMQError(24, "too many open files")
        opened(driver, effect)

    monkeypatch.setattr(core_limits, "ANSWER_NS", 50_000_000)
    monkeypatch.setitem(_PERFORMS, Connect, fails_once)
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    async with FakeBroker() as broker, service_of(broker):
        assert ([broker.seed] * 2, {broker.seed}, 1) == (told[:2], set(told), len(faults))


# Changing


@pytest.mark.proves("CAT-018")
@in_loop
async def test_a_change_is_acknowledged_or_refused() -> None:
    async with FakeBroker() as broker, service_of(broker) as service:
        await service.update(tags=["b"], weight=None)
        assert {"name": "thermo", "id": "i1", "tags": ["b"], "weight": None} == json.loads(broker.bodies[b"UoU"][0])
        broker.denial = {"Error": "yours?", "code": "not-owner"}
        with pytest.raises(Denied) as refused:
            await service.update(tags=["c"])
        assert "not-owner" == refused.value.code


@pytest.mark.parametrize("key", ["name", "id", "ip", "port", "interfaces"])
@in_loop
async def test_what_a_service_is_known_and_reached_by_stays(key: str) -> None:
    async with FakeBroker() as broker, service_of(broker) as service:
        with pytest.raises(BadRequest) as refused:
            await service.update(tags=["b"], **{key: 1})
        assert ("immutable-field", (key,)) == (refused.value.code, refused.value.fields)
        assert b"UoU" not in broker.bodies


# Calls


@pytest.mark.proves("CAT-070")
@in_loop
async def test_a_coroutine_answers_calls_of_its_name() -> None:
    async with FakeBroker() as broker, with_endpoints(service_of(broker)) as service, Caller(service.address) as caller:
        assert (b"o_O", [b"a", b"b"]) == await caller.call(b"echo", b"a", b"b")
        assert (b"o_O", [b""]) == await caller.call(b"echo")
        assert (b"o_O", [b"5"]) == await caller.call(b"add", b"2", b"3")


@pytest.mark.proves("CAT-070")
@pytest.mark.parametrize(
    ("endpoint", "payload", "code"),
    [
        (b"fails", [b"error"], "failed"),
        (b"fails", [b"own"], "no-tea"),
        (b"fails", [b"cancelled"], "failed"),
        (b"add", [b"1"], "failed"),
        (b"add", [b"1", b"x"], "failed"),
        (b"none", [], "unknown-endpoint"),
        (b"\xff\xfe", [], "unknown-endpoint"),
        (b"dbp.logs", [b"what?"], "bad-argument"),
    ],
)
def test_what_goes_wrong_is_answered_with_its_code(endpoint: bytes, payload: list[bytes], code: str) -> None:
    @in_loop
    async def case() -> None:
        service = with_endpoints(Service("thermo", broker=f"127.0.0.1:{free_port()}", beacon_port=0))
        await service.start(wait_s=None)
        async with Caller(service.address) as caller:
            word, body = await caller.call(endpoint, *payload)
            assert (b"(O_O)", code) == (word, json.loads(body[0])["code"])
            assert (b"pong", [b"thermo"]) == await caller.call(b"ping", b"")
        await service.stop()

    case()


@pytest.mark.proves("CAT-070")
@in_loop
async def test_beyond_a_thousand_calls_it_is_busy() -> None:
    async with FakeBroker() as broker:
        service = service_of(broker)
        gate = asyncio.Event()

        @service.endpoint
        async def wait() -> str:
            await gate.wait()
            return "done"

        async with service, Caller(service.address) as caller:
            for _ in range(CALLS_MAX + 1):
                caller.say(b"", b"wait", TIME)
            refused = await caller.inbox.get()
            assert (b"(O_O)", "busy") == (refused[1], json.loads(refused[3])["code"])
            gate.set()
            answers = [await caller.inbox.get() for _ in range(CALLS_MAX)]
            assert {b"done"} == {answer[3] for answer in answers}


@pytest.mark.proves("CAT-023", "CAT-070")
@in_loop
async def test_stopping_ends_calls_and_answers_them() -> None:
    async with FakeBroker() as broker:
        service = service_of(broker)
        begun = asyncio.Event()

        @service.endpoint
        async def forever() -> None:
            begun.set()
            await asyncio.Event().wait()

        @service.endpoint
        async def stubborn() -> None:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    if service.address is not None:
                        raise

        await service.start()
        async with Caller(service.address) as caller:
            caller.say(b"", b"stubborn", TIME)
            caller.say(b"", b"forever", TIME)
            await begun.wait()
            await service.stop()
            _, word, _, body = await caller.inbox.get()
            assert (b"(O_O)", "failed") == (word, json.loads(body)["code"])
        for task in service.endpoints._running:  # who ignores that it was cancelled is left behind
            service.address = ("", 0)
            task.cancel()


@pytest.mark.proves("CAT-071")
@in_loop
async def test_what_every_service_answers() -> None:
    async with FakeBroker() as broker:
        service = with_endpoints(service_of(broker, version="2", metadata={"room": "7"}))
        async with service, Caller(service.address) as caller:
            info = {"name": "thermo", "id": "i1", "version": "2", "metadata": {"room": "7"}}
            assert {**info, "endpoints": ["add", "echo", "fails"]} == await caller.told(b"dbp.info")
            await caller.call(b"echo", b"a")
            await caller.call(b"fails", b"error")
            stats = await caller.told(b"dbp.stats")
            told = [(name, of["requests"], of["errors"], of["last_error"]) for name, of in sorted(stats.items())]
            assert [("add", 0, 0, ""), ("echo", 1, 0, ""), ("fails", 1, 1, "KeyError: 'a'")] == told
            assert {"requests", "errors", "last_error", "processing_ns", "started"} == set(stats["echo"])
            assert {"logs": []} == await caller.told(b"dbp.logs", b'{"from":1,"to":9}')


@pytest.mark.proves("CAT-005", "CAT-011")
@in_loop
async def test_an_answer_goes_back_through_the_envelope_in_the_callers_time() -> None:
    async with FakeBroker() as broker, with_endpoints(service_of(broker)) as service, Caller(service.address) as caller:
        caller.say(b"id", b"hop", b"", b"echo", b"1795227299", b"x")
        *envelope, when, body = await caller.inbox.get()
        assert ([b"id", b"hop", b"", b"o_O"], b"x", True) == (envelope, body, when.isdigit())


@pytest.mark.proves("CAT-071")
@in_loop
async def test_a_plain_req_is_a_caller() -> None:
    async with FakeBroker() as broker, with_endpoints(service_of(broker)) as service:
        caller = Caller(service.address, zmq.REQ)
        caller.say(b"echo", TIME, b"x")
        word, _, body = await caller.inbox.get()
        assert (b"o_O", b"x") == (word, body)
        caller.close()


@pytest.mark.parametrize("name", ["dbp.info", "ping", "u.u", "x" * 256])
def test_names_of_the_protocol_are_no_endpoints(name: str) -> None:
    with pytest.raises(ValueError):
        Endpoints("thermo").add(lambda: None, name)


def test_an_endpoint_is_there_once() -> None:
    endpoints = Endpoints("thermo")
    endpoints.add(print)
    with pytest.raises(ValueError):
        endpoints.add(print)


FRAME = st.one_of(st.sampled_from([b"", b"ping", b"echo", b"dbp.stats", b"u.u", b"o_O", TIME]), st.binary(max_size=300))


@pytest.mark.proves("CAT-081")
@given(st.lists(FRAME, min_size=1, max_size=70))
@examples(100)
def test_any_frames_are_answered_once_or_not_at_all(frames: list[bytes]) -> None:
    said: list[list[bytes]] = []
    endpoints = Endpoints("thermo")
    endpoints.open(said.append)
    endpoints.hear(frames)
    assert len(said) + endpoints.malformed <= 1
    assert [frames[0]] * len(said) == [answer[0] for answer in said]


# Publishing


@pytest.mark.proves("CAT-070")
@in_loop
async def test_what_it_publishes_is_heard() -> None:
    async with FakeBroker() as broker, service_of(broker, topics=["temp"]) as service, Plain(zmq.XSUB) as reader:
        place = broker.records[0]["interfaces"]["pub"]
        reader.socket.connect(f"tcp://{place['ip']}:{place['port']}")
        reader.say(b"\x01temp")
        while reader.inbox.empty():
            service.publish("temp", "21.5", b"C")
            await asyncio.sleep(0)
        assert [b"temp", b"21.5", b"C"] == reader.inbox.get_nowait()
