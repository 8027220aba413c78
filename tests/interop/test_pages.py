"""Pages, word for word: a new user has an empty folder and what stands there."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.house.requirements import ROOT
from tests.interop.pageshell import Shell, opened, until

DOCS: Final = ROOT / "docs"
BLOCK: Final = re.compile(
    r"^```(?P<kind>\w+)(?: (?P<how>file|until)=(?P<what>\S+|\"[^\"\n]*\"))?\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
RUNS: Final = ("sh", "console")
"""Kinds of blocks that are typed; in one of a console a line that is typed begins with `$`."""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with opened(tmp_path) as made:
        yield made


def play(shell: Shell, block: re.Match[str]) -> None:
    """Do what a person does with a block: write a file, type it until it says what it should, or type it once; it has to work."""
    how, what, text = block["how"], (block["what"] or "").strip('"'), block["text"]
    if how == "file":
        (shell.place / what).write_text(text)
    elif how == "until":
        until(shell, text, what)
    elif block["kind"] in RUNS:
        for line in lines_of(block):
            said, status = shell.run(line)
            assert 0 == status, f"{line}: {said}{(shell.place / 'errors').read_text()[-1500:]}"


def lines_of(block: re.Match[str]) -> list[str]:
    """What is typed of a block."""
    lines = block["text"].splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")] if block["kind"] == "console" else lines


@pytest.mark.proves("WEL-002", part="the tutorial and pages of how to do something, word for word")
@pytest.mark.parametrize("page", ["first-hour.md", "by-hand.md", "coming-from.md"])
def test_a_page_works_as_it_is_written(page: str, shell: Shell) -> None:
    blocks = list(BLOCK.finditer((DOCS / page).read_text("utf-8")))
    assert 9 < len(blocks)
    for block in blocks:
        began = time.monotonic()
        play(shell, block)
        print(f"{time.monotonic() - began:6.1f} s  {block['text'].splitlines()[0]}")  # noqa: T201  # minutes, with -s


@pytest.mark.proves("WEL-001", part="its commands work as they are written")
def test_the_commands_of_the_readme_work(shell: Shell) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = [block for block in BLOCK.finditer(text, text.index("## Use it")) if block["kind"] == "sh"]
    (shell.place / "examples").symlink_to(ROOT / "examples")
    lines = [line for block in blocks for line in lines_of(block)]
    starts = [line for line in lines if line.startswith("weft up ")]
    for line in starts:
        shell.run(f"{line} &")  # a terminal of its own
    until(shell, "weft top", f"{len(starts)} machines are well")
    answers = [(line, *shell.run(line)) for line in lines if line not in starts]
    assert [] == [answer for answer in answers if answer[-1] != 0], (shell.place / "errors").read_text()[-1500:]
    assert {"root", "s1", "disk"} <= set(answers[-1][1].split()), "the last one asks what is measured now"


@pytest.mark.proves("WEL-002", part="the commands of the page of closed fabrics let a machine in")
def test_the_commands_of_the_page_of_closed_fabrics_let_a_machine_in(shell: Shell) -> None:
    (block,) = BLOCK.finditer((DOCS / "security.md").read_text("utf-8"))
    invite, join = (line.partition("#")[0].strip() for line in lines_of(block))
    for line in (f"ip address add {invite.split()[-1]}/32 dev lo", "weft up --name root --level root &"):
        shell.run(line)
    until(shell, "weft status", "root")
    token = re.compile(r"weft1\.\S+")
    printed = token.search(said := shell.run(invite)[0])
    assert printed, said
    assert token.search(join), "the page has a token in the place of the line that is printed"
    shell.run(f"{token.sub(printed[0], join)} &")
    until(shell, "weft key ls", "sensor")
    until(shell, "weft top", "2 machines are well")
