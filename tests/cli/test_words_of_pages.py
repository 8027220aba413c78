"""Every command that a page shows is one that there is, with options that it takes: also where nothing can run it."""

import re
import shlex
from collections.abc import Iterator

import pytest
from cyclopts import App

from tests.house.requirements import ROOT
from weft.cli.nouns import app

TYPED = re.compile(r"^```(?:sh|console)?\b[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WEFT = re.compile(r"(?:^| |bin/)weft (?=[a-z])")
END = re.compile(r"^(&|\||;|&&|\|\||>.*|2>.*|<.*|\).*)$")
EVERYWHERE = {"--help", "--version"}
ANNEXES = {"lease"}
"""Commands of the example of docs/annex.md."""


def typed(text: str) -> Iterator[list[str]]:
    """The words behind `weft` of each line that is typed, up to what is the shell's."""
    for block in TYPED.finditer(text):
        is_console = re.search(r"^\S*\$ ", block[1], re.MULTILINE)
        for line in block[1].replace("\\\n", " ").splitlines():
            if (is_console and not re.match(r"\S*\$ ", line)) or not (found := WEFT.search(line)):
                continue
            try:
                words = shlex.split(line[found.end() :], comments=True)
            except ValueError:
                continue  # a text that goes on in the next line
            yield words[: next((place for place, word in enumerate(words) if END.match(word)), len(words))]


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """Every command with its options: to ask cyclopts for all of them takes a third of a second."""
    return dict(told(app))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_are_there_with_their_options(page: object, known: dict[str, set[str]]) -> None:
    assert [] == [wrong for words in typed(page.read_text("utf-8")) if (wrong := fault(words, known))]  # type: ignore[attr-defined]  # a Path


def told(room: App, *above: str) -> Iterator[tuple[str, set[str]]]:
    """Every command below, by each of its names, and all its options."""
    for name in [name for name in room if not name.startswith("-")]:
        command = room[name]
        if command.default_command is not None:
            taken = {flag for one in command.assemble_argument_collection() for flag in one.names}
            yield " ".join((*above, name)), taken
        yield from told(command, *above, name)


def fault(words: list[str], known: dict[str, set[str]]) -> str:
    """What is wrong with a command; empty: nothing."""
    name = next((name for length in (4, 3, 2, 1) if (name := " ".join(words[:length])) in known), "")
    if not name:
        return "" if EVERYWHERE & set(words) or words[0] in ANNEXES else f"no command: weft {' '.join(words)}"
    odd = {word.partition("=")[0] for word in words if word.startswith("--")} - known[name] - EVERYWHERE
    return f"weft {name} has no {', '.join(sorted(odd))}" if odd else ""
