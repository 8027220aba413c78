"""A checkpoint that is lost, in part or whole, begun anew where the tables stand (PIP-025)."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline import oracle
from tests.pipeline.ground import ERA, NET, A, B, Ground, lost, single, taken
from tests.pipeline.worlds import BAD, compare
from weft.base.errors import OurFault, UserError
from weft.lake.offsets import parse
from weft.pipeline.check import Check
from weft.pipeline.checkpoint import read_record
from weft.pipeline.digests import digest_in
from weft.pipeline.kinds import SAMPLES
from weft.pipeline.mending import repair as repairs
from weft.pipeline.mending.repair import Repaired, repair
from weft.pipeline.tables import STAGES
from weft.pipeline.upkeep.forgotten import KEEP, Reason
from weft.pipeline.upkeep.log import live_files, opened
from weft.pipeline.upkeep.remove import whole

pytestmark = pytest.mark.prove("whole batches in Spark")

Batch = tuple[list[oracle.Row], list[oracle.Id]]
ROWS = [(NET, 10 * n, None) for n in range(1, 13)]


def told(first: int, last: int, origin: str = A) -> list[oracle.Row]:
    return [
        oracle.Row((origin, ERA, n), "net", "rate", 1_795_227_300_000 + 1000 * n, 10 * n)
        for n in range(first, last + 1)
    ]


class Pulled(Exception):
    """The driver was killed here."""


def killed_after(ground: Ground, step: str) -> None:
    """The next batch, pulled off behind a step."""

    def watch(when: str, name: str) -> None:
        if (when, name) == ("after", step):
            raise Pulled

    calm = ground.options
    ground.restart(calm._replace(watcher=watch))
    with pytest.raises(Pulled):
        ground.take()
    ground.restart(calm)


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Two batches and a fold between them: a hole, a bad row, a loss that comes all the same, a third batch in segments."""
    ground = Ground(tmp_path_factory.mktemp("mending") / "lake", spark)
    ground.take(taken(1, ROWS[:3]), taken(6, ROWS[5:7]), lost(10, 10))
    ground.job.fold()
    ground.take(single(8, BAD), taken(9, ROWS[8:10]), taken(2, ROWS[1:2]), taken(1, ROWS[:1], origin=B))
    ground.write(taken(4, ROWS[3:5]), taken(6, ROWS[5:6]), taken(11, ROWS[10:12]), taken(2, ROWS[1:3], origin=B))
    return ground


def expected() -> oracle.Tables:
    first: Batch = (told(1, 3) + told(6, 7), [(A, ERA, 10)])
    second: Batch = ([oracle.Row((A, ERA, 8), None), *told(9, 10), *told(2, 2), *told(1, 1, B)], [])
    third: Batch = (told(4, 5) + told(6, 6) + told(11, 12) + told(2, 3, B), [])
    return oracle.tables_of([first, second, third], {})


@pytest.fixture
def later(begun: Ground, tmp_path: Path) -> Ground:
    """The same lake, to go on with after a restart."""
    shutil.copytree(begun.lake.root, tmp_path / "lake")
    here = Ground(tmp_path / "lake", begun.spark)
    here.start, here.number, here.epoch = begun.start, begun.number, begun.epoch
    return here


def forget_all(ground: Ground) -> None:
    shutil.rmtree(ground.lake.checkpoint("samples"))


def forget_who_it_is(ground: Ground) -> None:
    ground.lake.checkpoint_id("samples").unlink()


def forget_what_was_covered(ground: Ground) -> None:
    shutil.rmtree(ground.lake.coverage("samples", 0).parent)


def take_one_of_another_time(ground: Ground) -> None:
    path = ground.lake.checkpoint_id("samples")
    path.write_bytes(path.read_bytes().replace(read_record(path).id.encode(), b"f" * 32))


def lose_all_progress(ground: Ground) -> None:
    shutil.rmtree(ground.lake.table("meta", "progress"))


def lose_the_newest_commit(ground: Ground, table: str = "silver.samples") -> None:
    """As on a disk that says of what it has in its cache only that it is kept."""
    path = ground.lake.table(*table.split("."))
    (path / "_delta_log" / f"{DeltaTable(path).version():020d}.json").unlink()


LOSSES = [
    forget_all,
    forget_who_it_is,
    forget_what_was_covered,
    take_one_of_another_time,
    lose_all_progress,
    lose_the_newest_commit,
]


def repaired(ground: Ground) -> Repaired:
    """The repair of the samples, by whoever holds the lease next."""
    ground.epoch += 1
    ground.restart()
    (done,) = repair(ground.lake, [SAMPLES], ground.epoch)
    return done


@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__)
def test_a_checkpoint_that_does_not_fit_its_tables_is_refused(later: Ground, lose: Callable[[Ground], None]) -> None:
    assert [] == list(repair(later.lake, [SAMPLES], 9))
    lose(later)
    with pytest.raises(UserError) as refused:
        later.take()
    assert ("checkpoint-missing", True) == (refused.value.code, "weft lake repair" in refused.value.try_this)


