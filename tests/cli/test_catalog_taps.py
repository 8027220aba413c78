"""`weft catalog tap` between real processes: a broker, a program that knows nothing of taps, a caller, and who looks on."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.client.catalogbroker import Ports, ports
from tests.client.node import in_loop
from weft.catalog import CatalogTimeout, Client, NotFound

pytestmark = pytest.mark.prove("real nodes")

WEFT = (sys.executable, "-m", "weft.cli.main", "catalog")
PROGRAM = """
import asyncio, sys
from weft.catalog import Service

service = Service("thermo", id="t1", topics=["temp"], broker=sys.argv[1], beacon_port=0)

@service.endpoint
async def read(sensor: bytes) -> str:
    service.publish("temp", "21.5")
    return "21.5"

asyncio.run(service.run())
"""


@asynccontextmanager
async def processes(place: Path) -> AsyncIterator[Ports]:
    """A broker and a service, each a process of its own."""
    at = ports()
    serve = ("serve", "--port", f"{at.router}", "--node-port", f"{at.node}", "--state", str(place), "--no-beacons")
    running = [
        await asyncio.create_subprocess_exec(*WEFT, *serve, stderr=PIPE),
        await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, at.broker),
    ]
    try:
        yield at
    finally:
        for process in reversed(running):
            process.terminate()
            await process.communicate()


async def found(at: Ports) -> Client:
    """A client, as soon as the service is there."""
    while True:
        async with AsyncExitStack() as stack:
            with suppress(NotFound, CatalogTimeout):
                client = await stack.enter_async_context(Client(at.broker))
                await client.get("thermo")
                stack.pop_all()
                return client
        await asyncio.sleep(0.05)  # tidy: processes are starting; bounded by in_loop


async def tapping(at: Ports, *words: str) -> Process:
    return await asyncio.create_subprocess_exec(*WEFT, "tap", *words, "--broker", at.broker, stdout=PIPE, stderr=PIPE)


async def begun(client: Client) -> dict[str, Any]:
    """The tap that runs, as soon as one does."""
    while True:
        if told := await client.taps():
            return told[0]
        await asyncio.sleep(0.02)  # tidy: a broker tells nobody what others have begun; bounded by in_loop


@pytest.mark.proves("CAT-073", "MON-001", "MON-006")
@in_loop
async def test_who_talks_to_a_service_is_seen_from_outside(tmp_path: Path) -> None:
    async with processes(tmp_path) as at:
        client = await found(at)
        watching = await tapping(at, "thermo", "--count", "3", "--json")
        assert ["t1"] == (await begun(client))["instances"]
        assert (b"21.5",) == await client.call("thermo", "read", "hall")
        out, _ = await watching.communicate()
        copies = [json.loads(text) for text in out.splitlines()]
        assert 0 == watching.returncode
        told = sorted((copy["dir"], copy["socket"], copy.get("word", "")) for copy in copies)
        assert [("in", "router", "read"), ("out", "pub", ""), ("out", "router", "read")] == told
        assert "hall" in out.decode()
        await client.__aexit__(None, None, None)


@pytest.mark.proves("CAT-073", "MON-004", "MON-007")
@in_loop
async def test_a_summary_says_how_often_and_how_fast_and_the_accounts_balance(tmp_path: Path) -> None:
    async with processes(tmp_path) as at:
        client = await found(at)
        watching = await tapping(at, "thermo", "--summary", "--json", "--for", "30s", "--sample", "2")
        running = await begun(client)
        for _ in range(20):
            await client.call("thermo", "read", "hall")
        stop = await tapping(at, "--stop", running["tap"])
        assert b"is stopped" in (await stop.communicate())[0]
        told = json.loads((await watching.communicate())[0])
        assert ("stopped", 60, 30, 30, 0) == tuple(
            told[name] for name in ("why", "seen", "copied", "sampled", "dropped")
        )
        assert 30 == sum(flow["messages"] for flow in told["flows"])
        answers = [flow for flow in told["flows"] if flow["dir"] == "out" and flow["word"] == "read"]
        assert all(0 < flow["p50_s"] <= flow["p99_s"] < 10 for flow in answers)
        listed = await tapping(at, "--list")
        assert (b"no tap runs\n", 1) == ((await listed.communicate())[0], listed.returncode)
        wrong = await tapping(at, "nobody", "--for", "1s")
        assert b"not registered" in (await wrong.communicate())[1]
        assert 1 == wrong.returncode
        await client.__aexit__(None, None, None)
