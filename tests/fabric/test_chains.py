"""Messages of programs over real nodes: through many hands in order, past dead parents, and into the lake."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

import weft
from tests.fabric.fabric import Fabric
from tests.patience import PATIENCE_S
from weft.checks.accounts import unaccounted
from weft.client.chain.message import Message

TREE = {"root": "", "collector-1": "root", "sensor-1": "collector-1"}
UP = """
[[chains.filter]]
name = "up"
kind = "forward"
types = ["app.*"]
dir = "in"

[[chains.filter]]
name = "keep"
kind = "journal"
types = ["app.*"]
dir = "in"
"""
MESSAGES = 10_000
HOLDER = """
import asyncio, sys, weft

async def main():
    async with weft.chain_client("holder", node=sys.argv[1]) as chain:
        @chain.rewrites("app.held", on="out", fail="open", timeout=60)
        async def hold(message):
            print(message.text, flush=True)
            await asyncio.sleep(3600)
        await chain.ready()
        print("ready", flush=True)
        await chain.run()

asyncio.run(main())
"""


async def until(holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait, bounded, until something holds."""
    ends_at = asyncio.get_running_loop().time() + patience_s
    while not holds():
        assert asyncio.get_running_loop().time() < ends_at, f"not within {patience_s} s: {what}"
        await asyncio.sleep(0.02)  # tidy: other processes tell nobody; bounded above


def run(work: Awaitable[None]) -> None:
    async def main() -> None:
        await work

    asyncio.run(main())


def chains_of(fabric: Fabric, name: str) -> dict[str, Any]:
    """What `weft chain ls --json` says of a node."""
    command = [sys.executable, "-m", "weft.cli.main", "chain", "ls", "--json", "--port", str(fabric.ports[name])]
    said: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    return said


def is_back(fabric: Fabric, name: str) -> bool:
    """Whether a node that was killed serves again; it is started if it does not run."""
    fabric.fleet.watch()
    return bool(fabric.status(name))


def rows_of(fabric: Fabric, key: str) -> list[dict[str, Any]]:
    """The messages of one type in the lake's segments, in order of arrival."""
    rows: list[dict[str, Any]] = []
    for path in sorted((fabric.lake / "drain" / "messages").rglob("*.parquet")):
        rows += [row for row in pq.read_table(path).to_pylist() if row["key"] == key]
    return rows


@pytest.mark.prove("a second story of chains")
@pytest.mark.proves("CHN-013", "CHN-015", "CHN-030", "CLI-020")
def test_ten_thousand_messages_go_through_eight_programs_in_order_and_leave_nothing_behind(tmp_path: Path) -> None:
    async def play(fabric: Fabric) -> None:
        seen: dict[str, list[str]] = {f"reader-{n}": [] for n in range(5)}
        arrived: list[str] = []
        here, there = tmp_path / "sensor-1", tmp_path / "collector-1"
        async with weft.chain_client("through", node=here) as chain, weft.chain_client("end", node=there) as end:

            @end.reads("app.much", window=4096)
            def arrive(message: Message) -> None:
                arrived.append(message.text)

            def reader(name: str) -> Callable[[Message], None]:
                return lambda message: seen[name].append(message.text)

            def writer(mark: str) -> Callable[[Message], Message]:
                return lambda message: message.replace(payload=message.text + mark)

            for n in range(5):
                chain.reads("app.much", on="out", place=10 * n + 5)(reader(f"reader-{n}"))
            for n, mark in enumerate("abc"):
                chain.rewrites("app.much", on="out", place=10 * (n + 1), ordered=True)(writer(mark))
            await chain.ready()
            await end.ready()
            sends = [chain.send("app.much", str(number)) for number in range(MESSAGES)]
            receipts = await asyncio.gather(*sends)
            assert {"spooled": MESSAGES} == Counter(receipt.why for receipt in receipts)
            await until(lambda: len(arrived) >= MESSAGES, "all have arrived")
            expected = [str(number) for number in range(MESSAGES)]
            assert [f"{text}abc" for text in expected] == arrived
            for n, mark in enumerate(("", "a", "ab", "abc", "abc")):
                await until(lambda n=n: len(seen[f"reader-{n}"]) >= MESSAGES, "all copies")  # type: ignore[misc]  # bound
                assert [text + mark for text in expected] == seen[f"reader-{n}"]
            links = [link for entry in chains_of(fabric, "sensor-1")["chains"] for link in entry["links"]]
            assert 8 == len(links)
            holders = [link for link in links if link["access"] == "rw"]
            assert [(0, 0, MESSAGES)] * 3 == [
                (link["pending"], link["backlog"], link["counters"]["changed"]) for link in holders
            ]

    with Fabric(tmp_path, TREE) as fabric:
        fabric.measure_on(1)
        run(play(fabric))


