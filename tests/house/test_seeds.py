"""docs/seeds.md: every section of every seed has its row, and what a row names is there."""

import re
from typing import Final

import pytest

import weft
import weft.catalog
from tests.house.requirements import ROOT
from weft.cli.nouns import ROOMS

PAGE: Final = (ROOT / "docs" / "seeds.md").read_text("utf-8")
ROW: Final = re.compile(r"^\| (?!section|-)(.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
ROWS: Final = ROW.findall(PAGE)
SEEDS: Final = ("Configuration replication", "Core catalog service", "Store", "Documents", "Chains")


def test_each_of_the_five_seeds_has_its_table() -> None:
    heads = re.findall(r"^## (.*?) \(", PAGE, re.MULTILINE)
    assert list(SEEDS) == heads
    parts = PAGE.split("\n## ")[1:]
    assert [7, 12, 11, 15, 11] == [len(ROW.findall(part)) for part in parts]


@pytest.mark.parametrize("section, command, tests, peer", ROWS, ids=[row[0][:40] for row in ROWS])
def test_what_a_row_names_is_there(section: str, command: str, tests: str, peer: str) -> None:
    named = re.findall(r"`(tests/[^`]*)`", f"{tests} {peer}")
    assert [] == [path for path in named if not (ROOT / path).exists()], section
    words = re.findall(r"`weft (\w+)", command)
    assert [] == [word for word in words if word not in ROOMS], section
    assert named, f"{section}: tests"


def test_no_section_is_missing() -> None:
    assert [] == [row for row in ROWS if any("missing" in cell for cell in row)]


def test_names_of_the_package_that_a_row_gives_are_there() -> None:
    names = sorted(set(re.findall(r"`weft\.([\w.]+)`", PAGE)))
    assert ["catalog.Service", "chain_client"] == names
    assert callable(weft.catalog.Service)
    assert callable(weft.chain_client)
