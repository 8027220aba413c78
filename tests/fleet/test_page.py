"""The page about configuration keeps step with what is read."""

import re
from pathlib import Path

import pytest

from weft.cli.config import app
from weft.cores.measurement.details import DETAILS
from weft.node.fleet import fleet_of
from weft.node.fleetkeys import to_pairs
from weft.node.fleetparts import SPANS

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
FILES = re.findall(r"```toml[^\n]*\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.proves("CFG-070")
@pytest.mark.parametrize("text", FILES)
def test_every_file_of_the_page_can_be_used(text: str) -> None:
    assert fleet_of(text, "the page").groups


def test_the_keys_shown_are_those_of_the_file() -> None:
    pairs = [f"{key} {value.decode()}" for key, value in to_pairs(fleet_of(FILES[1], "the page"))]
    part = PAGE.partition("## What is replicated")[2].partition("\n## ")[0]
    shown = [line for line in part.splitlines() if line.startswith("/CONFIG/")]
    assert 4 == len(shown)
    assert set(shown) <= set(pairs)


def test_every_code_detail_time_and_command_is_told() -> None:
    words = [*(f"| E{n:02} |" for n in range(1, 16)), "| W01 |", "| W02 |", "| W03 |"]
    words += [f"`{name}`" for name in (*DETAILS, *SPANS)]
    words += [f"weft config {name}" for name in app if not name.startswith("-") and name != "convert"]
    assert [] == [word for word in words if word not in PAGE]