@pytest.mark.prove("a second story of chains")
@pytest.mark.proves("CHN-016", "CLI-005")
def test_a_program_that_is_killed_while_it_holds_messages_loses_none(tmp_path: Path) -> None:
    async def play(fabric: Fabric) -> None:
        program = tmp_path / "holder.py"
        program.write_text(HOLDER, "utf-8")
        here, arrived = tmp_path / "sensor-1", list[str]()
        holder = await asyncio.create_subprocess_exec(
            sys.executable, str(program), str(here), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with (
                weft.chain_client("sender", node=here) as chain,
                weft.chain_client("end", node=tmp_path / "collector-1") as end,
            ):
                end.reads("app.held")(lambda message: arrived.append(message.text))
                await end.ready()
                assert holder.stdout is not None
                assert b"ready\n" == await holder.stdout.readline()
                sends = [chain.send("app.held", f"m{n}") for n in range(3)]
                assert b"m0\n" == await holder.stdout.readline()
                holder.kill()
                receipts = await asyncio.gather(*sends)
                assert ["spooled"] * 3 == [receipt.why for receipt in receipts]
                await until(lambda: len(arrived) >= 3, "what it held has arrived")
                assert ["m0", "m1", "m2"] == arrived
            assert '"why": "died", "held": 3' in fabric.log_of("sensor-1")
        finally:
            if holder.returncode is None:
                holder.kill()
            await holder.wait()

    with Fabric(tmp_path, TREE) as fabric:
        fabric.measure_on(1)
        run(play(fabric))


@pytest.mark.proves("CHN-007", "CHN-071")
def test_messages_of_every_format_come_from_a_leaf_to_the_lake(tmp_path: Path) -> None:
    sent: list[tuple[Any, str]] = [
        ('<note to="all">hello</note>', "xml"),
        ({"a": [1, 2], "b": None}, "json"),
        (msgspec.msgpack.encode({"n": 7}), "msgpack"),
        (b"\x00\xff raw", "raw"),
        ("plain words", "text"),
    ]

    async def play(fabric: Fabric) -> None:
        async with weft.chain_client("sender", node=tmp_path / "sensor-1") as chain:
            for payload, fmt in sent:
                await chain.send("app.note", payload, fmt=fmt)
        await until(lambda: len(rows_of(fabric, "app.note")) >= len(sent), "all are in the lake")

    with Fabric(tmp_path, TREE, UP) as fabric:
        fabric.measure_on(1)
        run(play(fabric))
        fabric.stop()
        rows = rows_of(fabric, "app.note")
    assert [1, 2, 3, 4, 5] == [row["sequence"] for row in rows]
    assert [fmt for _, fmt in sent] == [dict(row["attributes"]).get("fmt", "raw") for row in rows]
    assert ['<note to="all">hello</note>', '{"a":[1,2],"b":null}', '{"n":7}', None, "plain words"] == [
        json.loads(row["body"]) if row["body"] and row["body"].startswith('"') else row["body"] for row in rows
    ]


@pytest.mark.prove("a second story of chains")
@pytest.mark.proves("CHN-031", "CHN-035", "CHN-036")
def test_while_parents_are_dead_nothing_is_lost_or_doubled(tmp_path: Path, *, soak: bool) -> None:
    away_s = 60.0 if soak else 6.0

    async def play(fabric: Fabric) -> None:
        number = 0
        async with weft.chain_client("sender", node=tmp_path / "sensor-1") as chain:

            async def send_for(span_s: float) -> None:
                nonlocal number
                ends_at = asyncio.get_running_loop().time() + span_s
                while asyncio.get_running_loop().time() < ends_at:
                    receipt = await chain.send("app.count", str(number))
                    assert "spooled" == receipt.why
                    number += 1
                    await asyncio.sleep(0.005)  # tidy: the pace of a sender; bounded above

            await send_for(1)
            for victim in ("collector-1", "root"):
                fabric.kill(victim)
                await send_for(away_s / 2)
                await until(lambda victim=victim: is_back(fabric, victim), f"{victim} is back")  # type: ignore[misc]  # bound
                await send_for(1)
            await until(lambda: len(rows_of(fabric, "app.count")) >= number, "all are in the lake")
        rows = rows_of(fabric, "app.count")
        assert list(range(number)) == [int(row["raw"] or json.loads(row["body"])) for row in rows]

    with Fabric(tmp_path, TREE, UP) as fabric:
        fabric.measure_on(1)
        run(play(fabric))


def given_up_rows(fabric: Fabric) -> list[dict[str, Any]]:
    """The events in the lake that name messages which a reader will never get."""
    rows: list[dict[str, Any]] = []
    for path in sorted((fabric.lake / "drain" / "events").rglob("*.parquet")):
        rows += [row for row in pq.read_table(path).to_pylist() if row["key"] == "chains.given-up"]
    return rows


@pytest.mark.prove("a second story of chains")
def test_a_confirming_reader_whose_node_is_killed_again_and_again_sees_all_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    seen: set[int] = set()

    async def play(fabric: Fabric) -> None:
        here, there = tmp_path / "sensor-1", tmp_path / "collector-1"
        async with weft.chain_client("sender", node=here) as sender, weft.chain_client("tally", node=there) as tally:
            tally.reads("n.*", confirm=True, window=256)(lambda message: seen.add(int(message.text)))
            await tally.ready()
            for number in range(600):
                receipt = await sender.send("n.m", str(number))
                assert "spooled" == receipt.why
                if number in (100, 300, 500):
                    fabric.kill("collector-1")
                    await until(lambda: is_back(fabric, "collector-1"), "the collector is back")
            await until(lambda: len(seen) == 600, "all were seen")
            await until(lambda: not mail_of(fabric, "collector-1")["copies"]["held"], "all are confirmed")
        for name in TREE:
            assert [] == unaccounted(fabric.status(name))

    with Fabric(tmp_path, TREE) as fabric:
        fabric.measure_on(1)
        run(play(fabric))
    assert set(range(600)) == seen


@pytest.mark.prove("a second story of chains")
@pytest.mark.proves("FLD-020")
def test_what_a_reader_will_never_get_is_counted_by_reason_and_a_row_of_the_lake(tmp_path: Path) -> None:
    async def play(fabric: Fabric) -> None:
        here, there = tmp_path / "sensor-1", tmp_path / "collector-1"
        async with weft.chain_client("tally", node=there) as tally:
            tally.reads("n.*", confirm=True, away=2)(lambda message: None)
            await tally.ready()
        async with weft.chain_client("sender", node=here) as sender:
            await asyncio.gather(*[sender.send("n.m", str(number), want="dest") for number in range(7)])
        await until(lambda: mail_of(fabric, "collector-1")["copies"]["ended"] == {"time-over": 7}, "it was forgotten")
        await until(lambda: sum(body_of(row)["count"] for row in given_up_rows(fabric)) == 7, "the lake says so")
        for name in TREE:
            assert [] == unaccounted(fabric.status(name))

    with Fabric(tmp_path, TREE) as fabric:
        fabric.measure_on(1)
        run(play(fabric))
        assert {("tally", "time-over")} == {
            (body["reader"], body["why"]) for body in map(body_of, given_up_rows(fabric))
        }


def mail_of(fabric: Fabric, name: str) -> dict[str, Any]:
    """What a node counts of messages."""
    chains = fabric.status(name).get("cores", {}).get("chains", {})  # a busy node may not answer in time: asked again
    mail: dict[str, Any] = chains.get("mail", {"copies": {"held": -1, "ended": {}}})
    return mail


def body_of(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event."""
    body: dict[str, Any] = json.loads(row["raw"] or row["body"])
    return body


@pytest.mark.prove("a second story of chains")
@pytest.mark.proves("CHN-043")
def test_a_node_that_is_stopped_gives_up_what_programs_hold_and_loses_none(tmp_path: Path) -> None:
    arrived: list[str] = []

    async def play(fabric: Fabric) -> None:
        async with (
            weft.chain_client("holder", node=tmp_path / "sensor-1") as holder,
            weft.chain_client("sender", node=tmp_path / "sensor-1") as sender,
            weft.chain_client("end", node=tmp_path / "collector-1") as end,
        ):
            held = asyncio.Event()

            @holder.rewrites("app.held", on="out", timeout=60)
            async def hold(message: Message) -> Message:
                held.set()
                await asyncio.Event().wait()
                return message

            end.reads("app.held")(lambda message: arrived.append(message.text))
            await holder.ready()
            await end.ready()
            sent = sender.send("app.held", "held")
            await held.wait()
            await asyncio.to_thread(fabric.fleet.stop, ["sensor-1"])
            assert "spooled" == (await sent).why
            await until(lambda: arrived == ["held"], "it has arrived")

    with Fabric(tmp_path, TREE) as fabric:
        fabric.measure_on(1)
        run(play(fabric))
