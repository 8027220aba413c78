"""`weft doc open` and commands, each a process of its own: a laptop takes part, is stopped, and goes on."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from tests.client.node import in_loop
from weft import doc
from weft.shell.blocks import free_blocks

pytestmark = pytest.mark.prove("real nodes")

FILE = '<bout ruleset="MAR2014"><period number="1"><jam number="1" duration="90"/></period><venue>Hall 5</venue></bout>'


async def weft(*words: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "weft.cli.main", *words, stdout=PIPE, stderr=PIPE, env={**os.environ, "WEFT_DOC": ""}
    )


async def connected(state: Path) -> doc.Client:
    """A client of the node, as soon as it runs."""
    while True:
        client = doc.Client(state)
        try:
            return await client.__aenter__()
        except doc.Unreachable:
            await asyncio.sleep(0.05)  # tidy: until it is there; bounded by in_loop


async def ended(process: Process) -> int:
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    return process.returncode or 0


@pytest.mark.proves("JAM-040", "JAM-030", "GSP-030")
@in_loop
async def test_a_file_is_opened_edited_and_there_after_a_stop(tmp_path: Path) -> None:
    (tmp_path / "Friday.xml").write_text(FILE)
    state, port = tmp_path / "state", str(free_blocks(1, 21_300)[0])
    words = [str(tmp_path / "Friday.xml"), "--state", str(state), "--node-port", port, "--no-mdns", "--operator", "Ann"]
    node = await weft("doc", "open", *words)
    try:
        client = await connected(state)
        while (await client.status())["operations"] < 2:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.05)  # tidy: until it is taken in; bounded by in_loop
        typed = await weft("doc", "set", "period=1", "jam=1", "duration=95", "--node", str(state))
        said, _ = await typed.communicate()
        assert (0, True) == (typed.returncode, said.startswith(b"entered as "))
        before = await client.digest()
        await client.__aexit__(None, None, None)
    finally:
        status = await ended(node)
    assert 0 == status
    node = await weft("doc", "join", "Friday", *words[1:])
    try:
        client = await connected(state)
        assert before == await client.digest()
        assert '<jam duration="95" number="1">' in await client.show("period=1 jam=1", eids=False)
        await client.__aexit__(None, None, None)
    finally:
        await ended(node)
    late = await weft("doc", "digest", "--node", str(state))
    await late.communicate()
    assert 3 == late.returncode
