"""docs/lake-mending.md is typed as it stands there, against a lake to which happens what the page tells of (WEL-002)."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests.pages import consoles
from tests.pipeline import kills
from tests.pipeline.ground import NET, NOW_NS, B, Ground, taken
from tests.pipeline.test_mending import killed_after
from weft.shell.files import Files
from weft.shell.journal import Journal

pytestmark = pytest.mark.prove("Spark in processes of its own")

ROWS: Final = 500
PATIENCE_S: Final = 240.0


def segment(ground: Ground, number: int) -> None:
    """One segment more, of the drain that the page names."""
    rows = [(NET, 10 * row, None) for row in range(ROWS)]
    ground.write(taken(1 + (number - 1) * ROWS, rows), drain=B)


@pytest.fixture
def torn(spark: SparkSession, tmp_path: Path) -> Ground:
    """Three batches, of which the last stands in two tables only: its driver was killed."""
    ground = Ground(tmp_path / "lake", spark)
    for number in (1, 2, 3, 4):
        segment(ground, number)
        if number % 2 == 0:
            ground.take()
    segment(ground, 5)
    segment(ground, 6)
    killed_after(ground, "silver")
    return ground


def nothing(ground: Ground) -> None:
    """It is as it was before."""


def lose_the_checkpoint(ground: Ground) -> None:
    shutil.rmtree(ground.lake.root / "checkpoints")


def lose_a_segment(ground: Ground) -> None:
    segment(ground, 7)
    ground.lake.parquet("samples", B, 7).unlink()


def go_on(ground: Ground) -> None:
    assert 0 == weft(ground, "weft lake run --once")[0]


def a_copy_of_the_root_stands_still(ground: Ground) -> None:
    """Its disk holds one batch that the lake has, and 100 samples that only the copy has taken."""
    journal, _ = Journal.open(
        ground.lake.root.parent / "copy/root/journal", bytes.fromhex(B), Files(), NOW_NS, 64 << 20
    )
    shared, own = [(NET, 10 * row, None) for row in range(ROWS)], [(NET, 7, None)] * 100
    journal.write((taken(1, shared), taken(1 + 7 * ROWS, own)), NOW_NS)
    journal.close(NOW_NS)


STORY: Final[list[tuple[Callable[[Ground], None], dict[str, int]]]] = [
    (nothing, {"lake check": 1, "lake verify": 0}),
    (lose_the_checkpoint, {"lake run": 2, "lake repair": 0}),
    (lose_a_segment, {"lake run": 2, "lake skip": 0}),
    (go_on, {"lake rebuild": 0}),
    (a_copy_of_the_root_stands_still, {"drain": 0}),
]
"""What happens before each block of the page, and the exit status of its commands."""


def weft(ground: Ground, command: str) -> tuple[int, str]:
    """The exit status of a command that is typed beside the lake, and all that it says."""
    words = [sys.executable, "-m", "weft.cli.main", *shlex.split(command.removeprefix("weft "))]
    place = ground.lake.root.parent
    done = subprocess.run(
        words, cwd=place, env=kills.environment(place / "state") | {"COLUMNS": "120"}, timeout=PATIENCE_S,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.proves("WEL-002", part="the page of mending a lake: what it shows is what is printed")
def test_what_the_page_shows_is_what_is_printed(torn: Ground) -> None:
    for (happens, statuses), console in zip(STORY, consoles("lake-mending.md"), strict=True):
        happens(torn)
        for (verb, status), typed in zip(statuses.items(), console, strict=True):
            assert typed.command.startswith(f"weft {verb}")
            ended, said = weft(torn, typed.command)
            assert (status, True) == (ended, typed.is_shown(said)), f"{typed.command}: {said}"
