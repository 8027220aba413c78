"""The walk-through with processes: three nodes, and every demonstration beside one of them (DEM-007).

Also what people type beside such nodes, and the filter of docs/chains.md, killed while it holds messages.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.patience import PATIENCE_S
from weft.cli.demos.real import Nodes, played, until
from weft.cli.demos.rows import ROWS, Row

pytestmark = pytest.mark.prove("the walk through the document, row by row")

TICKS, PERIOD_S = 8, 0.25
DOCUMENT = Path(__file__).parents[2] / "docs" / "chains.md"
WEFT = (sys.executable, "-m", "weft.cli.main")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("nodes")) as nodes:
        yield nodes


@pytest.mark.proves("DEM-001", "DEM-002", "DEM-003", "DEM-004", "DEM-007")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row-{row.number}")
def test_a_row_of_the_walk_through_holds_with_real_processes(nodes: Nodes, row: Row) -> None:
    # An aggregator counts by time: on a machine that stood still it has two ticks in one.
    wrong = (played(nodes, row, TICKS, PERIOD_S * slower).wrong for slower in (1, 2, 4))
    assert [] == next((none for none in wrong if not none), "wrong at any pace")


@pytest.mark.proves("DEM-007")
def test_a_count_that_is_off_by_more_than_one_is_found_out(nodes: Nodes) -> None:
    row = ROWS[0]
    fewer = Row(row.number, row.words, row.acts, lambda ticks: row.expected(ticks - 2))
    judged = played(nodes, fewer, 3, PERIOD_S)
    assert [
        "B received 3, not 1: 3 (A:0 A:1 A:2)",
        "the detector of A was told {'ok': 3}, not {'ok': 1}",
    ] == judged.wrong


def weft(*words: str, given: str = "") -> tuple[int, str]:
    """Run a command to its end: its exit status, and what it printed."""
    ran = subprocess.run([*WEFT, *words], input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return ran.returncode, ran.stdout.strip() or ran.stderr.strip()


class Running:
    """A program beside a node, and the lines that it has printed."""

    def __init__(self, place: Path, *command: str) -> None:
        self.out, self.log = place / "out", place / "log"
        with self.out.open("wb") as out, self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def lines(self) -> list[str]:
        return self.out.read_text("utf-8").splitlines()

    def until(self, count: int) -> list[str]:
        until(lambda: len(self.lines()) >= count, PATIENCE_S, f"{count} lines", lambda: self.log.read_text("utf-8"))
        return self.lines()


def test_a_message_sent_by_hand_is_watched_where_it_arrives(nodes: Nodes, tmp_path: Path) -> None:
    below, above = str(nodes.state("A")), str(nodes.state("B"))
    with Running(tmp_path, *WEFT, "chain", "watch", "news.*", "--node", above, "--count", "2", "--json") as watcher:
        watcher.until(1)
        assert (0, "spooled") == weft("chain", "send", "news.today", "rain", "--node", below)
        assert (0, "spooled") == weft("chain", "send", "news.today", "-", "--node", below, given="sun")
        ready, *messages = map(json.loads, watcher.until(3))
        assert 0 == watcher.process.wait(PATIENCE_S)
    assert ("ready", "B") == (ready["event"], ready["node"])
    assert [("news.today", "in", "rain"), ("news.today", "in", "sun")] == [
        (message["type"], message["on"], message["payload"]) for message in messages
    ]


def test_a_message_that_is_not_sent_is_an_exit_status_and_a_word(nodes: Nodes) -> None:
    code, told = weft("chain", "send", "news.today", "x", "--to", "multicast", "--node", str(nodes.state("A")))
    assert (1, ["unimplemented", "  try: parentsof, childrenof, nearestcoord, local, direct:NODE"]) == (
        code,
        told.splitlines(),
    )
    code, told = weft("chain", "send", "news.today", "x", "--node", str(nodes.place / "nowhere"))
    assert 3 == code


def chain_of(nodes: Nodes, node: str, direction: str) -> list[dict[str, Any]]:
    code, told = weft("chain", "ls", "--port", str(nodes.ports[node]), "--type", "demo.report", "--json")
    assert 0 == code, told
    return [link for chain in json.loads(told)["chains"] if chain["direction"] == direction for link in chain["links"]]


def test_the_filter_of_the_document_dies_and_what_it_held_goes_on(nodes: Nodes, tmp_path: Path) -> None:
    program = re.search(r"```python\n# slow\.py\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert program is not None
    file = tmp_path / "slow.py"
    file.write_text(program[1], "utf-8")
    below, above = str(nodes.state("A")), str(nodes.state("B"))
    seen, slow, sent = (tmp_path / name for name in ("seen", "slow", "sent"))
    for place in (seen, slow, sent):
        place.mkdir()
    detector = ("demo", "detector", "--period", "50ms", "--count", "4", "--node", below)
    with (
        Running(seen, *WEFT, "demo", "responder", "--node", above, "--json") as responder,
        Running(slow, sys.executable, "-u", str(file), below) as holder,
    ):
        responder.until(1)
        holder.until(1)
        assert ["slow"] == [link["name"] for link in chain_of(nodes, "A", "out")]
        with Running(sent, *WEFT, *detector) as sender:
            holder.until(2)
            holder.process.kill()
            assert 4 == len(sender.until(4))
        messages = [json.loads(line) for line in responder.until(5)][1:]
    assert [f'<report origin="A" type="leaf" num="{number}"/>' for number in range(4)] == [
        message["payload"] for message in messages
    ]
