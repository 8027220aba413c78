"""The catalog over real processes: services come and die, the broker is killed, stopped and back, and all of it is rows."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
import pytest

from tests.fabric.fabric import Fabric
from tests.fabric.test_chains import run, until
from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.catalog import Client, Unreachable
from weft.shell.blocks import free_blocks

TREE = {"root": ""}
TABLE = """
[catalog]
port = {port}
beacon_port = {beacon_port}
beacon = "200ms"
"""
EACH = 10
PROGRAM = """
import asyncio, logging, sys
from weft.catalog import Handler, Service

async def main(first, count, broker, beacon_port):
    services = [
        Service(f"s{number}", tags=["lab"], topics=["temp"], interval_s=0.3, broker=broker, beacon_port=beacon_port)
        for number in range(first, first + count)
    ]
    for service in services:
        await service.start()
    log = logging.getLogger(f"s{first}")
    log.addHandler(Handler(services[0]))
    log.warning("all are there")
    services[0].publish("temp", "21.5")
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
"""


class Catalogs(Fabric):
    """A root with a catalog, and programs that register there."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, TREE)
        (self.port,), self.beacon_port = free_blocks(1, 23_000), free_port(socket.SOCK_DGRAM)
        self.programs: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        super().__enter__()
        self.until(lambda: bool(self.catalog()), "the broker serves")
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs:
            program.kill()
            program.communicate()
        super().__exit__(*_)

    def settings(self, name: str, port: int, state: Path) -> str:
        return super().settings(name, port, state) + TABLE.format(port=self.port, beacon_port=self.beacon_port)

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.port}"

    def catalog(self) -> dict[str, Any]:
        return dict(self.status("root").get("cores", {}).get("catalog", {}))

    def run_services(self, first: int) -> subprocess.Popen[str]:
        """A process of `EACH` services, registered."""
        words = [sys.executable, "-c", PROGRAM, str(first), str(EACH), self.broker, str(self.beacon_port)]
        program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.programs.append(program)
        assert program.stdout is not None
        assert "ready\n" == program.stdout.readline()
        return program

    def rows(self, stream: str) -> list[dict[str, Any]]:
        """What of a stream is in the lake's segments."""
        files = sorted((self.lake / "drain" / stream).rglob("*.parquet"))
        return [row for path in files for row in pq.read_table(path).to_pylist()]


def names(*firsts: int) -> set[str]:
    return {f"s{number}" for first in firsts for number in range(first, first + EACH)}


async def listed(client: Client) -> set[str]:
    try:
        return set(await client.list())
    except Unreachable:
        return set()


async def until_listed(client: Client, expected: set[str], what: str) -> None:
    seen: set[str] = set()

    async def look() -> None:
        nonlocal seen
        while seen != expected:
            seen = await listed(client)
            await asyncio.sleep(0.02)  # tidy: other processes tell nobody; bounded below

    async with asyncio.timeout(PATIENCE_S):
        await look()
    assert expected == seen, what


@pytest.mark.proves("CAT-001", "CAT-051", "BEA-015", "BEA-021", "BEA-022", "LOG-005", "LVC-002")
def test_services_are_there_while_they_live_whatever_becomes_of_the_broker(tmp_path: Path) -> None:
    async def play(fabric: Catalogs) -> None:
        async with Client(fabric.broker) as client:
            await until_listed(client, names(0, EACH), "both programs")
            assert {"s0", f"s{EACH}"} == {row["service"] for row in await client.logs(contains="all are there")}
            assert {"s0", f"s{EACH}"} == {value.publisher for value in await client.last_values("temp")}
            doomed.kill()
            await until_listed(client, names(0), "who was killed is gone")
            before = fabric.catalog()["epoch"]
            fabric.kill("root")
            fabric.start("root")
            await until(lambda: fabric.catalog().get("epoch", before) != before, "the broker is back")
            await until_listed(client, names(0), "who lives came back by itself")
            index = fabric.catalog()["index"]
            pause(fabric, 2.0)
            await until_listed(client, names(0), "nobody was called dead")
            evictions = fabric.catalog()["evictions"]
            assert {} == evictions, f"{evictions} after index {index}"

    with Catalogs(tmp_path) as fabric:
        fabric.run_services(0)
        doomed = fabric.run_services(EACH)
        run(play(fabric))
        fabric.until(lambda: len(fabric.rows("logs")) == 2, "both warnings are in the lake")
        fabric.until(lambda: fabric.catalog()["index"] <= numbers_of(fabric)[-1], "all changes are in the lake")
        fabric.until(lambda: ends(fabric) == names(EACH), "those of the start before are there, too")
        assert {f"s{number}" for number in range(2 * EACH)} == {row["key"] for row in fabric.rows("catalog")}


def ends(fabric: Catalogs) -> set[str]:
    """Whose end is a row of the lake."""
    return {row["key"] for row in fabric.rows("catalog") if dict(row["attributes"])["op"] == "inactive"}


def numbers_of(fabric: Catalogs) -> list[int]:
    """The changes of the newest start that are in the lake."""
    rows = fabric.rows("catalog")
    newest = max(row["era"] for row in rows)
    return sorted(row["sequence"] for row in rows if row["era"] == newest)


def pause(fabric: Catalogs, seconds: float) -> None:
    """The broker's machine is stopped, and goes on."""
    process = fabric.member("root").process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        signal.sigtimedwait({signal.SIGUSR2}, seconds)  # nobody sends it: the span itself is what is tested
    finally:
        os.kill(process.pid, signal.SIGCONT)
