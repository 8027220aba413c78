"""Limits that the specification names by figure have that figure (FLD-043): no test that computes with them can tell."""

import importlib
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.house import requirements

SAID: Final[dict[str, dict[str, list[Any]]]] = tomllib.loads(
    (Path(__file__).with_name("figures.toml")).read_text("utf-8")
)


@pytest.mark.proves("FLD-043", part="limits are the figures of the specification")
@pytest.mark.parametrize("module", SAID)
def test_limits_are_what_the_specification_says(module: str) -> None:
    program = importlib.import_module(module)
    assert {name: figure for name, (figure, _) in SAID[module].items()} == {
        name: getattr(program, name) for name in SAID[module]
    }


def test_every_figure_names_its_requirement() -> None:
    assert (
        set() == {number for figures in SAID.values() for _, number in figures.values()} - requirements.known().keys()
    )
