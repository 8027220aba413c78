"""A segment that is gone stops its job until somebody gives it up, with a reason (PIP-008)."""

import pytest

from tests.pipeline.ground import DRAIN, MEM, OTHER_DRAIN, Ground, taken
from weft.base.errors import UserError
from weft.lake.audit import audit
from weft.lake.manifest import SegmentFault
from weft.pipeline.check import Check
from weft.pipeline.mending.skip import Place, Skipped, skip

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


def test_a_manifest_that_is_gone_is_not_given_up(ground: Ground) -> None:
    for first in (1, 4, 7):
        ground.write(taken(first, ROWS[first - 1 : first + 2]))
    ground.lake.manifest(*SECOND).unlink()
    with pytest.raises(UserError) as error:
        skip(ground.lake, SECOND, "all of it")
    assert "segment-gone" == error.value.code
