"""What docs/store.md and docs/store-client.md show works as it stands there."""

import asyncio
import os
import re
import sys
import textwrap
import tomllib
from asyncio.subprocess import PIPE

import pytest

from tests.client.node import in_loop
from tests.client.storeserver import FakeStore
from tests.house.requirements import ROOT
from tests.patience import PATIENCE_S
from weft import store
from weft.node.storetable import StoreTable

PROGRAMS = (ROOT / "docs" / "store-client.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "store.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PROGRAMS, re.DOTALL)
LINES_MAX = 40


async def first_lines(program: str, count: int, *words: str, **environment: str) -> list[str]:
    """What a program prints first."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-u", "-c", program, *words, env={**os.environ, **environment}, stdout=PIPE
    )
    assert process.stdout is not None
    try:
        return [(await process.stdout.readline()).decode().rstrip("\n") for _ in range(count)]
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.proves("CLN-030")
@pytest.mark.parametrize("number", [0, 1])
def test_the_whole_programs_run(number: int) -> None:
    asyncio.run(_whole_program(BLOCKS[number]))


async def _whole_program(program: str) -> None:
    async with FakeStore() as server, asyncio.timeout(PATIENCE_S):
        server.put(("home", "door"), "shut")
        assert ["home.door shut", "home.kitchen.temp 21.5"] == await first_lines(program, 2, WEFT_STORE=server.address)


@in_loop
async def test_plain_messagepack_over_a_socket_is_a_whole_client() -> None:
    program = BLOCKS[-1]
    assert len(program.splitlines()) <= LINES_MAX
    async with FakeStore() as server:
        server.put(("home", "plain", "x"), 1)
        reading = asyncio.ensure_future(first_lines(program, 6, server.address))
        while not server.asked("watch"):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
        server.put(("home", "plain", "y"), None)
        server.drop(("home", "plain", "y"))
        lines = await reading
    assert "connected to a" == lines[0]
    assert "{'from': 'a socket'}" in lines[2]
    assert ["['plain', 'y'] None", "['plain', 'y'] deleted"] == lines[4:]


def test_the_pieces_of_programs_are_python() -> None:
    for block in BLOCKS:
        compile("async def piece(store):\n" + textwrap.indent(block, "    "), "page", "exec")


def test_the_page_says_every_public_name() -> None:
    unsaid = {"Chain", "Mirror", "SyncMirror", "Watch"}  # nobody makes them
    assert [] == [name for name in store.__all__ if name not in unsaid and name not in PROGRAMS]


def test_the_page_says_every_setting_and_its_examples_are_settings() -> None:
    table = PAGE.partition("## Settings")[2].partition("## Limits")[0]
    assert [] == [name for name in StoreTable.__struct_fields__ if f"`{name}`" not in table]
    examples = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert {"name", "broker", "dialects", "root", "keys", "port", "cycle", "gap", "hostmap"} == set(
        tomllib.loads(examples[-2])["store"]
    )
    assert {"broker", "broker_tls", "broker_ca", "broker_user", "broker_password"} == set(
        tomllib.loads(examples[-1])["store"]
    )


def test_the_page_says_every_command() -> None:
    from weft.cli.store import app

    said = [*re.findall(r"weft store ([a-z-]+)", PAGE), "members", "orphans"]
    names = {name for name in app if not name.startswith("-")}
    assert "accept-tick" in names
    assert set() == names - set(said)
