"""Bytes that change on a resting disk: found wherever they stand, in segments and in tables (FLD-030)."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.journal.model import NODE, SMALL, WALL
from tests.pipeline import flips
from tests.pipeline.conftest import Filled
from tests.pipeline.golden_lakes import LAKES, opened
from tests.pipeline.ground import NET, Ground, taken
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.base.records import StreamRecord
from weft.cli.lake_run import check
from weft.cli.sql import sql
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault
from weft.pipeline.check import Check
from weft.pipeline.delta import Tables
from weft.pipeline.sql import Lake
from weft.pipeline.tables import SAMPLES, there
from weft.pipeline.upkeep.compact import Bundle, joined
from weft.pipeline.upkeep.log import live_files
from weft.pipeline.upkeep.log import opened as table_of
from weft.shell.files import Files
from weft.shell.journal import Journal, JournalReader

pytestmark = pytest.mark.prove("a whole lake, proved byte by byte")

SUM = "SELECT sum(sequence) AS total FROM silver.samples"


@pytest.fixture
def lake(filled: Filled, tmp_path: Path) -> Layout:
    """A copy of a lake with rows in all its tables, for a test that harms it."""
    return Layout(shutil.copytree(filled.ground.lake.root, tmp_path / "lake"))


def data_files(lake: Layout) -> list[Path]:
    """The files of all segments, and those that the newest versions of all tables name."""
    segments = sorted((lake.root / "drain").rglob("*.parquet"))
    tables = []
    for table in there(lake):
        delta = table_of(lake, table)
        assert delta is not None
        tables += [lake.table(table.layer, table.name) / file.path for file in live_files(delta, table)]
    assert segments
    assert tables
    return segments + sorted(tables)


def flip(file: Path, at: int, bit: int = 0) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1 << bit
    file.write_bytes(data)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of several segments, stopped in order."""
    opened, _ = Journal.open(tmp_path / "journal", NODE, Files(), WALL, SMALL)
    for number in range(1, 41):
        opened.write([StreamRecord(1, NODE, 7, number, WALL, WALL, "cpu", bytes([number]) * 300, {})], WALL)
    opened.close(WALL)
    return tmp_path / "journal"


@pytest.mark.proves(
    "FLD-030", part="a byte changed at rest is found by the deep check: journals, segments, manifests, tables, logs"
)
def test_a_byte_that_changed_anywhere_in_journal_segments_or_tables_is_noticed(
    lake: Layout, journal: Path, *, soak: bool
) -> None:
    assert "" == flips.noticed_in_journal(journal) == flips.noticed_in_lake(lake)
    for outcome in flips.play(journal, lake, 400 if soak else 30, Chance("bytes")):
        assert outcome.noticed, flips.told(outcome)
    assert "" == flips.noticed_in_journal(journal) == flips.noticed_in_lake(lake)


def test_a_log_of_a_table_that_cannot_be_read_is_named_and_is_no_crash(lake: Layout) -> None:
    log = lake.table(SAMPLES.layer, SAMPLES.name) / "_delta_log" / f"{0:020d}.json"
    log.write_bytes(log.read_bytes().replace(b'":', b'"*', 1))
    assert flips.noticed_in_lake(lake).startswith("broken, silver.samples: its log cannot be read: ")


def test_a_manifest_with_a_byte_that_is_no_text_is_refused_by_name(lake: Layout) -> None:
    manifest = min((lake.root / "drain" / "samples").rglob("*1.json"))
    manifest.write_bytes(manifest.read_bytes().replace(b'"drain":"', b'"drain":"\xb9', 1))
    assert "manifest cannot be read" in flips.noticed_in_lake(lake)


