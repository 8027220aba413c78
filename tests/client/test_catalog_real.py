"""The client of the catalog at a real broker, with real services."""

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.client.catalogbroker import Ports, ports, running
from tests.client.node import in_loop
from tests.patience import TRY_S
from weft import catalog


def service(at: Ports, name: str = "thermo", **how: Any) -> catalog.Service:
    return catalog.Service(name, broker=at.broker, topics=None, **how)


@pytest.mark.proves("CAT-072", "CAT-030", "CAT-031")
@in_loop
async def test_a_program_finds_services_and_calls_one(tmp_path: Path) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client:
        thermo = service(at, tags=["lab"], metadata={"room": "k1"})

        @thermo.endpoint
        async def read(sensor: bytes) -> str:
            return f"{sensor.decode()} 21.5"

        async with thermo:
            found = await client.get("thermo")
            assert ("thermo", "active", ("lab",)) == (found.name, found.state, found.tags)
            assert ["thermo"] == list(await client.list())
            matching = [await client.query(tags=["lab"]), await client.query(metadata={"room": "k2"})]
            assert [[found], []] == matching
            assert (b"kitchen 21.5",) == await client.call("thermo", "read", "kitchen")
            assert 0 < await client.ping(found)
            with pytest.raises(catalog.CallFailed) as caught:
                await client.call("thermo", "write")
            assert "unknown-endpoint" == caught.value.code
            while (await client.details("thermo"))[0].facts["via"] != "udp":  # noqa: ASYNC110  # as below
                await asyncio.sleep(0.02)  # tidy: within a second it beats by datagram; bounded by in_loop
            assert "thermo" == (await client.liveness())[0]["name"]
            assert 1 == (await client.status())["names"]
        with pytest.raises(catalog.NotFound) as gone:
            await client.get("thermo")
        assert "left" == gone.value.state


@pytest.mark.proves("CAT-072", "CAT-043")
@in_loop
async def test_a_watch_tells_what_is_there_and_every_change(tmp_path: Path) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client:
        await client.register("a", ip="127.0.0.1", port=1, heartbeat=60_000)
        watch = client.watch()
        assert "a" == (await anext(watch)).name
        await client.update("a", port=2)
        op, name, instance, entry, *_ = await anext(watch)
        assert ("update", "a", "127.0.0.1:1", catalog.Address("127.0.0.1", 2)) == (
            op,
            name,
            instance,
            entry and entry.address,
        )
        await client.leave("a")
        assert "inactive" == (await anext(watch)).op
        watch.close()
        with pytest.raises(StopAsyncIteration):
            await anext(watch)


@in_loop
async def test_a_watch_that_nobody_reads_keeps_the_last_change_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.client.catalog.watch.CHANGES_AHEAD_MAX", 3)
    async with running(tmp_path) as at, catalog.Client(at.broker) as client:
        async with client.watch() as watch:
            await client.register("a", ip="127.0.0.1", port=1, heartbeat=60_000)
            await client.register("b", ip="127.0.0.1", port=1, heartbeat=60_000)
            for port in range(2, 9):
                await client.update("a", port=port)
            await client.register("c", ip="127.0.0.1", port=1, heartbeat=60_000)
            while ("c", "127.0.0.1:1") not in watch.entries:  # noqa: ASYNC110  # as below
                await asyncio.sleep(0.005)  # tidy: nothing tells, since nobody reads; bounded by in_loop
            told = [await anext(watch) for _ in range(4)]
        assert ["resync", "a", "b", "c"] == [change.name or change.op for change in told]
        assert catalog.Address("127.0.0.1", 8) == (told[1].entry and told[1].entry.address)


@pytest.mark.proves("CAT-072")
@in_loop
async def test_a_cache_follows_the_broker_and_is_stale_while_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.client.catalog.following.SILENT_NS", 1_300_000_000)
    at = ports()
    async with contextlib.AsyncExitStack() as stack:
        async with running(tmp_path, at):
            client = await stack.enter_async_context(catalog.Client(at.broker, cache=True, timeout=TRY_S))
            await client.register("a", ip="127.0.0.1", port=1, heartbeat=60_000)
            while (found := await client.get("a")).index != 1 or client._copy is None or not client._copy.of_name("a"):  # noqa: ASYNC110  # as below
                await asyncio.sleep(0.005)  # tidy: the change is on its way; bounded by in_loop
            assert not found.is_stale
        while not (found := await client.get("a")).is_stale:  # noqa: ASYNC110  # as below
            await asyncio.sleep(0.02)  # tidy: until the silence is noticed; bounded by in_loop
        assert catalog.Address("127.0.0.1", 1) == found.address
        async with running(tmp_path, at):
            while (await client.get("a")).is_stale:  # noqa: ASYNC110  # as below
                await asyncio.sleep(0.02)  # tidy: until it is found again; bounded by in_loop


