"""A segment that is gone stops its job until somebody gives it up, with a reason (PIP-008)."""

from pathlib import Path

import pytest

from tests.pipeline.ground import DRAIN, MEM, OTHER_DRAIN, Ground, taken
from weft.base.errors import UserError
from weft.lake import vectors
from weft.lake.audit import audit
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault
from weft.lake.reader import Source
from weft.lake.segments import Place as Segment
from weft.lake.segments import append_segment, open_lake
from weft.lake.vectors import publish
from weft.pipeline.check import Check
from weft.pipeline.intake import intake_between
from weft.pipeline.mending import skip as skips
from weft.pipeline.mending.skip import Place, Skipped, skip

pytestmark = pytest.mark.prove("whole batches in Spark")

ROWS = [(MEM, n, None) for n in range(1, 10)]
SECOND = Place("samples", DRAIN, 2)
COMPLETENESS = ("expected", "received", "lost", "missing", "state")


@pytest.mark.proves("PIP-008")
def test_what_a_segment_held_that_is_given_up_is_lost_with_the_reason_and_its_job_goes_on(ground: Ground) -> None:
    ground.take(taken(1, ROWS[:3]))
    ground.write(taken(4, ROWS[3:5]))
    ground.write(taken(6, ROWS[5:7]))
    ground.lake.parquet(*SECOND).unlink()
    with pytest.raises(SegmentFault, match=r"segment-gone.* 2: its file is missing"):
        ground.take()
    assert ["segment-gone"] == [found.fault for found in audit(ground.lake, "samples") if found.fault]
    ground.restart()
    assert Skipped(*SECOND, 2, 2, "disk replaced") == skip(ground.lake, SECOND, " disk replaced ")
    assert "disk replaced" == skip(ground.lake, SECOND, "again").reason
    ground.take()
    ground.job.fold()
    assert [(7, 5, 2, 0, "lost")] == ground.rows("gold.completeness", *COMPLETENESS)
    assert [([{"first": 4, "last": 5, "why": "skipped: disk replaced"}],)] == ground.rows(
        "gold.completeness", "lost_ranges"
    )
    verdict = Check(ground.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)
    assert all(found.fault is None for found in audit(ground.lake, "samples", deep=True))
    ground.take(taken(4, ROWS[3:5]), drain=OTHER_DRAIN)
    ground.job.fold()
    assert [(7, 7, 0, 0, "complete")] == ground.rows("gold.completeness", *COMPLETENESS)


def test_what_is_there_or_in_tables_or_nowhere_is_not_given_up(ground: Ground) -> None:
    ground.take(taken(1, ROWS[:3]))
    ground.write(taken(4, ROWS[3:5]))
    ground.lake.parquet("samples", DRAIN, 1).unlink()
    refused = {
        "segment-whole": (SECOND, "why not"),
        "segment-taken": (SECOND._replace(number=1), "it is gone"),
        "no-segment": (SECOND._replace(number=3), "never there"),
        "bad-reason": (SECOND, " \n"),
    }
    for code, (place, reason) in refused.items():
        with pytest.raises(UserError) as error:
            skip(ground.lake, place, reason)
        assert code == error.value.code
    ground.lake.manifest(*SECOND).unlink()
    with pytest.raises(UserError) as error:
        skip(ground.lake, SECOND, "all of it")
    assert "no-segment" == error.value.code


@pytest.mark.proves("PIP-008")
def test_a_segment_of_which_nothing_is_left_is_given_up_too_and_what_it_held_is_missing(ground: Ground) -> None:
    for first in (1, 4, 7):
        ground.write(taken(first, ROWS[first - 1 : first + 2]))
    ground.lake.manifest(*SECOND).unlink()
    with pytest.raises(SegmentFault, match=r"segment-gone.* 2: its manifest is missing"):
        Source(ground.lake, "samples").advance({})
    ground.lake.parquet(*SECOND).unlink()
    assert Skipped(*SECOND, 0, 0, "the disk") == skip(ground.lake, SECOND, "the disk")
    ground.take()
    ground.job.fold()
    assert [(9, 6, 0, 3, "filling")] == ground.rows("gold.completeness", *COMPLETENESS)
    verdict = Check(ground.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


def test_what_it_held_is_lost_if_the_drain_has_told_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (vectors, skips):
        monkeypatch.setattr(module, "EVERY", 4)
    lake = Layout(tmp_path)
    open_lake(lake, "ab" * 16, 1)
    for number in range(1, 6):
        append_segment(lake, "samples", DRAIN, [(number, taken(number, ROWS[:1]))])
    publish(lake, Segment("samples", DRAIN, 4), LocalFiles())
    whole = Source(lake, "samples")
    told = whole.offset(whole.latest())
    lake.manifest(*SECOND).unlink()
    lake.parquet(*SECOND).unlink()
    assert Skipped(*SECOND, 0, 1, "the disk") == skip(lake, SECOND, "the disk")
    after = Source(lake, "samples")
    after.prove(told)
    assert told == after.offset(after.latest())
    intake = intake_between(after, {}, {DRAIN: (4, 0)})
    assert ([(1, 1), (3, 3)], ["skipped: the disk"]) == (
        [pair for _, ranges in intake.received for pair in ranges],
        [loss.why for loss in intake.lost],
    )
