"""A table made anew equals what came to be batch by batch (PIP-026)."""

import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from tests.pipeline import oracle
from tests.pipeline.ground import ERA, MEM, NET, NOW_NS, T0_MS, A, B, Ground, Plot, at_ms, lost, message, single, taken
from tests.pipeline.worlds import BAD, compare
from weft.base.errors import UserError
from weft.lake.importing.delimited import Reading
from weft.lake.importing.running import Wish as Dataset
from weft.lake.importing.running import import_files
from weft.pipeline.check import Check
from weft.pipeline.mending.rebuild import Rebuild, Rebuilt, Wish, made_anew_with
from weft.pipeline.tables import ALL, STAGES
from weft.pipeline.transforms import dedup
from weft.pipeline.upkeep.forget import Choice, forget
from weft.pipeline.upkeep.forgotten import KEEP, Reason
from weft.pipeline.upkeep.remove import some

pytestmark = pytest.mark.prove("whole batches in Spark")

LINE = "%d source=h value=%d.00 base=None detail=X config-name=net config-seqid=4 type=rate\n"
LOG = "".join(LINE % (T0_MS + 1000 * n, value) for n, value in ((1, 5), (1, 5), (3, 9)))
DATASET = Dataset("attic", "dcamp", Reading(UTC, NOW_NS))
Batch = tuple[list[oracle.Row], list[oracle.Id]]
ROWS = [(NET, 10 * n, None) for n in range(1, 14)]
CHAIN = [
    *("silver.samples", "quarantine.samples", "silver.values", "meta.edges"),
    *("gold.rollup_1m", "gold.rollup_1h", "gold.rollup_1d", "gold.latest"),
]


def told(first: int, last: int, origin: str = A) -> list[oracle.Row]:
    return [oracle.Row((origin, ERA, n), "net", "rate", at_ms(n), 10 * n) for n in range(first, last + 1)]


def history(ground: Ground) -> None:
    """Duplicates, one of which says something else; a number that comes after it was announced lost; a bad row, and one
    that stands for three, of which one comes again.
    """
    wide = single(10, BAD, origin=B, n=3)
    ground.take(taken(1, ROWS[:3]), taken(6, ROWS[5:7]), lost(10, 10), taken(2, ROWS[1:2]), wide)
    ground.take(single(8, BAD), taken(9, ROWS[8:10]), taken(3, [(NET, 7, None)]), taken(1, ROWS[:1], origin=B))
    ground.take(
        taken(4, ROWS[3:5]),
        taken(8, ROWS[7:8]),
        taken(11, ROWS[10:12]),
        taken(2, ROWS[1:3], origin=B),
        taken(11, ROWS[:1], origin=B),
    )
    ground.job.fold()


def expected(*more: Batch) -> oracle.Tables:
    wide = [(B, ERA, 11), (B, ERA, 12)]  # known, and without a row of their own anywhere
    first: Batch = ([*told(1, 3), *told(6, 7), oracle.Row((B, ERA, 10), None)], [(A, ERA, 10), *wide])
    second: Batch = ([oracle.Row((A, ERA, 8), None), *told(9, 10), *told(3, 3), *told(1, 1, B)], [])
    third: Batch = (told(4, 5) + told(8, 8) + told(11, 12) + told(2, 3, B), [])
    tables = oracle.tables_of([first, second, third, *more], {})
    return tables._replace(refused=tables.refused | {(A, ERA, 3)})  # said otherwise the second time


def content(plot: Plot, names: Iterable[str]) -> dict[str, list[str]]:
    """The rows of some tables in any order, without the batch that wrote them."""
    return {
        name: sorted(repr({key: value for key, value in row.items() if key != "batch"}) for row in plot.rows(name))
        for name in names
    }


def damaged(plot: Plot, name: str, predicate: str) -> None:
    table = ALL[name]
    DeltaTable(plot.lake.table(table.layer, table.name)).delete(predicate)