def goes_on(ground: Ground) -> None:
    """The third batch, and every table as the oracle has it."""
    ground.take()
    ground.job.fold()
    compare(ground, expected())
    verdict = Check(ground.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


@pytest.mark.proves("PIP-025")
def test_a_lost_checkpoint_is_begun_anew_where_the_tables_stand(later: Ground) -> None:
    known = later.work._state_after(1)
    killed_after(later, "silver")
    forget_all(later)
    with pytest.raises(UserError) as refused:
        later.take()
    assert "checkpoint-missing" == refused.value.code
    done = repaired(later)
    assert (1, {"bronze.samples": 2, "silver.samples": 2}) == (done.batch, done.taken_back)
    assert 2 == later.work.record.base
    again = later.work._state_after(1)
    assert (known.covered, known.known, known.hollow, known.ends, known.offset) == (
        again.covered, again.known, again.hollow, again.ends, again.offset,
    )  # fmt: skip
    assert [hole[:2] for holes in known.holes.values() for hole in holes] == [
        hole[:2] for holes in again.holes.values() for hole in holes
    ]
    assert [] == list(repair(later.lake, [SAMPLES], later.epoch))
    goes_on(later)


@pytest.mark.proves("PIP-025")
def test_a_repair_that_is_killed_on_the_way_is_repeated(later: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind half of the tables, and once more before the record."""
    killed_after(later, "values")
    forget_what_was_covered(later)
    for name, times in (("_mark", 3), ("_recalled", 0)):
        with monkeypatch.context() as patch:
            real, left = getattr(repairs.Repair, name), [times]

            def pulled(self: Any, *arguments: Any, real: Any = real, left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise Pulled
                real(self, *arguments)

            patch.setattr(repairs.Repair, name, pulled)
            with pytest.raises(Pulled):
                repaired(later)
    assert 1 == repaired(later).batch
    goes_on(later)


@pytest.mark.soak
def test_a_repair_that_leaves_silver_ahead_of_parts_is_caught(later: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairs.Repair, "_version_before", lambda *_: None)
    killed_after(later, "silver")
    forget_all(later)
    repaired(later)
    with pytest.raises((AssertionError, OurFault)):
        goes_on(later)


def test_rows_erased_behind_a_batch_that_is_half_done_stay_erased(later: Ground) -> None:
    killed_after(later, "silver")
    path = later.lake.table("silver", "samples")
    DeltaTable(path).delete(f"origin = '{B}'")
    forget_all(later)
    with pytest.raises(UserError) as refused:
        repaired(later)
    assert "repair-undoes" == refused.value.code
    assert [] == [row for row in later.rows("silver.samples", "origin") if row == (B,)]


def test_what_a_batch_added_is_taken_out_without_what_went_since(later: Ground) -> None:
    """Neither the rows nor the files of days that were retired meanwhile are wanted back."""
    killed_after(later, "silver")
    delta = opened(later.lake, STAGES["samples"].bronze)
    assert delta is not None
    old = [file for file in live_files(delta, STAGES["samples"].bronze) if file.last_batch == 0]
    whole(later.lake, STAGES["samples"].bronze, old, Reason(f"{KEEP} bronze = 1", "its age", "nobody"), 9)
    for file in old:
        (later.lake.table("bronze", "samples") / file.path).unlink()
    forget_all(later)
    later.epoch = 9
    assert 1 == repaired(later).batch
    assert {1} == {batch for (batch,) in later.rows("bronze.samples", "batch")}
    goes_on(later)


def test_a_version_of_which_files_are_gone_is_told_in_a_sentence(
    later: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairs, "added_by", lambda *_: None)
    killed_after(later, "silver")
    table = DeltaTable(later.lake.table("silver", "samples"))
    (gone,) = table.file_uris()[-1:]
    table.delete("batch = 0")
    Path(gone).unlink()
    monkeypatch.setattr(repairs, "DONE_AGAIN", {"retain", "compact", "DELETE"})
    forget_all(later)
    with pytest.raises(UserError) as refused:
        repaired(later)
    assert "version-gone" == refused.value.code


@pytest.mark.proves("PIP-025", part="a table that lacks rows which meta.progress counts takes the others back with it")
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_table_put_back_to_an_older_copy_takes_the_others_with_it(later: Ground, *, has_checkpoint: bool) -> None:
    lose_the_newest_commit(later, "silver.values")
    if not has_checkpoint:
        forget_all(later)
    done = repaired(later)
    assert (0, 1) == (done.batch, done.taken_back["silver.samples"])
    progress = DeltaTable(later.lake.table("meta", "progress"))
    assert [] == [uri for uri in progress.file_uris() if digest_in(uri) is None]
    later.number, later.start = 1, parse(later.work.record.start).at
    goes_on(later)


@pytest.mark.proves("PIP-025")
def test_a_job_killed_in_its_first_batch_begins_again_from_the_beginning(ground: Ground) -> None:
    ground.write(taken(1, ROWS[:3]))
    killed_after(ground, "silver")
    forget_all(ground)
    done = repaired(ground)
    assert (-1, 0) == (done.batch, done.taken_back["silver.samples"])
    ground.take()
    assert [(1,), (2,), (3,)] == ground.rows("silver.samples", "sequence")
    assert [(1, 2), (2, 3)] == ground.pairs()
