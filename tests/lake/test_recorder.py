"""The recorder in its thread, between a real journal, the drain core and a lake."""

import subprocess
import sys
from pathlib import Path
from queue import Queue
from threading import Event
from typing import Any

import pytest

from tests.lake.records import NODE_A, NODE_B, batch, chain_of, lost, other, rows_of
from tests.lake.root import WALL, Root
from tests.patience import PATIENCE_S
from weft.base.errors import StorageFailed, UserError
from weft.base.now import SECOND
from weft.base.records import Entry, Stream
from weft.base.spool import Released
from weft.cli.drain import drain, node_of
from weft.cores.drain.messages import DrainClosed, InspectLake, SegmentFailed, Stop, WriteSegment
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR
from weft.shell.files import Files
from weft.shell.journal import Journal
from weft.shell.recorder import Recorder


@pytest.mark.proves("LAK-001", "LAK-002", "LAK-007")
def test_from_the_journal_to_the_lake_and_again_after_a_restart(tmp_path: Path) -> None:
    lake, drain = Layout(tmp_path / "lake"), NODE_B.hex()
    root = Root(tmp_path)
    root.append(batch(NODE_A, 1, 100), other(Stream.EVENTS, 1), lost(101, 105))
    root.append(batch(NODE_A, 106, 10))
    root.step(SECOND)
    assert [*range(1, 101), *range(106, 116)] == [row["sequence"] for row in rows_of(lake, "samples", drain)]
    assert [1] == [row["sequence"] for row in rows_of(lake, "events", drain)]
    assert Released("drain", 4) in root.told
    root.append(batch(NODE_A, 116, 5))  # not drained before the end
    root.close()
    again = Root(tmp_path)
    again.step(SECOND)
    again.append(batch(NODE_A, 121, 5))
    again.core.command(Stop(), again.now)
    again.step(0)
    assert DrainClosed(is_whole=True) in again.told
    again.close()
    assert [*range(1, 101), *range(106, 126)] == [row["sequence"] for row in rows_of(lake, "samples", drain)]
    assert [(101, 105)] == [pair for m in chain_of(lake, "samples", drain) for _, r in m.lost_vector() for pair in r]


@pytest.mark.proves("LAK-001")
def test_nothing_heavy_is_imported_before_the_first_segment(tmp_path: Path) -> None:
    program = f"""
import sys
from weft.shell.recorder import Recorder
from weft.cores.drain.messages import InspectLake
recorder = Recorder({str(tmp_path)!r}, bytes(16), lambda after, most: ([], after), print)
print(type(recorder.outcome(InspectLake())).__name__, sorted({{"pyarrow", "pyspark", "duckdb"}} & sys.modules.keys()))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "LakeFound []\n" == said.stdout


def test_records_that_never_become_readable_are_a_failure_and_not_a_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.shell.recorder.PATIENCE_S", 0.0)
    reads: list[int] = []

    def read(after: int, bytes_max: int) -> tuple[list[Entry], int]:
        reads.append(after)
        return ([(1, batch(NODE_A, 1, 1))], 1) if after == 0 else ([], after)

    recorder = Recorder(tmp_path, NODE_B, read, print)
    recorder.outcome(InspectLake())
    failed = recorder.outcome(WriteSegment(1, 1, 1, 2, NO_PRIOR))
    assert isinstance(failed, SegmentFailed)
    assert "the journal ends at 1, before 2" in failed.detail
    assert [0, 1] == reads[:2]


@pytest.mark.proves("LAK-001", "LAK-018")
def test_the_journal_of_a_stopped_node_is_drained_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal, _ = Journal.open(tmp_path / "journal", NODE_A, Files(), WALL, 64 << 20)
    for number in range(50):
        journal.write([batch(NODE_A, 1 + 10 * number, 10), other(Stream.LOGS, number + 1)], WALL)
    with pytest.raises(UserError) as refused:
        drain(tmp_path / "journal", lake=tmp_path / "lake")
    assert "lease-held" == refused.value.code
    journal.close(WALL)
    drain(tmp_path / "journal", lake=tmp_path / "lake")
    lake = Layout(tmp_path / "lake")
    assert list(range(1, 501)) == [row["sequence"] for row in rows_of(lake, "samples", NODE_A.hex())]
    assert list(range(1, 51)) == [row["sequence"] for row in rows_of(lake, "logs", NODE_A.hex())]
    assert "550 rows" in capsys.readouterr().out
    drain(tmp_path / "journal", lake=tmp_path / "lake", json=True)
    assert "[]\n" == capsys.readouterr().out
    with pytest.raises(UserError):
        node_of(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed):
        drain(tmp_path / "journal", lake=tmp_path / "file")


@pytest.mark.proves("LAK-007", part="a start's recorder ends with it")
def test_an_end_waits_for_the_segment_at_hand_begins_no_other_and_says_if_that_takes_too_long(tmp_path: Path) -> None:
    may_read, is_reading = Event(), Event()
    read_from: list[int] = []
    said: Queue[Any] = Queue()

    def read(after: int, _bytes_max: int) -> tuple[list[Entry], int]:
        read_from.append(after)
        is_reading.set()
        assert may_read.wait(PATIENCE_S)
        return [], 9

    recorder = Recorder(tmp_path, NODE_B, read, said.put)
    recorder.perform(WriteSegment(1, 1, 5, 9, NO_PRIOR))
    recorder.perform(WriteSegment(1, 2, 10, 12, NO_PRIOR))
    assert is_reading.wait(PATIENCE_S)
    with pytest.raises(StorageFailed, match="is not written after"):
        recorder.close(patience_s=0.05)
    may_read.set()
    recorder.close(PATIENCE_S)
    assert ([4], 1) == (read_from, said.qsize())
