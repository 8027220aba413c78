"""A node whose journal is full while programs send: they hear it, nothing that was promised is lost, and it recovers."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

import weft
from tests.fabric.fabric import Fabric
from tests.fabric.test_chains import UP, is_back, rows_of, run, until
from tests.patience import PATIENCE_S
from weft.base.mail import OUTBOX

pytestmark = pytest.mark.prove("a full disk")

TREE = {"root": "", "sensor-1": "root"}
JOURNAL = "\n[journal]\nmegabytes = 1\n"
PAYLOAD = bytes(4_000)


class Small(Fabric):
    """The sensor's journal has room for a few hundred messages."""

    def settings(self, name: str, port: int, state: Path) -> str:
        return super().settings(name, port, state) + (JOURNAL if name == "sensor-1" else "")


@pytest.mark.proves("CHN-039", "CHN-040", "JRN-030")
def test_while_a_journal_is_full_sends_are_refused_and_none_that_was_taken_is_lost(tmp_path: Path) -> None:
    told: dict[int, str] = {}

    async def play(fabric: Fabric) -> None:
        fabric.member("root").wanted = False
        fabric.kill("root")
        async with weft.chain_client("sender", node=tmp_path / "sensor-1") as chain:

            async def send(number: int) -> None:
                try:
                    told[number] = (await chain.send("app.full", b"%d " % number + PAYLOAD)).why
                except weft.SendFailed as error:
                    told[number] = error.why

            async with asyncio.TaskGroup() as group:
                for number in range(1_500):
                    group.create_task(send(number))
                await until(lambda: "overload" in told.values(), "sends are refused")
                fabric.start("root")
            assert {"spooled", "overload"} == set(told.values())
            await until(lambda: is_back(fabric, "root"), "the root is back")
            async with asyncio.timeout(PATIENCE_S):
                await send(number := 1_500)
                while (
                    "spooled" != told[number]
                ):  # room comes back as the root takes what waits: some may still be refused
                    await asyncio.sleep(0.1)  # tidy: other processes tell nobody; bounded above
                    await send(number := number + 1)
            kept = Counter(told.values())["spooled"]
            await until(lambda: len(rows_of(fabric, "app.full")) >= kept, "all are in the lake")

    with Small(tmp_path, TREE, UP) as fabric:
        fabric.measure_on(1)
        run(play(fabric))
        assert f'"stream": {OUTBOX}' not in fabric.log_of("sensor-1"), "only samples are given up"
        numbers = [int(row["raw"].split()[0]) for row in rows_of(fabric, "app.full")]
    assert sorted(number for number, why in told.items() if why == "spooled") == numbers
