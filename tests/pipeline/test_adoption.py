"""Bronze without copying: segments become its files (LAK-040, PIP-101)."""

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import weft.pipeline as weft
from tests.pipeline.ground import DRAIN, MEM, Ground, single, taken
from weft.lake import retention
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.reader import Limits
from weft.lake.stubs import link_at
from weft.pipeline.check import Check
from weft.pipeline.digests import digest_in, digest_of
from weft.pipeline.sql import Lake
from weft.pipeline.tables import STAGES
from weft.pipeline.upkeep import compact
from weft.pipeline.upkeep.log import exchange
from weft.pipeline.versions import paths_of

pytestmark = pytest.mark.prove("whole batches in Spark")

ROWS = [(MEM, n, None) for n in range(10)]
PLACED = "SELECT segment, row, batch, sequence FROM bronze.samples ORDER BY ALL"
NEXT_DAY = 24 * 3600 * 1_000_000_000
TAKEN = [(1, 0, 0, 1), (1, 1, 0, 2), (2, 0, 1, 3), (2, 1, 1, 4), (3, 0, 1, 5)]


def bronze_files(lake: Layout) -> list[Path]:
    return sorted(Path(file) for file in paths_of(DeltaTable(lake.table("bronze", "samples")).file_uris()))


def segment(lake: Layout, number: int) -> Path:
    return lake.parquet("samples", DRAIN, number)


def told(lake: Layout, question: str = PLACED) -> list[tuple[Any, ...]]:
    with Lake(lake.root) as asked:
        return [tuple(row.values()) for row in asked.query(question).to_pylist()]


def in_spark(ground: Ground) -> list[tuple[Any, ...]]:
    return [
        tuple(row)
        for frame in (
            ground.work.tables.read(STAGES["samples"].bronze),
            weft.table(ground.spark, ground.lake.root, "bronze.samples"),
        )
        for row in frame.select("segment", "row", "batch", "sequence").sort("segment", "row").collect()
    ]


@pytest.mark.proves("PIP-101", "LAK-040")
def test_segments_are_the_files_of_bronze_and_stay_them_whatever_becomes_of_the_segments(ground: Ground) -> None:
    lake = ground.lake
    ground.write(taken(1, ROWS[:2]))
    os.utime(segment(lake, 1), (0, 0))
    ground.take()
    assert min(file.stat().st_mtime for file in bronze_files(lake)) > 1_000_000_000, "vacuum takes no old file for lost"
    ground.write(taken(3, ROWS[2:4]))
    ground.take(taken(5, ROWS[4:5]))
    assert {segment(lake, number).stat().st_ino for number in (1, 2, 3)} == {
        file.stat().st_ino for file in bronze_files(lake)
    }, "no byte is copied"
    assert [digest_in(str(file)) for file in bronze_files(lake)] == [digest_of(file) for file in bronze_files(lake)]
    assert TAKEN == told(lake)
    assert TAKEN + TAKEN == in_spark(ground)
    assert [0, 0, 1, 1, 1] == sorted(weft.arrow(lake.root, "bronze.samples").column("batch").to_pylist())
    files = ground.work.tables.files(STAGES["samples"].bronze, "batch > 0 AND batch <= 1")
    assert 2 == len(files), "by the log, a batch's files are known without a look at rows"
    manifest = link_at(lake, "samples", DRAIN, 1).manifest
    retention.delete(lake, manifest, LocalFiles())
    assert not segment(lake, 1).exists()
    assert TAKEN == told(lake)
    for bundle in compact.due(lake, date(2027, 1, 15)):
        exchange(lake, compact.joined(lake, bundle), 9)
    assert 3 == len(bronze_files(lake)), "the last batch is never joined"
    ground.take(taken(6, ROWS[5:6]))
    for bundle in compact.due(lake, date(2027, 1, 15)):
        exchange(lake, compact.joined(lake, bundle), 9)
    assert TAKEN == told(lake)[:5], "who took a row stands in the row from now on"
    assert {"c", "b"} == {file.name[0] for file in bronze_files(lake)}
    verdict = Check(lake, deep=True).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


@pytest.mark.proves("PIP-101", part="what cannot be adopted is copied")
def test_what_cannot_be_adopted_is_copied_beside_what_can(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of two days, a part of a segment, a file system without links; and one segment that becomes a file."""
    lake = ground.lake
    later = single(2, b"\x01", received=taken(1, ROWS[:1]).received + NEXT_DAY)
    ground.write(taken(1, ROWS[:1]), later)
    ground.write(taken(3, ROWS[2:4]))
    done = ground.work.take(Limits(4, 4))
    assert done is not None
    assert [1, 1, 2] == sorted(file.stat().st_nlink for file in bronze_files(lake)), "a file a day, and a segment"
    ground.write(taken(5, ROWS[4:7]))
    assert ground.work.take(Limits(1, 4)) is not None

    def no_links(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_links)
    assert ground.work.take(Limits(2, 4)) is not None
    assert [(1, 0, 0, 1), (1, 1, 0, 2), (2, 0, 0, 3), (2, 1, 0, 4), (3, 0, 1, 5), (3, 1, 2, 6), (3, 2, 2, 7)] == told(
        lake
    )
    assert [(2,)] == told(lake, "SELECT count(DISTINCT day) FROM bronze.samples")
    verdict = Check(lake, deep=True).run()
    assert ("equal", []) == (verdict.state, verdict.differences)
