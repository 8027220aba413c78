"""What docs/catalog-service.md shows works as it stands there, with a real broker."""

import asyncio
import os
import re
import sys
import textwrap
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.client.catalogbroker import running
from tests.client.node import in_loop
from tests.house.requirements import ROOT
from weft import catalog
from weft.catalog import Client, NotFound
from weft.client.catalog import servicelimits

PAGE = (ROOT / "docs" / "catalog-service.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = [text.splitlines() for text in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)]
SERVICE, CLIENT = BLOCKS[:2]
PLAIN_SERVICE, PLAIN_CLIENT = BLOCKS[-2:]
LINES_MAX = 60


@asynccontextmanager
async def program(text: str, broker: str) -> AsyncIterator[Process]:
    """It runs, as one who reads the page would run it."""
    environment = {**os.environ, "WEFT_CATALOG": broker}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-W", "error", "-c", text, broker), env=environment, stdout=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def lines_of(text: str, broker: str) -> list[str]:
    async with program(text, broker) as process:
        said, _ = await process.communicate()
        return said.decode().splitlines()


async def is_there(client: Client, name: str) -> None:
    """Wait until the broker knows it."""
    while True:
        try:
            await client.get(name)
        except NotFound:
            await asyncio.sleep(0.01)  # tidy: a program that starts tells nobody; bounded by in_loop
        else:
            return


@pytest.mark.proves("CAT-070")
@in_loop
async def test_the_first_programs_do_as_the_page_says(tmp_path: Path) -> None:
    async with running(tmp_path) as ports, Client(ports.broker) as client:
        async with program(SERVICE, ports.broker) as service:
            await is_there(client, "thermo")
            assert SHOWN[0] == await lines_of(CLIENT, ports.broker)
            service.terminate()
            assert 0 == await service.wait()
        with pytest.raises(NotFound) as gone:
            await client.get("thermo")
        assert "left" == gone.value.state


@pytest.mark.proves("CAT-023", "CAT-070")
@in_loop
async def test_plain_frames_are_a_whole_service_and_a_whole_client(tmp_path: Path) -> None:
    assert [] == [
        text for text in (PLAIN_SERVICE, PLAIN_CLIENT) if "weft" in text or len(text.splitlines()) > LINES_MAX
    ]
    async with running(tmp_path) as ports, Client(ports.broker) as client, program(PLAIN_SERVICE, ports.broker):
        await is_there(client, "plain")
        assert SHOWN[1] == await lines_of(PLAIN_CLIENT, ports.broker)
        assert (b"HELLO",) == await client.call("plain", "shout", b"hello")


def test_the_pieces_of_programs_are_python() -> None:
    for block in BLOCKS:
        compile("async def piece():\n" + textwrap.indent(block, "    "), "page", "exec")


def test_the_page_says_every_argument_of_a_service() -> None:
    said = set(re.findall(r"\w+", PAGE))
    names = catalog.Service.__init__.__annotations__.keys() - {"return", "name"}
    assert [] == sorted(names - said)


def test_the_limits_of_the_page_are_those_of_the_library() -> None:
    table = PAGE.partition("## Limits")[2].partition("## ")[0]
    numbers = (
        f"{servicelimits.CALLS_MAX:,} |",
        f"{servicelimits.FRAME_BYTES_MAX >> 20} MiB; {servicelimits.FRAMES_MAX}",
        f"{servicelimits.RING_MAX:,}; {servicelimits.RECORDS_WAITING_MAX:,}",
        f"{servicelimits.FIRST_WORDS_MAX:,} messages",
    )
    assert [] == [number for number in numbers if number not in table]
    assert 1_000 == servicelimits.CALLS_MAX, "the table of codes says a thousand"