def made_anew(plot: Plot, name: str, since: date | None = None, *, may_lose: bool = False) -> list[Rebuilt]:
    plot.epoch += 1
    calm = plot.options
    plot.restart(calm._replace(anew=made_anew_with(ALL[name])))
    done = list(Rebuild(plot.work, Wish(ALL[name], since, may_lose=may_lose)).run())
    plot.restart(calm)
    return done


def refusal(plot: Plot, name: str) -> str:
    with pytest.raises(UserError) as error:
        made_anew(plot, name)
    plot.restart()
    return error.value.code


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    ground = Ground(tmp_path_factory.mktemp("rebuild") / "lake", spark)
    history(ground)
    return ground


@pytest.fixture
def here(whole: Ground, tmp_path: Path) -> Ground:
    """The same lake, to go on with after a restart."""
    shutil.copytree(whole.lake.root, tmp_path / "lake")
    twin = Ground(tmp_path / "lake", whole.spark)
    twin.start, twin.number, twin.epoch = whole.start, whole.number, whole.epoch
    return twin


@pytest.mark.proves("PIP-026")
def test_silver_and_all_behind_it_made_anew_is_what_it_was_and_goes_on(here: Ground) -> None:
    before = content(here, CHAIN)
    versions = {name: DeltaTable(here.lake.table(*name.split("."))).version() for name in CHAIN}
    for name in ("silver.samples", "silver.values", "meta.edges"):
        damaged(here, name, "sequence in (2, 10, 12)")
    damaged(here, "gold.rollup_1h", "n > 0")
    assert before != content(here, CHAIN)
    done = made_anew(here, "silver.samples")
    assert CHAIN == [table.table for table in done]
    assert before == content(here, CHAIN)
    assert all(
        DeltaTable(here.lake.table(*name.split("."))).version() <= version + 2 for name, version in versions.items()
    )
    here.take(taken(13, ROWS[12:]), taken(4, ROWS[3:4], origin=B))
    here.job.fold()
    compare(here, expected((told(13, 13) + told(4, 4, B), [])))


def a_bit_in_a_file(ground: Ground, name: str) -> None:
    file = max(Path(uri) for uri in DeltaTable(ground.lake.table(*name.split("."))).file_uris())
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def a_log_moved_away(ground: Ground, name: str) -> None:
    shutil.rmtree(ground.lake.table(*name.split(".")))


@pytest.mark.proves("PIP-026", part="a table whose files or log are damaged is made anew")
@pytest.mark.parametrize("damage", [a_bit_in_a_file, a_log_moved_away])
@pytest.mark.parametrize("name", ["silver.samples", "silver.values", "gold.latest"])
def test_a_table_of_which_a_file_or_the_log_is_damaged_is_made_anew(
    here: Ground, name: str, damage: Callable[[Ground, str], None]
) -> None:
    before = content(here, CHAIN)
    damage(here, name)
    made_anew(here, name, may_lose=name == "silver.samples")
    assert before == content(here, CHAIN)
    assert "equal" == Check(here.lake, deep=True).run().state


def test_rows_that_nobody_could_make_again_are_not_taken_away(here: Ground) -> None:
    damaged(here, "bronze.samples", f"origin = '{B}'")
    before = content(here, CHAIN)
    assert "would-lose" == refusal(here, "silver.samples")
    assert before == content(here, CHAIN)


def the_last_for_the_first(patch: pytest.MonkeyPatch) -> None:
    real = dedup.numbered
    patch.setattr(dedup, "numbered", lambda rows, *before: real(rows.withColumn("batch", -F.col("batch")), *before))


