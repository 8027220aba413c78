"""Lakes that earlier versions of the program left behind, each whole with its checkpoints: the present one goes on with
them (PIP-087, LAK-036).
"""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline import oracle
from tests.pipeline.golden_lakes import LAKES, opened
from tests.pipeline.ground import ERA, MEM, NET, A, B, Ground, at_ms, event, taken
from tests.pipeline.worlds import compare
from weft.lake.layout import Layout
from weft.lake.segments import append_segment
from weft.pipeline.check import Check
from weft.pipeline.job import Done, Job, SamplesJob
from weft.pipeline.kinds import KINDS
from weft.pipeline.marks import commits_of
from weft.pipeline.mending.repair import repair
from weft.pipeline.tables import ALL

Batch = tuple[list[oracle.Row], list[oracle.Id]]
BYTES_MAX = 200_000
ROWS = [(NET, 10 * n, None) for n in range(1, 13)]
BASIC = [(MEM, n, None) for n in range(1, 6)]


def told(first: int, last: int) -> list[oracle.Row]:
    return [oracle.Row((A, ERA, n), "net", "rate", at_ms(n), 10 * n) for n in range(first, last + 1)]


def basic(first: int, last: int) -> list[oracle.Row]:
    return [oracle.Row((B, ERA, n), "mem", "basic", at_ms(n), n) for n in range(first, last + 1)]


def expected() -> oracle.Tables:
    """What the old program was given, and what the new one is."""
    first: Batch = (told(1, 3) + told(6, 7), [])
    second: Batch = ([*told(2, 4), oracle.Row((A, ERA, 8), None), *told(9, 9), *basic(1, 4)], [(A, ERA, 5)])
    return oracle.tables_of([first, second, (told(9, 12) + basic(5, 5), [])], {})


@pytest.mark.proves("PIP-087", "LAK-036")
@pytest.mark.varies("packed", LAKES[:1], LAKES, prove=LAKES[1:])
def test_a_lake_of_an_earlier_version_goes_on(packed: Path, spark: SparkSession, tmp_path: Path) -> None:
    assert packed.stat().st_size <= BYTES_MAX
    lake = opened(packed, tmp_path)
    before = {table.full_name: rows_of(lake, table.full_name) for table in ALL.values()}
    assert [] == list(repair(lake, KINDS.values(), 4))
    assert "equal" == Check(lake).run().state
    records = (taken(9, ROWS[8:12]), taken(5, BASIC[4:], origin=B))
    append_segment(lake, "samples", "d1" * 16, list(enumerate(records, 1)))
    append_segment(lake, "events", "d1" * 16, [(1, event(2, "node.ended", "info"))])
    done = run_once(lake, spark)
    assert {("samples", 2, 5), ("events", 1, 1)} == {(batch.job, batch.number, batch.outcome.rows) for batch in done}
    compare(Ground(lake.root, spark), expected())
    verdict = Check(lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)
    for name, rows in before.items():
        if name.startswith(("bronze", "silver", "quarantine")):
            assert rows == [row for row in rows_of(lake, name) if row in rows], name
            one_commit_for_new_columns(lake, name)


def run_once(lake: Layout, spark: SparkSession) -> list[Done]:
    """Every stream from the old checkpoint on, batch by batch."""
    done: list[Done] = []
    for name in (name for name in KINDS if lake.drains(name).is_dir()):
        job = SamplesJob(lake, spark, 4) if name == "samples" else Job(KINDS[name], lake, spark, 4)
        while (batch := job.take()) is not None:
            done.append(batch)
        job.fold_if_behind()
    return done


def rows_of(lake: Layout, name: str) -> list[dict[str, object]]:
    """The rows of a table in the columns of today, those that a file does not have null."""
    table = ALL[name]
    path = lake.table(table.layer, table.name)
    if not DeltaTable.is_deltatable(str(path)):
        return []
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted(({column: row.get(column) for column in table.schema.names} for row in rows), key=str)


def one_commit_for_new_columns(lake: Layout, name: str) -> None:
    """Whatever columns came, came at once, before the first file that has them."""
    table = ALL[name]
    if DeltaTable.is_deltatable(str(lake.table(table.layer, table.name))):
        handle = DeltaTable(lake.table(table.layer, table.name))
        assert {field.name for field in handle.schema().fields} == set(table.schema.names)
        assert 1 >= sum(entry.what == "ADD COLUMN" for entry in commits_of(handle))
