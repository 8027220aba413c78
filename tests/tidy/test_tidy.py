"""The tree keeps the house style; all findings are printed at once."""

import tomllib

import pytest

from tests.house.requirements import ROOT
from tests.tidy.rules import findings


@pytest.mark.proves("HSE-009", part="circles are answered, and classes that are too large do not grow")
@pytest.mark.proves("HSE-004", part="one table, one complaint and one list of exit statuses for all nouns")
@pytest.mark.proves("HSE-010", part="words that had to be guessed do not come back")
@pytest.mark.proves("HSE-011", part="each package says what it is for, what it never does and where to start")
@pytest.mark.proves("HSE-012", part="no text that is elsewhere is named")
@pytest.mark.proves("HSE-022", part="a test has at most 15 assertions, and is no chain of checks")
def test_tree_is_tidy() -> None:
    found = findings(ROOT)
    if found:
        pytest.fail("\n".join(["", *map(str, found), f"{len(found)} findings"]), pytrace=False)


@pytest.mark.parametrize(
    "inputs, keys",
    [
        ("base.in", ("dependencies",)),
        ("lake.in", ("optional-dependencies", "lake")),
        ("mqtt.in", ("optional-dependencies", "mqtt")),
        ("mdns.in", ("optional-dependencies", "mdns")),
    ],
)
def test_locked_inputs_are_those_of_the_package(inputs: str, keys: tuple[str, ...]) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for key in keys:
        declared = declared[key]
    lines = (ROOT / "requirements" / inputs).read_text("utf-8").splitlines()
    assert declared == [line for line in lines if line and not line.startswith("#")]
