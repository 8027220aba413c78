"""What the docstrings show is true."""

import doctest
import importlib

import pytest

from tests.house.requirements import ROOT

ROOTS = [ROOT / "src", ROOT / "tests" / "house", ROOT / "tests" / "tidy"]
PATHS = sorted(path for root in ROOTS for path in root.rglob("*.py") if ">>> " in path.read_text("utf-8"))
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("src.") for path in PATHS]


@pytest.mark.parametrize("name", [name for name in MODULES if "pipeline" not in name and "pyspark" not in name])
def test_examples_of(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert (0, True) == (failed, tried > 0)
