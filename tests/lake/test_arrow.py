"""A node that drains loads PyArrow without what it does not need of it, and writes the same."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from weft.lake.arrow import load_alone
from weft.node.settings import settings_of
from weft.shell import serve
from weft.shell.process import Doors

PROGRAM: Final = """
import sys, tempfile
from pathlib import Path
{first}
from tests.lake.records import DRAIN, mixed, other
from weft.base.records import Stream
from weft.lake.layout import Layout
from weft.lake.segments import append_segment
with tempfile.TemporaryDirectory() as place:
    lake = Layout(place)
    append_segment(lake, "samples", DRAIN, list(enumerate(mixed(), 1)))
    append_segment(lake, "messages", DRAIN, [(1, other(Stream.MESSAGES, 1))])
    print(*(lake.manifest(stream, DRAIN, 1).read_text() for stream in ("samples", "messages")))
print(*(name for name in ("numpy", "pandas") if name in sys.modules))
"""
ALONE: Final = "from weft.lake.arrow import load_alone; load_alone()"


def told(first: str) -> list[str]:
    """The manifests that a process writes, and which of the two it has loaded for it."""
    words = [sys.executable, "-c", PROGRAM.format(first=first)]
    tree = Path(__file__).parents[2]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=tree).stdout.splitlines()


def test_segments_are_the_same_without_numpy_and_pandas() -> None:
    *alone, loaded = told(ALONE)
    *usual, loaded_as_usual = told("")
    assert usual == alone
    assert ("", "numpy pandas") == (loaded, loaded_as_usual)


def test_a_node_loads_it_so(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Doors] = []
    monkeypatch.setattr(serve, "Process", lambda _settings, doors: made.append(doors))
    serve.started(settings_of({"node": {"name": "root", "level": "root"}}, "here"))
    assert [load_alone] == [doors.load_arrow for doors in made]
