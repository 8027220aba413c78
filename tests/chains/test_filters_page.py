"""docs/filters.md: every table on it can be used, and does what is said below it."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.chains.views import at, parcel
from weft.base.settings import span_ns
from weft.cores.chains import limits
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.options import KINDS
from weft.cores.chains.settings import FilterSpec, parse_filters
from weft.cores.chains.states import Verdict

PAGE = (Path(__file__).parents[2] / "docs" / "filters.md").read_text("utf-8")
BLOCKS = re.findall(r"```toml[^\n]*\n(.*?)```(?:\n```text\n(.*?)```)?", PAGE, re.DOTALL)
LINE = re.compile(r"(?:(\d+s) +)?(.*?) +▸ (.*)")


class Step(NamedTuple):
    """One line of an example."""

    ns: int
    sent: str
    said: str


def filters_of(text: str) -> list[FilterSpec]:
    specs, mistakes = parse_filters(tomllib.loads(text)["chains"]["filter"], is_local=True)
    assert [] == mistakes
    return specs


def steps_of(text: str) -> list[Step]:
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    assert None not in found
    return [Step(span_ns(line[1] or "0s") or 0, line[2], line[3]) for line in found if line]


def outcome(of: FilterLink, step: Step) -> Any:
    view = MessageView(parcel(step.sent.encode(), type=of.spec.types[0]))
    verdict = of.offer(view, at(step.ns))
    if verdict is Verdict.CHANGED:
        return json.loads(view.close()[0])
    return {Verdict.PASSED: "passes", Verdict.DROPPED: "is gone"}[verdict]


def test_every_kind_has_its_example() -> None:
    shown = [spec.kind for text, _ in BLOCKS for spec in filters_of(text)]
    assert sorted(KINDS) == sorted(dict.fromkeys(shown))
    assert [f"### {kind}\n" in PAGE for kind in KINDS] == [True] * len(KINDS)


@pytest.mark.parametrize("text, shown", [block for block in BLOCKS if block[1]])
def test_an_example_does_what_is_said_below_it(text: str, shown: str) -> None:
    of = FilterLink(filters_of(text)[-1])
    steps = steps_of(shown)
    expected = [json.loads(step.said) if step.said[0] in "[{" else step.said for step in steps]
    assert expected == [outcome(of, step) for step in steps]


@pytest.mark.parametrize(
    "number",
    [
        limits.EXPRESSION_BYTES_MAX,
        limits.EXPRESSION_DEPTH_MAX,
        limits.EXPRESSION_LIST_MAX,
        limits.KEYS_MAX,
        limits.PLACE_HANDOVER,
        limits.PLACE_MAX,
    ],
)
def test_numbers_on_the_page_are_those_of_the_code(number: int) -> None:
    assert f"{number:,}" in PAGE
