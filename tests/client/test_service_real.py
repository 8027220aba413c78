"""Services and a real node with a catalog: what the broker of the tests is told to do, it really does."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.client.catalogbroker import running
from tests.client.node import in_loop, until
from weft.catalog import BadRequest, Client, Handler, NotFound, Service, find_broker
from weft.client.catalog.entries import Entry
from weft.client.catalog.speaking import Speaker

PAUSE_S = 0.01
T = TypeVar("T")


async def answer(ask: Callable[[], Awaitable[T]], is_so: Callable[[T], Any]) -> T:
    """What is answered, as soon as it is so."""
    while True:
        with suppress(NotFound):
            if is_so(said := await ask()):
                return said
        await asyncio.sleep(PAUSE_S)  # tidy: a broker tells nobody what others have done; bounded by in_loop


async def seen(client: Client, name: str, **facts: Any) -> Entry:
    """The instance, as soon as the broker says this of it."""

    def fitting(entries: list[Entry]) -> list[Entry]:
        return [entry for entry in entries if facts.items() <= entry.facts.items()]

    return fitting(await answer(lambda: client.details(name), fitting))[0]


@pytest.mark.proves("CAT-070", "CAT-071", "BEA-010", "CAT-023")
@in_loop
async def test_a_service_registers_beats_changes_and_leaves(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client:
        service = Service("thermo", tags=["a"], beacon_port=ports.beacon, interval_s=0.1)

        @service.endpoint
        async def double(number: bytes) -> int:
            return 2 * int(number)

        async with service:
            assert f"127.0.0.1:{service.address[1] if service.address else 0}" == service.instance
            assert (b"42",) == await client.call("thermo", "double", b"21")
            await seen(client, "thermo", via="udp", state="active")
            await service.update(tags=["b"], room=7)
            entry = await client.get("thermo")
            assert (("b",), 7) == (entry.tags, entry.record["room"])
            with pytest.raises(BadRequest) as refused:
                await service.update(tags="no list")
            assert "bad-field" == refused.value.code
            assert ("b",) == (await client.get("thermo")).tags
        gone = await seen(client, "thermo", state="inactive")
        assert "left" == gone.facts["reason"]


@pytest.mark.proves("LVC-001", "LOG-004", "LOG-005", "LOG-003")
@in_loop
async def test_what_is_said_at_once_is_heard(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client:
        service = Service("thermo", broker=ports.broker, beacon_port=0, topics=["temp"])
        await service.start()
        log = logging.Logger("a")  # noqa: LOG001  # nobody else's
        log.addHandler(Handler(service, local=None))
        service.publish("temp", "21.5")
        log.warning("hot", extra={"sensor": "x"})
        values = await answer(lambda: client.last_values("temp"), bool)
        (said,) = await answer(client.logs, bool)
        assert [("temp", (b"21.5",))] == [(value.topic, value.frames) for value in values]
        told = [said[key] for key in ("service", "instance", "level", "message", "seq", "fields")]
        assert ["thermo", service.instance, "WARNING", "hot", 1, {"sensor": "x"}] == told
        await service.stop()


@pytest.mark.proves("LOG-006")
@in_loop
async def test_a_log_record_that_was_lost_is_asked_for_and_said_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Speaker.say

    def loses_the_second(speaker: Speaker, frames: list[bytes]) -> None:
        if b'"seq":2' not in frames[1]:
            said(speaker, frames)

    monkeypatch.setattr(Speaker, "say", loses_the_second)
    async with running(tmp_path) as ports, Client(ports.broker) as client:
        async with Service("thermo", broker=ports.broker, beacon_port=0) as service:
            handler = Handler(service, local=None)
            for number in (1, 2, 3):
                handler.handle(logging.makeLogRecord({"levelno": logging.ERROR, "msg": f"number {number}"}))
            logs = await answer(client.logs, lambda logs: len(logs) == 3)
        assert [(1, "number 1"), (2, "number 2"), (3, "number 3")] == [(log["seq"], log["message"]) for log in logs]


@pytest.mark.proves("BEA-021", "CAT-023")
@pytest.mark.parametrize("by_beacon", [True, False])
def test_a_service_outlives_its_broker_and_the_brokers_disk(tmp_path: Path, by_beacon: bool) -> None:
    @in_loop
    async def case() -> None:
        epochs = []
        async with running(tmp_path / "a") as ports:
            broker = {} if by_beacon else {"broker": ports.broker}
            service = Service("thermo", interval_s=0.1, beacon_port=ports.beacon if by_beacon else 0, **broker)  # type: ignore[arg-type]  # one or the other
            await service.start()
            await service.update(tags=["kept"])
            epochs.append((await find_broker([ports.broker])).epoch)
        async with running(tmp_path / "b", ports), Client(ports.broker) as client:
            epochs.append((await find_broker([ports.broker])).epoch)
            await seen(client, "thermo", state="active")
            assert ("kept",) == (await client.get("thermo")).tags
            await service.stop()
            await seen(client, "thermo", state="inactive", reason="left")
        assert 2 == len(set(epochs))

    case()


@pytest.mark.proves("CAT-022")
@in_loop
async def test_two_of_one_name_stand_beside_each_other(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client:
        parts: dict[str, Any] = {"broker": ports.broker, "beacon_port": 0}
        async with Service("thermo", id="one", **parts) as one, Service("thermo", id="two", **parts):
            assert {"one", "two"} == {entry.instance for entry in await client.instances("thermo")}
            await one.stop()
            left = await answer(lambda: client.instances("thermo"), lambda entries: len(entries) == 1)
            assert ["two"] == [entry.instance for entry in left]
        with pytest.raises(NotFound):
            await client.get("thermo")


@pytest.mark.proves("BEA-017", "BEA-016")
@in_loop
async def test_who_does_not_beat_is_asked_at_its_own_port(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client:
        quiet = Service("quiet", broker=f"127.0.0.1:{ports.node}", beacon_port=0)
        try:
            await quiet.start(wait_s=None)
            assert quiet.address is not None
            await client.register("quiet", {"ip": quiet.address[0], "port": quiet.address[1], "heartbeat": 400})
            first = await seen(client, "quiet", state="active")
            await until(lambda: quiet.endpoints.pings >= 3)
            last = await seen(client, "quiet", state="active")
            assert last.facts["index"] - first.facts["index"] <= 2, "it was suspect once, and never again"
        finally:
            await quiet.stop()