def _byte_of_a_value(lake: Layout) -> Path:
    """Change one byte in the pages of a file of silver."""
    file = next(file for file in data_files(lake) if "silver/samples/" in str(file))
    column = pq.read_metadata(file).row_group(0).column(0)
    flip(file, (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 2)
    return file


@pytest.mark.proves("FLD-030", part="weft sql --verify")
def test_a_question_that_is_to_be_proved_is_refused_where_a_byte_has_changed(
    lake: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    sql(SUM, lake=lake.root, verify=True, json=True)
    with Lake(lake.root) as asked:
        total = asked.query(SUM).column("total")[0].as_py()
    assert int(total) > 0
    assert str(total) in capsys.readouterr().out
    file = _byte_of_a_value(lake)
    with pytest.raises(UserError) as refused:
        sql(SUM, lake=lake.root, verify=True)
    assert refused.value.code == "damaged"
    assert file.name in refused.value.text


@pytest.mark.proves("FLD-030", part="checksums of pages")
def test_pages_of_tables_and_segments_have_checksums_of_their_own(lake: Layout) -> None:
    for file in (_byte_of_a_value(lake), _byte_of_a_segment(lake)):
        with pytest.raises(OSError, match=r"(?i)crc"), pq.ParquetFile(file, page_checksum_verification=True) as opened:
            opened.read()


def _byte_of_a_segment(lake: Layout) -> Path:
    file = min((lake.root / "drain" / "samples").rglob("*.parquet"))
    column = pq.read_metadata(file).row_group(0).column(0)
    flip(file, (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 2)
    return file


def _flipped(segment: Path) -> None:
    flip(segment, segment.stat().st_size // 2)


@pytest.mark.proves("FLD-030", part="the driver verifies what it takes")
@pytest.mark.parametrize(("harm", "code"), [(_flipped, "segment-changed"), (Path.unlink, "segment-gone")])
def test_the_driver_takes_no_segment_whose_bytes_are_not_those_that_were_drained(
    harm: Callable[[Path], None], code: str, ground: Ground
) -> None:
    ground.write(taken(1, [(NET, 1, None)]))
    harm(max((ground.lake.root / "drain" / "samples").rglob("*.parquet")))
    with pytest.raises(SegmentFault) as refused:
        ground.take()
    assert refused.value.code == code
    assert ground.job.tables.is_empty(SAMPLES)


@pytest.mark.proves("FLD-030", part="who makes new rows of old ones proves the old ones first")
def test_nothing_new_is_made_of_a_file_of_a_table_that_changed(lake: Layout, spark: SparkSession) -> None:
    file = _byte_of_a_value(lake)
    delta = table_of(lake, SAMPLES)
    assert delta is not None
    (live,) = [one for one in live_files(delta, SAMPLES) if one.path.endswith(file.name)]
    nobody: Any = None
    makers: list[Callable[[], object]] = [
        lambda: joined(lake, Bundle(SAMPLES, (live,))),
        lambda: Tables(lake, spark).read(SAMPLES),
        lambda: Tables(lake, nobody).read(SAMPLES, [str(file)]),
    ]
    for make in makers:
        with pytest.raises(UserError) as refused:
            make()
        assert "damaged" == refused.value.code
        assert file.name in refused.value.text


@pytest.mark.proves("FLD-030", part="what is read from a journal is what was written")
def test_no_altered_record_is_read_from_a_journal_that_rests(journal: Path) -> None:
    written = [record.payload for _, record in records_of(journal)]
    assert [bytes([number]) * 300 for number in range(1, 41)] == written
    chance = Chance("at rest")
    for _ in range(20):
        file = chance.choice(sorted(journal.glob("*.seg")))
        whole = file.read_bytes()
        flip(file, chance.randint(0, len(whole) - 1), chance.randint(0, 7))
        try:
            assert {record.payload for _, record in records_of(journal)} <= set(written)
        except UserError:
            pass
        finally:
            file.write_bytes(whole)


def records_of(journal: Path) -> list[tuple[int, StreamRecord]]:
    """What a reader beside the node finds."""
    found = JournalReader(journal).entries()
    return [(lsn, record) for lsn, record in found if isinstance(record, StreamRecord)]


def test_files_of_an_earlier_version_have_no_digest_and_never_count_as_proved_until_they_are_adopted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = opened(LAKES[0], tmp_path)
    assert "equal" == Check(lake).run().state
    assert 3 == check(lake=lake.root, deep=True)
    shown = capsys.readouterr().out
    assert shown.startswith("unproved: ")
    assert "files of silver.samples have no digest: weft lake check --deep --adopt takes them on" in shown
    with pytest.raises(UserError) as refused:
        sql(SUM, lake=lake.root, verify=True)
    assert refused.value.code == "unproved"
    with pytest.raises(UserError) as refused:
        check(lake=lake.root, adopt=True)
    assert refused.value.code == "usage"
    shutil.rmtree(lake.root / "_weft", ignore_errors=True)  # a lake that nobody has kept has no such directory
    assert 0 == check(lake=lake.root, deep=True, adopt=True)
    assert 0 == check(lake=lake.root, deep=True)
    _byte_of_a_value(lake)
    assert 2 == check(lake=lake.root, deep=True)
    assert "is changed" in capsys.readouterr().out


def test_a_file_whose_end_cannot_be_read_is_a_difference_and_no_crash(lake: Layout) -> None:
    file = next(file for file in data_files(lake) if "silver/values/" in str(file))
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[: size - 8] + bytes(8))
    with pytest.raises(pa.ArrowException):
        pq.read_metadata(file)
    assert "broken" == Check(lake, deep=True).run().state
