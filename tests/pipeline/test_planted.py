"""Bugs that were planted on purpose, each of which the comparison with the oracle must catch (section 12.4)."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from tests.pipeline import oracle
from tests.pipeline.canaries import planted
from tests.pipeline.ground import ERA, MEM, NET, A, Ground, lost, single, taken
from tests.pipeline.worlds import BAD, SERIES, compare
from weft.base.errors import OurFault
from weft.base.ranges import RangeSet
from weft.base.vectors import VersionVector
from weft.pipeline import batch as batches
from weft.pipeline.checkpoint import Checkpoint
from weft.pipeline.coverage import Coverage, Plan
from weft.pipeline.delta import Tables
from weft.pipeline.fold import Fold
from weft.pipeline.intake import Intake
from weft.pipeline.transforms import values

pytestmark = pytest.mark.prove("a history in Spark for each bug")

Patch = pytest.MonkeyPatch
ROWS = [(NET, 10 * n, None) for n in range(1, 10)]


def told(first: int, last: int) -> list[oracle.Row]:
    return [
        oracle.Row((A, ERA, n), "net", "rate", 1_795_227_300_000 + 1000 * n, 10 * n) for n in range(first, last + 1)
    ]


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A lake behind `begin`."""
    ground = Ground(tmp_path_factory.mktemp("planted") / "lake", spark)
    begin(ground)
    return ground


@pytest.fixture
def later(begun: Ground, tmp_path: Path) -> Ground:
    """The same lake, to go on with after a restart."""
    shutil.copytree(begun.lake.root, tmp_path / "lake")
    here = Ground(tmp_path / "lake", begun.spark)
    here.start, here.number, here.epoch = begun.start, begun.number, begun.epoch
    return here


def begin(ground: Ground) -> None:
    """The first batch, with a hole, and one fold of it."""
    ground.take(taken(1, ROWS[:3]), taken(6, ROWS[5:7]))
    Fold(ground.job.tables, {}).rollups(0)


def history(ground: Ground) -> oracle.Tables:
    """A duplicate, a bad row, a loss; the second batch is begun twice, and so is the fold of the first."""
    ground.write(taken(2, ROWS[1:3]), taken(4, ROWS[3:4]), single(8, BAD), lost(5, 5), taken(9, ROWS[8:9]))
    began_twice(ground)
    ground.job.fold()
    nothing_lost: list[tuple[str, int, int]] = []
    first = (told(1, 3) + told(6, 7), nothing_lost)
    second = (told(2, 3) + told(4, 4) + [oracle.Row((A, ERA, 8), None)] + told(9, 9), [(A, ERA, 5)])
    return oracle.tables_of([first, second], {})


def began_twice(ground: Ground) -> None:
    """A batch that is killed after silver, and repeated."""

    class Pulled(Exception):
        pass

    def watch(when: str, step: str) -> None:
        if (when, step) == ("after", "silver"):
            raise Pulled

    calm = ground.options
    ground.restart(calm._replace(watcher=watch))
    with pytest.raises(Pulled):
        ground.take()
    ground.restart(calm)
    ground.take()


def coverage_read_after_instead_of_before(patch: Patch) -> None:
    real = Checkpoint.coverage

    def coverage(self: Checkpoint, number: int) -> Coverage:
        later = self.lake.coverage(self.job, number + 1)
        return real(self, number + 1 if later.exists() else number)

    patch.setattr(Checkpoint, "coverage", coverage)


def commit_without_app_transaction(patch: Patch) -> None:
    patch.setattr(Tables, "committed", lambda self, table: -1)


def pair_across_an_unfilled_hole(patch: Patch) -> None:
    real = Coverage.advance

    def advance(self: Coverage, intake: Intake, now: int) -> Plan:
        plan = real(self, intake, now)
        for origin in plan.touched:
            self.known.add(origin, 1, self.known[origin].highest)
        return plan

    patch.setattr(Coverage, "advance", advance)


def duplicates_kept(patch: Patch) -> None:
    patch.setattr(batches.Batch, "_split", lambda self, rows, *_: (rows, None))
    patch.setattr(batches.Batch, "_check", lambda *_: None)


def quarantined_counted_missing(patch: Patch) -> None:
    real = Coverage.refuse

    def refuse(self: Coverage, quarantined: VersionVector) -> None:
        real(self, quarantined)
        for origin, ranges in quarantined:
            for first, last in ranges:
                self.covered[origin].remove(first, last)
                self.known[origin].remove(first, last)
            self._look_for_holes(origin)

    patch.setattr(Coverage, "refuse", refuse)


def parts_folded_twice(patch: Patch) -> None:
    real = Fold._since

    def since(self: Fold, table: Any, mark: int, upto: int) -> Any:
        return real(self, table, -1, upto)

    patch.setattr(Fold, "_since", since)


def pairs_made_again(patch: Patch) -> None:
    real = values.moved

    def moved(edges: Any, moves: Any) -> Any:
        return real(edges, moves).withColumn("was", F.lit(None).cast("bigint"))

    patch.setattr(values, "moved", moved)


def highest_number_only(patch: Patch) -> None:
    real = Coverage.advance

    def advance(self: Coverage, intake: Intake, now: int) -> Plan:
        plan = real(self, intake, now)
        for origin, ranges in list(self.covered):
            ranges.update(RangeSet([(1, ranges.highest)]))
            del origin
        return plan

    patch.setattr(Coverage, "advance", advance)


def values_of_another_order(patch: Patch) -> None:
    real = values.neighbours

    def neighbours(points: Any) -> Any:
        return real(points.withColumn("sequence", -F.col("sequence"))).withColumn("sequence", -F.col("sequence"))

    patch.setattr(values, "neighbours", neighbours)


BUGS: list[Callable[[Patch], None]] = [
    coverage_read_after_instead_of_before,
    commit_without_app_transaction,
    duplicates_kept,
    quarantined_counted_missing,
    parts_folded_twice,
    pairs_made_again,
    values_of_another_order,
]
IN_THE_FIRST_BATCH: list[Callable[[Patch], None]] = [pair_across_an_unfilled_hole, highest_number_only]
"""Bugs about holes; what comes before the others is made once."""


def test_the_history_without_a_bug(later: Ground) -> None:
    compare(later, history(later))
    assert SERIES[1] is MEM


@pytest.mark.proves("PIP-072")
@pytest.mark.parametrize("bug", planted(BUGS))
def test_a_planted_bug_is_caught(later: Ground, monkeypatch: Patch, bug: Callable[[Patch], None]) -> None:
    bug(monkeypatch)
    with pytest.raises((AssertionError, OurFault)):
        compare(later, history(later))


@pytest.mark.soak
@pytest.mark.proves("PIP-072")
@pytest.mark.parametrize("bug", IN_THE_FIRST_BATCH)
def test_a_bug_that_is_there_from_the_first_batch_on_is_caught(
    ground: Ground, monkeypatch: Patch, bug: Callable[[Patch], None]
) -> None:
    bug(monkeypatch)
    begin(ground)
    with pytest.raises((AssertionError, OurFault)):
        compare(ground, history(ground))
