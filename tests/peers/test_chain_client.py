"""The protocol of the chains needs a ZeroMQ and a MessagePack library and nothing else."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.client.node import NODE, FakeNode, in_loop
from tests.house.requirements import ROOT
from weft.wire import clients

EXAMPLE = Path(__file__).with_name("chain_client.py")
READER = Path(__file__).with_name("chain_reader.py")
PAGE = ROOT / "docs" / "chains-client.md"


@pytest.mark.proves("CLI-026")
@in_loop
async def test_the_plain_example_attaches_sends_and_hands_back_what_it_changed(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node:
        program = await asyncio.create_subprocess_exec(
            sys.executable, str(EXAMPLE), node.endpoint, stdout=asyncio.subprocess.PIPE
        )
        hello = await node.welcomes()
        assert ("plain", program.pid) == (hello.name, hello.pid)
        reg = clients.Reg(reg=1, dir="out", type="demo.report", at=100, access="rw", noself=True)
        assert reg == await node.registers()
        item = clients.SendItem(tag=1, type="demo.report", to=["PARENTSOF"])
        assert clients.Send([item], [b"<report/>"]) == await node.hears(clients.Send)
        node.ends(1)
        node.gives(1, b'<report num="1"/>', b'<report num="2"/>')
        for number in (1, 2):
            changed = b'<report num="%d"><plain/></report>' % number
            assert clients.Next(1, [clients.NextItem(id=number, n=1)], [changed]) == await node.hears(clients.Next)
        node.says(clients.Bye())
        printed, _ = await program.communicate()
        assert [b"done", b"status"] == [line.split(b"'")[3] for line in printed.splitlines()]
        assert 0 == program.returncode


@in_loop
async def test_the_plain_reader_confirms_all_and_shows_what_comes_again_once(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node:
        program = await asyncio.create_subprocess_exec(
            sys.executable, str(READER), node.endpoint, stdout=asyncio.subprocess.PIPE
        )
        assert program.stdout is not None
        try:
            hello = await node.welcomes()
            reg = clients.Reg(reg=1, dir="in", type="app.*", confirm=True, away=600_000)
            assert reg == await node.registers()
            for number, text in ((1, b"one"), (2, b"two")):
                node.gives(1, text, first=number, mid=(NODE, 7, number))
            assert [clients.Conf(1, [1]), clients.Conf(1, [2])] == [await node.hears(clients.Conf) for _ in "12"]
            node.says(clients.Bye())
            again = await node.welcomes()
            assert (hello.id, hello.name) == (again.id, again.name), "the same client, come back"
            assert reg == await node.registers()
            for number, text in ((2, b"two"), (3, b"three")):
                node.gives(1, text, first=number, mid=(NODE, 7, number))
            assert [clients.Conf(1, [2]), clients.Conf(1, [3])] == [await node.hears(clients.Conf) for _ in "12"]
            assert [b"one\n", b"two\n", b"three\n"] == [await program.stdout.readline() for _ in "123"]
        finally:
            program.kill()
            await program.wait()


@pytest.mark.proves("CLI-026")
def test_the_page_shows_the_example_as_it_is_and_it_is_short() -> None:
    example = EXAMPLE.read_text("utf-8")
    assert f"```python\n{example}```\n" in PAGE.read_text("utf-8")
    assert len(example.splitlines()) <= 40


def test_the_page_shows_the_reader_as_it_is() -> None:
    assert f"```python\n{READER.read_text('utf-8')}```\n" in PAGE.read_text("utf-8")
