"""The pages that people read first: short, without a link into nothing, and with examples that can be used."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.house.requirements import ROOT
from weft.cli.nouns import app

PAGES: Final = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "ARCHITECTURE.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
LINK: Final = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
WORDS: Final = re.compile(r"^(?:[\w.-]+\$ )?weft ([a-z]+)", re.MULTILINE)
OF_EXAMPLES: Final = {"lease"}
"""Nouns that examples bring, when they are installed: docs/annex.md."""
BLOCK: Final = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.proves("WEL-001", part="README of at most 120 lines, with a picture and the file it names")
def test_the_readme_is_short_and_shows_the_console() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert 120 >= len(text.splitlines())
    assert "](docs/console.png)" in text[:1_000]
    assert "examples/fleet.toml" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_links_only_to_what_is_there(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text("utf-8")) if "://" not in target]
    assert [] == [target for target in targets if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_only_commands_that_are_there(page: Path) -> None:
    named = {word for block in BLOCK.findall(page.read_text("utf-8")) for word in WORDS.findall(block)}
    assert set() == {word for word in named - OF_EXAMPLES if word not in app}


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = (ROOT / "docs" / "README.md").read_text("utf-8")
    assert [] == [
        page.name
        for page in (ROOT / "docs").glob("*.md")
        if page.name != "README.md" and f"({page.name})" not in listed
    ]
