"""A real recorder process, killed at any instant, again and again: the lake is as if nobody had."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.lake.records import NODE_A, batch, chain_of, files_in, rows_of
from weft.lake.layout import Layout
from weft.shell.files import Files
from weft.shell.journal import Journal

WALL = 1_800_000_000_000_000_000
RECORDS, ROWS = 3_000, 10
PROGRAM = """
import sys
from pathlib import Path
from weft.cli import drain
from weft.cores.drain.messages import DrainSettings
drain.PATIENT = DrainSettings(rows_max=100)
drain.drain(Path(sys.argv[1]), lake=Path(sys.argv[2]))
"""


@pytest.mark.prove("many kills")
@pytest.mark.proves("LAK-007")
def test_killed_at_any_instant(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    kills = 100 if pytestconfig.getoption("soak") else 4
    journal, _ = Journal.open(tmp_path / "journal", NODE_A, Files(), WALL, 64 << 20)
    for number in range(0, RECORDS, 100):
        journal.write([batch(NODE_A, 1 + ROWS * (number + i), ROWS) for i in range(100)], WALL)
    journal.close(WALL)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "journal"), str(tmp_path / "lake")]
    chance, lake, grown = Random(7), Layout(tmp_path / "lake"), []
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=chance.uniform(0.4, 2.5))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        grown.append(len(chain_of(lake, "samples", NODE_A.hex())))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert sorted(grown) == grown, "no segment that existed is gone"
    assert list(range(1, RECORDS * ROWS + 1)) == [row["sequence"] for row in rows_of(lake, "samples", NODE_A.hex())]
    assert [] == [name for name in files_in(lake.root) if name.endswith(".tmp")]
