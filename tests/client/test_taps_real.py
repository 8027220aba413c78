"""Taps at a real broker: a service that knows nothing of it is copied, and its callers notice nothing."""

from pathlib import Path

import pytest

from tests.client.catalogbroker import Ports, running
from tests.client.node import in_loop
from weft.catalog import BadRequest, Client, Service, Unsupported
from weft.client.catalog.tapped import flows_of


def thermo(ports: Ports) -> Service:
    service = Service("thermo", id="t1", topics=["temp"], beacon_port=0, broker=ports.broker)

    @service.endpoint
    async def read(sensor: bytes) -> str:
        return f"{sensor.decode()} 21.5"

    return service


@pytest.mark.proves("MON-001", "MON-002", "MON-003", "MON-006")
@in_loop
async def test_calls_answers_and_publications_are_copied_without_the_services_help(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client, thermo(ports) as service:
        async with client.tap("thermo", max_frame=4) as tapped:
            assert ["t1"] == tapped.instances
            assert (b"kitchen 21.5",) == await client.call("thermo", "read", "kitchen")
            service.publish("temp", "21.5")
            copies = [await anext(tapped) for _ in range(3)]
        come, gone, published = copies
        assert [("in", "router", "read", True), ("out", "router", "read", True), ("out", "pub", "", False)] == [
            (each.header["dir"], each.header["socket"], each.header.get("word", ""), each.header["cut"])
            for each in copies
        ]
        assert [b"kitc", b"kitc"] == [come.frames[-1], gone.frames[-1]]
        assert (b"temp", b"21.5") == published.frames
        assert come.header["peer"] == gone.header["peer"]
        assert come.header["peer"].startswith("127.0.0.1/")
        assert 0 < gone.header["took_us"] < 10**7
        flows = flows_of(copies)
        assert [("thermo", "in", "127.0.0.1", "read"), ("thermo", "out", "127.0.0.1", "read")] == sorted(flows)[:2]
        assert flows["thermo", "out", "subscribers", "pub"].bytes == 8


@pytest.mark.proves("MON-004", "MON-005")
@in_loop
async def test_a_tap_leaves_its_accounts_and_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client, thermo(ports) as service:
        tapped = client.tap("thermo", sample=2, seconds=0.4, dir="in")
        await tapped.__aenter__()
        for _ in range(5):
            await client.call("thermo", "read", "a")
        told = [copy async for copy in tapped]
        assert 3 == len(told)
        assert {"why": "time", "seen": 5, "copied": 3, "dropped": 0, "sampled": 2} == tapped.accounts
        assert [] == await client.taps()
        traffic = service.endpoints.traffic
        assert [None] * 3 == [traffic.on_call, traffic.on_answer, traffic.on_publication]
        tapped.close()


@pytest.mark.proves("MON-004", part="what is beyond the rate is counted")
@in_loop
async def test_of_more_calls_than_a_tap_may_copy_all_are_counted(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client, thermo(ports):
        tapped = client.tap("thermo", rate=1)
        await tapped.__aenter__()
        for _ in range(50):
            await client.call("thermo", "read", "a")
        await tapped.stop()
        told = [copy async for copy in tapped]
        accounts = tapped.accounts
        assert (100, 0, len(told)) == (accounts["seen"], accounts["dropped"], accounts["copied"])
        assert 100 == accounts["copied"] + accounts["sampled"]
        tapped.close()


@pytest.mark.proves("MON-001", "MON-004", part="taps of one service do not hinder one another")
@in_loop
async def test_a_second_tap_misses_nothing_and_counts_from_its_begin(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client, thermo(ports):
        seldom = client.tap("thermo", sample=1000, dir="in")
        await seldom.__aenter__()
        for _ in range(3):
            await client.call("thermo", "read", "a")
        every = client.tap("thermo", dir="in")
        await every.__aenter__()
        await client.call("thermo", "read", "b")
        assert b"b" == (await anext(every)).frames[-1]
        for tapped, accounts in (
            (seldom, {"seen": 4, "copied": 1, "dropped": 0, "sampled": 3}),
            (every, {"seen": 1, "copied": 1, "dropped": 0, "sampled": 0}),
        ):
            await tapped.stop()
            async for _ in tapped:
                pass
            assert {"why": "stopped", **accounts} == tapped.accounts
            tapped.close()


@pytest.mark.proves("MON-005", part="registered anew")
@in_loop
async def test_a_service_that_registers_anew_is_tapped_no_more(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client, thermo(ports):
        tapped = client.tap("thermo")
        await tapped.__aenter__()
        await client.deregister("thermo", "t1", state=str(tmp_path))
        assert [] == [copy async for copy in tapped]
        assert "registered anew" == tapped.accounts["why"]
        tapped.close()


@pytest.mark.proves("MON-001", "MON-002", part="refusals")
@in_loop
async def test_who_cannot_be_tapped_is_named_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client:
        await client.register("printer", ip="127.0.0.1", port=9100)
        with pytest.raises(Unsupported):
            await client.tap("printer").__aenter__()
        with pytest.raises(BadRequest):
            await client.tap("printer", rate=0).__aenter__()
