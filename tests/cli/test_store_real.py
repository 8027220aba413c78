"""The command line of the store at a real node: typed, done, and shown."""

import asyncio
import json
import os
import shlex
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.client.node import in_loop
from tests.client.test_store_real import made, running
from weft.shell.blocks import free_blocks

pytestmark = pytest.mark.prove("real nodes")


async def weft(*words: str) -> tuple[int | None, list[str]]:
    """Exit status and lines of a command."""
    command = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "weft.cli.main", *words, stdout=PIPE, stderr=PIPE
    )
    out, _ = await command.communicate()
    return command.returncode, out.decode().splitlines()


@pytest.mark.proves("ADM-020")
@in_loop
async def test_a_value_is_typed_read_and_watched_over_a_restart(tmp_path: Path) -> None:
    port = free_blocks(1, 16_000)[0]
    at = ("--port", str(port))
    watcher = None
    async with running(tmp_path, port):
        assert (0, []) == await weft("set", "home.kitchen.temp", "21.5", *at)
        got, below, state, refused = await asyncio.gather(
            weft("get", "home.kitchen.temp", "--json", "--node", str(tmp_path)),
            weft("ls", "--tree", *at),
            weft("store", "state", "--json", *at),
            weft("store", "found", "again", *at),
        )
        assert (0, 21.5) == (got[0], json.loads(got[1][0])["value"])
        assert (0, [": r", "home.kitchen.temp 21.5"]) == below
        assert (True, "a", 2) == tuple(json.loads(state[1][0])[name] for name in ("serves", "node", "entries"))
        assert (4, []) == refused
        words = ("watch", "home", "--fetch", "--count", "2", "--json", *at)
        watcher = await asyncio.create_subprocess_exec(sys.executable, "-m", "weft.cli.main", *words, stdout=PIPE)
        assert watcher.stdout is not None
        first = [json.loads(await watcher.stdout.readline()) for _ in range(2)]
        assert ["entry", "uptodate"] == [told["event"] for told in first]
    async with running(tmp_path, port):
        back = [json.loads(await watcher.stdout.readline()) for _ in range(3)]  # it has caught up before more happens
        assert (0, []) == await weft("del", "home.kitchen.temp", *at)
        told = back + [json.loads(line) for line in (await watcher.communicate())[0].splitlines()]
        assert ["lost", "back", "uptodate", "change"] == [one["event"] for one in told]
        assert ("home.kitchen.temp", False) == (told[-1]["path"], "value" in told[-1])
        assert (1, []) == await weft("get", "home.kitchen.temp", *at)
    assert (3, []) == await weft("get", "home.kitchen.temp", *at)


async def complained(*words: str, place: Path) -> tuple[int | None, list[str]]:
    """Exit status and complaint of a command of somebody whose only nodes are those below a place."""
    command = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "weft.cli.main", *words, stdout=PIPE, stderr=PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(place)},
    )  # fmt: skip
    _, errors = await command.communicate()
    return command.returncode, errors.decode().splitlines()


@pytest.mark.proves("ADM-020", part="before a store is founded every command says that, and what founds it")
@in_loop
async def test_before_its_store_is_founded_a_node_says_so_and_the_mend_founds_it(tmp_path: Path) -> None:
    port = free_blocks(1, 16_000)[0]
    process = made(tmp_path / "weft" / "lab" / "a", port, found=None)
    run = asyncio.ensure_future(process.run())
    missing = "the store is not founded: this node has none, and knows no other node that has one"
    while (told := await complained("get", "home.temp", place=tmp_path))[1][0] != (
        f"weft: 127.0.0.1:{port + 5}: {missing}"
    ):
        assert 3 == told[0], told  # it is about to start
    mend = f"weft store found --port {port}"
    state = f"weft store state --port {port} shows what it waits for"
    assert [f"  try: {mend}, if this is the first node of the store; {state}"] == told[1][1:]
    for words in (("set", "home.temp", "21.5"), ("ls",), ("watch", "home", "--count", "1")):
        assert told == await complained(*words, place=tmp_path), words
    assert (0, []) == await complained(*shlex.split(mend)[1:], place=tmp_path)
    assert (0, []) == await complained("set", "home.temp", "21.5", place=tmp_path)
    assert (0, ["21.5"]) == await weft("get", "home.temp", "--port", str(port))
    process.stop()
    await run
