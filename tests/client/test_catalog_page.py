"""What docs/catalog.md shows works as it stands there."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.client.catalogbroker import running
from tests.client.node import in_loop
from weft.cli.catalog import app
from weft.node.catalogtable import CatalogTable

PAGE = Path(__file__).parents[2] / "docs" / "catalog.md"
TEXT = PAGE.read_text("utf-8")


def program(beginning: str) -> dict[str, Any]:
    """What a program of the page defines; what runs it in a loop of its own is left out."""
    [source] = [block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if beginning in block]
    names: dict[str, Any] = {}
    exec(compile(re.sub(r"(?m)^asyncio\.run\(.*$", "", source), str(PAGE), "exec"), names)  # the page's own words
    return names


@in_loop
async def test_the_programs_of_the_page_find_and_call_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path) as at:
        monkeypatch.setenv("WEFT_CATALOG", at.broker)
        async with program("catalog.Service")["thermo"]:
            main = asyncio.ensure_future(program("async def main")["main"]())
            told = ""
            while "enter thermo" not in told:
                await asyncio.sleep(0.01)  # tidy: until it has printed; bounded by in_loop
                told += capsys.readouterr().out
                assert not main.done()
            main.cancel()
        assert "active ('lab',)" in told


def test_the_page_names_every_command_and_no_other() -> None:
    typed = set(re.findall(r"weft catalog ([a-z]+)", TEXT))
    table = TEXT.partition("## What one types")[2].partition("## In a program")[0]
    named = {
        word
        for cell in re.findall(r"(?m)^\| (.*?) \|", table)
        for word in re.findall(r"`(?:weft catalog )?([a-z]+)", cell)
    }
    known = {name for name in app if not name.startswith("-")}
    assert set() == typed - known
    assert set() == known - named


def test_the_page_names_every_setting() -> None:
    table = TEXT.partition("## Settings")[2].partition("## Limits")[0]
    named = {word for row in re.findall(r"(?m)^\| (.*?) \|", table) for word in re.findall(r"`([a-z_]+)`", row)}
    assert set(CatalogTable.__struct_fields__) == named
