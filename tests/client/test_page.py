"""What docs/chains-client.md shows works as it stands there."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

import weft
from tests.client.node import FakeNode, in_loop
from tests.house.requirements import ROOT
from weft.client.chain.client import ChainClient
from weft.wire import clients

PAGE = (ROOT / "docs" / "chains-client.md").read_text("utf-8")
FILTER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.mark.proves("CLI-020")
@in_loop
async def test_the_whole_filter_finds_its_node_and_filters(tmp_path: Path) -> None:
    directory = tmp_path / "weft" / "lab" / "b"
    directory.mkdir(parents=True)
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    environment.pop("WEFT_NODE", None)
    async with FakeNode(directory) as node:
        program = await asyncio.create_subprocess_exec(sys.executable, "-c", FILTER, env=environment)
        try:
            await node.welcomes()
            reg = await node.registers()
            assert ("out", 100, "rw") == (reg.dir, reg.at, reg.access)
            node.gives(1, b"a test", b"a report")
            assert clients.Drop(1, [clients.GiveUp(id=1, why="a test")]) == await node.hears(clients.Drop)
            expected = clients.Next(1, [clients.NextItem(id=2, n=1)], [b"A REPORT"])
            assert expected == await node.hears(clients.Next)
        finally:
            program.kill()
            await program.wait()


def test_the_page_says_every_public_name() -> None:
    assert [] == [name for name in weft.__all__ if name not in {"Message", "Receipt"} and f"weft.{name}" not in PAGE]


def test_every_public_name_is_there_and_no_other() -> None:
    assert [] == [name for name in weft.__all__ if getattr(weft, name) is None]
    with pytest.raises(AttributeError):
        weft.nonsense  # noqa: B018  # asking is the test
    assert isinstance(weft.chain_client("x"), ChainClient)


def test_a_program_that_only_imports_weft_loads_no_sockets() -> None:
    import subprocess

    asked = "import sys, weft; print([name for name in ('zmq', 'asyncio', 'msgspec') if name in sys.modules])"
    assert "[]\n" == subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