@pytest.mark.proves("LVC-006", "LVC-003", "LVC-004")
@in_loop
async def test_a_late_subscriber_has_the_last_values_then_the_live_ones(tmp_path: Path) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client, service(at) as thermo:
        while not await client.topics("room/"):
            thermo.publish("room/a", b"1")
            await asyncio.sleep(0.01)  # tidy: until the broker has subscribed; bounded by in_loop
        thermo.publish("room/b", "2", "x")
        while len(await client.topics("room/")) < 2:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)  # tidy: it is on its way; bounded by in_loop
        [value] = await client.last_values("room/b")
        assert ("room/b", (b"2", b"x"), "thermo", False) == (value.topic, value.frames, value.publisher, value.is_live)
        async with client.subscribe("thermo", "room/") as values:
            assert {"room/a", "room/b"} == {(await anext(values)).topic for _ in range(2)}
            thermo.publish("room/a", b"3")
            live = await anext(values)
            assert ("room/a", (b"3",), True) == (live.topic, live.frames, live.is_live)
        async with client.subscribe("thermo", "room/", latest=False) as values:
            thermo.publish("room/a", b"4")
            assert (b"4",) == (await anext(values)).frames


@pytest.mark.proves("LOG-005")
@in_loop
async def test_what_services_warn_of_is_read_and_followed(tmp_path: Path) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client, service(at) as thermo:
        logger = logging.Logger("pump")  # noqa: LOG001  # nobody else gets it
        logger.addHandler(catalog.Handler(thermo))
        while not (told := await client.logs(service="thermo")):
            logger.warning("too %s", "hot")
            await asyncio.sleep(0.02)  # tidy: until the broker has subscribed; bounded by in_loop
        assert ("too hot", "WARNING", "pump") == tuple(told[0][key] for key in ("message", "level", "logger"))
        async with client.follow_logs(level="ERROR") as tail:
            logger.warning("warm")
            logger.error("on fire")
            assert "on fire" == (await anext(tail))["message"]


@pytest.mark.proves("CAT-061", "CAT-034")
@in_loop
async def test_only_the_keeper_of_a_broker_removes_what_others_registered(tmp_path: Path) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client:
        await client.register("a", ip="127.0.0.1", port=1, heartbeat=60_000)
        with pytest.raises(catalog.Denied):
            await client.request(b"dbp.deregister", b"a")
        await client.deregister("a", state=str(tmp_path))
        assert [] == await client.query()
        with pytest.raises(catalog.NotFound):
            await client.deregister("a", state=str(tmp_path))


@in_loop
async def test_whoever_registers_by_hand_is_forgotten_when_it_leaves(tmp_path: Path) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client:
        await client.register("a", {"ip": "127.0.0.1", "port": 1})
        assert [True, False] == [await client.beat("a", "127.0.0.1:1"), await client.beat("b")]
        with pytest.raises(catalog.BadRequest) as caught:
            await client.register("b", port="x")
        assert ("bad-field", ("port",)) == (caught.value.code, caught.value.fields)


def script(broker: str) -> list[str]:
    """What a program does that waits."""
    with catalog.SyncClient(broker, cache=True) as client:
        assert [broker, ["thermo"]] == [client.broker, list(client.list())]
        assert client.get("thermo") == client.pick("thermo", "random") == client.instances("thermo")[0]
        assert (b"thermo",) == client.call("thermo", "ping")
        client.register("a", ip="127.0.0.1", port=1, heartbeat=60_000)
        seen = []
        for change in client.watch(name="a"):
            seen.append(change.op)
            if len(seen) == 2:
                break
            client.update("a", port=2)
        client.leave("a")
        return [*seen, *(found.state for found in client.query(name="a"))]


@pytest.mark.proves("CAT-072")
@in_loop
async def test_a_script_asks_and_watches(tmp_path: Path) -> None:
    async with running(tmp_path) as at, service(at):
        assert ["enter", "update", "inactive"] == await asyncio.to_thread(script, at.broker)


def test_a_script_is_told_that_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.client.catalog.finding.ANSWER_S", 0.02)
    with pytest.raises(catalog.Unreachable), catalog.SyncClient(ports().broker, timeout=0.05):
        pass
