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
BLOCK: Final = re.compile(r"^```(?:sh|console)(?: [^\n]*)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_TYPED: Final = re.compile(r"^<!-- not typed: [^\n]+ -->\n```.*?^```$", re.MULTILINE | re.DOTALL)
LINE_BY_LINE: Final = ("alerts", "catalog", "chains", "configuration", "console", "doc", "filters", "store")
WORD_FOR_WORD: Final = ("README", "by-hand", "coming-from", "first-hour", "security")
RUN_BY: Final = {
    **{f"{page}.md": "interop/test_pages_typed.py" for page in LINE_BY_LINE},
    **{f"{page}.md": "interop/test_pages.py" for page in WORD_FOR_WORD},
    "annex.md": "fabric/test_annex.py",
    "as-of.md": "cli/test_asof_page.py",
    "catalog-service.md": "client/test_service_page.py",
    "chains-client.md": "client/test_page.py",
    "cluster.md": "interop/test_pages_spark.py",
    "import.md": "pipeline/test_imported.py",
    "lake-mending.md": "pipeline/test_mending_page.py",
    "lake-operation.md": "pipeline/test_examples.py",
    "lake-upkeep.md": "pipeline/test_upkeep_lake.py",
    "lake.md": "pipeline/test_examples.py",
    "observing.md": "interop/test_page_observing.py",
    "operations.md": "interop/test_pages_operations.py",
    "second-machine.md": "interop/test_two_machines.py",
    "segments.md": "lake/test_import.py",
}
"""Pages with commands, and the test that runs what is typed there."""


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


def open_blocks(text: str) -> int:
    """How many blocks of commands do not say that nobody types them.

    >>> open_blocks("```sh\\nweft top\\n```\\n<!-- not typed: why -->\\n```sh\\nweft demo\\n```\\n")
    1
    """
    return len(BLOCK.findall(NOT_TYPED.sub("", text)))


@pytest.mark.proves("WEL-002", part="each block of commands of each page is run by a test, or says why not")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_are_run_by_a_test_or_it_says_why_not(page: Path) -> None:
    if open_blocks(page.read_text("utf-8")) == 0:
        return
    assert page.name in RUN_BY, "name its test here, or say on the page: <!-- not typed: why -->"
    assert page.name in (ROOT / "tests" / RUN_BY[page.name]).read_text("utf-8")
