"""Decisions: a page that a later one has changed says so at its top, and by which one (HSE-012)."""

import re

import pytest

from tests.house.requirements import ROOT

PAGES = ROOT / "docs" / "decisions"
LINK = re.compile(r"\]\((\d{4})-[a-z0-9-]+\.md\)")


def faults(name: str, text: str) -> list[str]:
    """What is wrong with how a page tells that it was overtaken."""
    found = []
    paragraphs = text.split("\n\n")
    for at, paragraph in enumerate(paragraphs):
        if not paragraph.startswith("**Overtaken"):
            continue
        by = LINK.findall(paragraph)
        if at != 1:
            found.append("it says so below its top")
        if not by:
            found.append("it does not say by which page")
        found += [f"{number} is no later page" for number in by if number <= name[:4]]
    return found


@pytest.mark.proves("HSE-012", part="a decision that was overtaken says so at its top, and by which later one")
def test_a_decision_that_was_overtaken_says_so_at_its_top_and_by_which() -> None:
    pages = {page.name: page.read_text("utf-8") for page in PAGES.glob("0*.md") if not page.name.startswith("0000")}
    assert {} == {name: found for name, text in pages.items() if (found := faults(name, text))}
    overtaken = sorted(name[:4] for name, text in pages.items() if "**Overtaken" in text)
    assert ["0004", "0008", "0012", "0013", "0015"] == overtaken, "read the page: does a later one change it?"


@pytest.mark.parametrize(
    "text, found",
    [
        ("# 5\n\n**Overtaken in part.** All but the rest ([0007](0007-a-role-is-a-start.md)).\n\n**Choice.** One.", []),
        ("# 5\n\n**Overtaken.** By another.\n\n**Choice.** One.", ["it does not say by which page"]),
        ("# 5\n\n**Overtaken** by [0003](0003-the-journal.md).", ["0003 is no later page"]),
        (
            "# 5\n\n**Choice.** One.\n\n**Overtaken** by [0007](0007-a-role-is-a-start.md).",
            ["it says so below its top"],
        ),
    ],
)
def test_an_overtaken_page_that_says_too_little_is_found(text: str, found: list[str]) -> None:
    assert found == faults("0005-meters.md", text)
