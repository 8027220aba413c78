"""Pages about one part of Weft: what is typed works, line by line; a block that is not typed says why in a comment of its page."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.house.requirements import ROOT
from tests.interop.pageshell import Shell, opened
from tests.patience import PATIENCE_S

BLOCK: Final = re.compile(
    r"^(?:<!-- (?P<mark>not typed: [^\n]+|typed anew) -->\n)?```(?P<kind>\w+)(?: file=(?P<file>\S+))?[^\n]*\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
PAGES: Final = {
    "console.md": "weft up --name root --level root &",
    "alerts.md": "weft up --name root --level root &",
    "chains.md": ":",
    "store.md": ":",
    "catalog.md": ":",
    "doc.md": ":",
    "configuration.md": ":",
    "filters.md": f"cp {ROOT}/examples/fleet.toml .; weft up --name root --level root & weft up --name s1 --port 27510 &",
}
"""Pages, and what they take as done before."""
OTHERS: Final = {
    "README.md": 2,
    "docs/first-hour.md": 14,
    "docs/by-hand.md": 13,
    "docs/coming-from.md": 18,
    "docs/security.md": 1,
}
"""Pages that other tests type: how many blocks."""
TYPED: Final = ("sh", "console")
ENDLESS: Final = re.compile(
    r"weft (up|demo|watch|config watch|doc join|catalog (serve|watch|subscribe|register)|.* --follow)\b"
)
"""What runs until Ctrl-C: a terminal of its own."""
OF_THE_EXAMPLE: Final = {
    "--if-number 17": "a number of its writes",
    "rollback 40": "a number of its writes",
    "--as copy": "a fresh node that joins nobody",
}
"""What holds only in the fleet of the page, and why."""
REFUSED: Final = "# refused"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with opened(tmp_path) as made:
        yield made


def blocks_of(page: Path) -> list[re.Match[str]]:
    return list(BLOCK.finditer(page.read_text("utf-8")))


def lines_of(block: re.Match[str]) -> list[str]:
    """What is typed of a block: each line of a console that begins with `$`; a here-document is one line."""
    if block["kind"] == "console":
        return [line[2:] for line in block["text"].splitlines() if line.startswith("$ ")]
    return re.findall(r"^(?:cat >.*?^E$|.+?$)", block["text"], re.MULTILINE | re.DOTALL)


def is_done(shell: Shell, line: str) -> bool:
    """Whether a line works, or is refused where the page says so."""
    return (shell.run(line)[1] != 0) is (REFUSED in line)


def type_in(shell: Shell, line: str) -> None:
    """It has to work; what is asked too early is asked again, as a person does."""
    if any(words in line for words in OF_THE_EXAMPLE):
        return
    if ENDLESS.match(line) and "&" not in line:
        line = f"{line.partition('  #')[0]} &"
    ends_at = time.monotonic() + PATIENCE_S
    while not is_done(shell, line):
        assert time.monotonic() < ends_at, f"{line}: {(shell.place / 'errors').read_text()[-1500:]}"
        time.sleep(0.5)  # tidy: what it waits for tells nobody; bounded above


@pytest.mark.proves(
    "WEL-002",
    part="pages of console, alerts, chains, filters, store, catalog, documents and configuration, line by line",
)
@pytest.mark.parametrize("page", PAGES)
def test_what_is_typed_on_a_page_works(page: str, shell: Shell) -> None:
    place = shell.place
    shell.run(PAGES[page])
    for number, block in enumerate(blocks_of(ROOT / "docs" / page)):
        if (mark := block["mark"] or "").startswith("not typed"):
            continue
        if mark:
            place = shell.place / f"anew-{number}"
            place.mkdir()
            shell.run(f"kill $(jobs -p); wait; cd {place}; export XDG_STATE_HOME={place}/home")
        named = re.match(r"# (\w+\.(?:toml|py))$", block["text"].splitlines()[0])
        if file := block["file"] or (named and named[1]):
            (place / file).write_text(block["text"], "utf-8")
        for line in lines_of(block) if block["kind"] in TYPED else ():
            began = time.monotonic()
            type_in(shell, line)
            print(f"{time.monotonic() - began:6.1f} s  {line}")  # noqa: T201  # minutes, with -s


@pytest.mark.proves("WEL-002", part="a block of the pages that people read first is typed by a test, or says why not")
@pytest.mark.parametrize("page", OTHERS)
def test_a_block_that_no_test_types_says_why(page: str) -> None:
    typed = [block for block in blocks_of(ROOT / page) if block["kind"] in TYPED and not block["mark"]]
    assert OTHERS[page] == len(typed), "type it in its test, or say why not: <!-- not typed: why -->"
