"""Scripts and what happens, word for word. `WEFT_BLESS=1` writes down what happens now; the diff is read as prose."""

import os
from pathlib import Path

import pytest

from weft.base.errors import UserError
from weft.sim.script import play

SCRIPTS = sorted((Path(__file__).parent / "carrier").glob("*.txt"))


@pytest.mark.proves("SIM-016")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    script, _, expected = path.read_text("utf-8").partition("----\n")
    actual = play(path.stem, script)
    if os.environ.get("WEFT_BLESS"):
        path.write_text(f"{script}----\n{actual}", "utf-8")
    else:
        assert expected == actual


def test_there_are_ten() -> None:
    assert len(SCRIPTS) >= 10


@pytest.mark.parametrize(
    "script", ["fly to the moon", "root r\ncut r x", "sensor", "root r\nx takes a sample", "root r under"]
)
def test_a_line_that_is_no_statement_is_named(script: str) -> None:
    with pytest.raises(UserError) as caught:
        play("x", script)
    assert caught.value.code == "bad-script"
