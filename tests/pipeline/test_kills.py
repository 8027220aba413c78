"""Recorder, driver, its Java, its Python workers, executors and workers of a cluster, killed at drawn instants.

A few here; `--soak` takes fifty of a run of a million rows, on this machine and on a cluster. What is left is judged by a
recomputation of the journals (`kills.judge`), which in turn has to see what is spoiled on purpose.
"""

import logging
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.pipeline import kills
from tests.pipeline.test_cluster import Machine
from weft.base.chance import Chance
from weft.lake.layout import Layout
from weft.pipeline.check import Check

pytestmark = pytest.mark.prove("drivers in processes of their own, each with its Java")

PORT = 15_350
LOG = logging.getLogger(__name__)


class Left(NamedTuple):
    """What is there when all is over."""

    lake: Layout
    journals: kills.Journals
    told: str


class Size(NamedTuple):
    rows: int
    chunks: int
    instants: int


def play(place: Path, seed: int, size: Size, machine: Machine | None = None, bug: str = "") -> Left:
    """One run with its kills."""
    journals = kills.Journals(place, place / "lake")
    master = "local[2]" if machine is None else machine.told["master"]
    environment = kills.environment(place / "state") if machine is None else machine.environment
    driver = kills.Driver(place / "lake", master, environment, bug)
    rounds = kills.Rounds(Chance(f"{seed}/rounds"), journals, driver, machine and machine.process)
    history = kills.scene(Chance(f"{seed}/scene"), size.rows, size.chunks)
    told = kills.spoken(rounds.run(history, size.instants), seed, size.rows)
    LOG.warning(told)
    return Left(Layout(place / "lake"), journals, told)


def judged(left: Left) -> None:
    assert {} == kills.judge(left.lake, left.journals), left.told
    verdict = Check(left.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences), left.told


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Left:
    if not request.config.getoption("--soak"):
        return play(tmp_path_factory.mktemp("kills"), 297, Size(8_000, 3, 3))
    seed = random.SystemRandom().randrange(1 << 32)
    return play(tmp_path_factory.mktemp("kills"), seed, Size(1_100_000, 50, 50))


def test_killed_anywhere_the_tables_are_those_of_the_journals(left: Left) -> None:
    judged(left)


@pytest.mark.soak
def test_killed_anywhere_on_a_cluster_the_tables_are_those_of_the_journals(tmp_path: Path) -> None:
    machine = Machine(tmp_path, PORT)
    try:
        seed = random.SystemRandom().randrange(1 << 32)
        judged(play(tmp_path, seed, Size(1_100_000, 50, 50), machine))
    finally:
        machine.process.terminate()
        machine.process.wait()


@pytest.mark.soak
def test_a_driver_that_forgets_what_it_committed_is_seen(tmp_path: Path) -> None:
    """The bug itself, for which the judge is made; what it does to the tables is tried below."""
    place = play(tmp_path, 8, Size(60_000, 6, 6), bug=kills.NO_APP_TRANSACTION)
    assert kills.judge(place.lake, place.journals)


def table_of(lake: Layout, layer: str, name: str) -> DeltaTable:
    return DeltaTable(lake.table(layer, name))


def file_twice(lake: Layout) -> None:
    """As if a batch had been committed again: the same rows, in a second file."""
    silver = table_of(lake, "silver", "samples")
    rows = silver.to_pyarrow_table().slice(0, 100)
    write_deltalake(silver, rows, mode="append", partition_by=["day"])


def row_gone(lake: Layout) -> None:
    table_of(lake, "silver", "values").delete("sequence = 7")


def value_changed(lake: Layout) -> None:
    table_of(lake, "silver", "samples").update({"value": "value + 1"}, predicate="sequence = 7")


def minute_counted_twice(lake: Layout) -> None:
    table_of(lake, "gold", "rollup_1m").update({"n": "n + 1"}, predicate="resets = 0")


def hole_overlooked(lake: Layout) -> None:
    table_of(lake, "gold", "completeness").update({"missing": "cast(0 as bigint)"})


def refused_row_gone(lake: Layout) -> None:
    table_of(lake, "quarantine", "samples").delete("reason <> 'changed'")


SPOILED: list[Callable[[Layout], None]] = [
    file_twice, row_gone, value_changed, minute_counted_twice, hole_overlooked, refused_row_gone,
]  # fmt: skip


@pytest.fixture
def spoilt(left: Left, tmp_path: Path) -> Iterator[Layout]:
    """A copy of the lake, to spoil."""
    shutil.copytree(left.lake.root, tmp_path / "lake")
    yield Layout(tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake")


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_what_is_spoilt_is_seen(left: Left, spoilt: Layout, spoil: Callable[[Layout], None]) -> None:
    spoil(spoilt)
    assert kills.judge(spoilt, left.journals), spoil.__doc__


def test_a_history_has_all_that_can_befall_rows(left: Left) -> None:
    heard, announced = kills._heard(left.journals)
    with duckdb.connect(":memory:") as asked:
        asked.register("heard", heard)
        asked.register("announced", announced)
        counted = asked.execute("""
            SELECT count(*) - count(DISTINCT (origin, sequence)), count_if(name IS NULL), count(DISTINCT journal),
                   (SELECT count(*) FROM announced) FROM heard""").fetchone()
    assert counted is not None
    assert all(counted), counted


def idle(place: Path, bug: str = "") -> kills.Rounds:
    """Rounds of which nothing has begun."""
    driver = kills.Driver(place / "lake", "local[1]", kills.environment(place / "state"), bug)
    return kills.Rounds(Chance("idle"), kills.Journals(place, place / "lake"), driver)


def test_who_ended_by_itself_just_before_it_is_killed_is_told_and_is_no_error(tmp_path: Path) -> None:
    rounds = idle(tmp_path)
    rounds.driver.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = rounds.driver.itself()
    assert 1 == len(found)
    rounds.driver.process.communicate(b"end\n")
    assert [] == rounds.driver.itself()
    for victims in (found, []):
        rounds.victims["python"] = partial(list, victims)
        rounds._strike("python")
    assert ({}, {"python": 2}) == (rounds.kills, rounds.missed)
    told = kills.Told(rounds.kills, rounds.missed, Counter(), 1.0)
    assert 'seed 1: 2 rows, 0 kills (), gone before its turn: {"python": 2}, exits {}, 1 s' == kills.spoken(told, 1, 2)


CHILD = "import signal; print('up', flush=True); signal.pause()"
LEAVES_ONE_BEHIND = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
child.stdout.readline()
sys.exit(3)
"""


def test_rounds_that_fail_leave_no_process_behind(tmp_path: Path) -> None:
    rounds = idle(tmp_path, LEAVES_ONE_BEHIND)
    rounds.driver.start()
    assert 3 == rounds.driver.end_by_itself()
    assert 1 == len(rounds.driver.left())
    rounds.journals.drain()
    recorders = rounds.journals.recorders
    with pytest.raises(AssertionError):
        rounds.run([], 0)
    assert [] == rounds.driver.left()
    assert 2 == len(recorders)
    assert all(recorder.returncode is not None for recorder in recorders)