@pytest.mark.soak
def test_a_rebuild_that_is_wrong_is_caught(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(here, CHAIN)
    the_last_for_the_first(monkeypatch)
    made_anew(here, "silver.samples")
    assert before != content(here, CHAIN)


@pytest.mark.soak
@pytest.mark.proves("PIP-026")
def test_only_days_from_a_day_on_change(ground: Ground) -> None:
    """Windows of a day stand in files of a month: those of earlier days stay as they are, right or wrong."""
    days = [(MEM, n, None) for n in range(1, 4)]
    ground.take(taken(1, days), taken(86_400 * 2, days))
    ground.job.fold()
    later = datetime.fromtimestamp(at_ms(86_400 * 2) / 1000, UTC).date()
    before = content(ground, ["gold.rollup_1d"])
    DeltaTable(ground.lake.table("gold", "rollup_1d")).update({"n": "99"})
    assert [("gold.rollup_1d", 1, 1)] == made_anew(ground, "gold.rollup_1d", later)
    assert [99, 3] == [n for (n,) in ground.rows("gold.rollup_1d", "n", order=("window_start",))]
    made_anew(ground, "gold.rollup_1d", later - timedelta(days=2))
    assert before == content(ground, before)


@pytest.mark.proves("PIP-026")
def test_another_stream_made_anew_is_what_it_was(spark: SparkSession, tmp_path: Path) -> None:
    plot = Plot(tmp_path / "lake", spark, "messages")
    plot.take(message(2, b"x"), message(5, b"\xff", fmt="json"), message(2, b"x"))
    plot.take(message(5, b"{}", fmt="json"), message(7, b"y"), message(2, b"z"))
    names = ["silver.messages", "quarantine.messages"]
    before: dict[str, Any] = content(plot, names)
    damaged(plot, "silver.messages", "sequence = 2")
    assert [1, 2] == [table.before for table in made_anew(plot, "silver.messages")]
    assert before == content(plot, names)


@pytest.mark.soak
@pytest.mark.proves("PIP-026")
def test_what_was_imported_stays_and_what_is_our_own_is_made_anew(ground: Ground, tmp_path: Path) -> None:
    log = tmp_path / "leaf.dcamp-data"
    log.write_text(LOG, "utf-8")
    ground.take(taken(1, ROWS[:3]))
    import_files(ground.lake, [log], DATASET, NOW_NS)
    ground.take()
    ground.job.fold()
    before = content(ground, CHAIN)
    assert 2 == sum("attic" in row for row in before["silver.samples"])
    damaged(ground, "silver.samples", "dataset is null and sequence = 2")
    damaged(ground, "silver.values", "dataset is null")
    made_anew(ground, "silver.samples")
    assert before == content(ground, CHAIN)


@pytest.mark.soak
def test_a_row_that_was_refused_does_not_take_the_place_of_one_that_bronze_has_lost(ground: Ground) -> None:
    ground.take(taken(1, ROWS[:3]))
    ground.take(taken(2, [(NET, 7, None)]), taken(4, ROWS[3:4]))
    ground.job.fold()
    before = content(ground, CHAIN)
    only = (pc.field("sequence") == 2) & (pc.field("batch") == 0)
    some(ground.lake, STAGES["samples"].bronze, only, Reason(f"{KEEP} bronze = 30", "its age", "nobody"), 9)
    ground.epoch = 9
    assert "would-lose" == refusal(ground, "silver.samples")
    assert before == content(ground, CHAIN)


@pytest.mark.soak
def test_roll_ups_of_another_origin_of_the_same_name_come_back(ground: Ground) -> None:
    ground.take(taken(1, ROWS[:3]), taken(1, ROWS[:3], origin=B, node=A))
    ground.job.fold()
    (before,) = ground.rows("gold.rollup_1d", "node", "n")
    gone = {removed.table for removed in forget(ground.lake, Choice(origin=B), "asked for it", 9)}
    assert ((A, 4), True, []) == (before, "gold.rollup_1d" in gone, ground.rows("gold.rollup_1d"))
    ground.epoch = 9
    made_anew(ground, "gold.rollup_1d")
    assert [(A, 2)] == ground.rows("gold.rollup_1d", "node", "n")
