"""What is missing of every stream (PIP-060..062), counted by its own job, and told in words."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import (
    CPU,
    DRAIN,
    ERA,
    NOW_NS,
    A,
    B,
    Ground,
    Plot,
    change,
    event,
    message,
    taken,
    write,
)
from tests.pipeline.plain import Row, instant, lake_of, put, wrote
from weft.base.errors import UserError
from weft.base.identity import Origin
from weft.base.vectors import VersionVector
from weft.cli.lake_missing import missing
from weft.lake.layout import Layout
from weft.lake.segments import append_segment
from weft.pipeline import counting
from weft.pipeline.completeness import OVERDUE_NS, Instant, Tally, completed, rows_of
from weft.pipeline.counting import Counting
from weft.pipeline.coverage import Coverage
from weft.pipeline.intake import Intake
from weft.pipeline.tables import COMPLETENESS, CONFIGURATION

pytestmark = pytest.mark.prove("whole batches in Spark")

NUMBERS = ("expected", "received", "missing", "duplicates", "quarantined", "state")


def of(plot: Plot, stream: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = plot.rows("gold.completeness", order=("stream", "origin", "era"))
    return [tuple(row[name] for name in columns) for row in rows if row["stream"] == stream]


@pytest.mark.proves("PIP-060", "PIP-061", "PIP-062")
def test_each_job_counts_its_own_rows_and_time_alone_makes_them_missing(spark: SparkSession, tmp_path: Path) -> None:
    """Four streams of one lake; none of them touches what another has counted, and a restart counts nothing twice."""
    root, now = tmp_path / "lake", [NOW_NS]
    samples = Ground(root, spark)
    options = samples.options._replace(clock=lambda: now[0])
    events, messages, writes = (
        Plot(root, spark, stream, options) for stream in ("events", "messages", "configuration")
    )
    samples.take(taken(1, [(CPU, 1, 2)]))
    Counting(samples.job.kind, samples.job.tables, {}).bring(samples.job.checkpoint.coverage(0), 0, NOW_NS)
    events.take(
        event(1, "node.started", "info"),
        event(2, "x", "info"),
        event(2, "x", "info"),
        event(5, "x", "info", number=1 << 70),
    )
    messages.take(message(2), message(5))
    writes.take(write(3, "/a", b"1"), write(6, "/a", b"2", epoch=3), write(5, "/a", b"2", epoch=None))
    for plot in (events, messages, writes):
        plot.work.fold()
    assert [(5, 3, 2, 1, 0, "filling")] == of(events, "events", *NUMBERS)
    assert [(2, 2, 0, 0, 0, "sparse")] == of(messages, "messages", *NUMBERS)
    assert [(3, 1), (6, 3), (5, None)] == of(writes, "configuration", "highest_known", "era")
    assert [(1, 1, 0, 0, 0, "complete")] == of(samples, "samples", *NUMBERS)
    events.restart()
    events.take(event(3, "x", "info"))
    events.work.fold()
    assert [(5, 4, 1, 1, 0, "filling")] == of(events, "events", *NUMBERS)
    table = events.work.tables.handle(COMPLETENESS)
    version = table.version()
    now[0] += OVERDUE_NS
    events.work.fold()
    assert version == events.work.tables.handle(COMPLETENESS).version(), "nothing has changed: nothing is written"
    now[0] += 1
    events.work.fold()
    assert [(5, 4, 1, 1, 0, "missing")] == of(events, "events", *NUMBERS)
    events.work.fold()
    assert version + 1 == events.work.tables.handle(COMPLETENESS).version()
    assert [("complete",)] == of(samples, "samples", "state"), "its own job has not looked"


def test_rows_of_another_checkpoint_are_not_added_to(spark: SparkSession, tmp_path: Path) -> None:
    """A checkpoint that was begun anew has no mark: what the table has counted is counted anew."""
    plot = Plot(tmp_path / "lake", spark, "store")
    plot.take(change("n1", 1, ("a",), 1, tock=1))
    plot.work.fold()
    job = plot.work
    assert job.tables.writer is not None
    job.tables.writer = job.tables.writer._replace(checkpoint="another")
    Counting(job.kind, job.tables, {}).bring(job.checkpoint.coverage(0), 0, NOW_NS)
    assert [(1, 1, 0, 0, 0, "complete")] == of(plot, "store", *NUMBERS)


# Without Spark


def state(*ranges: tuple[int, int], now: int = 0, **kind: Any) -> Coverage:
    coverage = Coverage(**kind)
    coverage.advance(
        Intake((), VersionVector([(Origin("n1", 7), ranges)]), (), (), is_disjoint=True, newest=None), now=now
    )
    return coverage


@pytest.mark.proves("PIP-061", "LAK-037")
def test_what_was_removed_on_purpose_is_forgotten_and_nothing_else_changes() -> None:
    erased = VersionVector([(Origin("n1", 7), [(2, 3), (9, 12)])])
    (row,) = rows_of(state((1, 4), (6, 10)), "logs", Instant(0, 0, erased))
    names = ("expected", "received", "forgotten", "missing", "lost", "state")
    assert (10, 5, 4, 1, 0, "filling") == tuple(row[name] for name in names)
    assert [(2, 3, "forgotten"), (9, 10, "forgotten")] == row["lost_ranges"]
    (row,) = rows_of(state((1, 10)), "logs", Instant(0, 0, erased))
    assert (10, 6, 4, 0, 0, "complete") == tuple(row[name] for name in names)


@pytest.mark.proves("PIP-062")
def test_an_origin_that_says_nothing_is_silent_and_never_complete() -> None:
    (row,) = rows_of(state((1, 2)), "logs", Instant(0, 0))
    tally = Tally(3, 2, 0, "web-1", instant(0), instant(1), instant(2))
    heard = round(instant(2).timestamp()) * 1_000_000_000
    early, late = (completed(row, tally, heard + OVERDUE_NS + more) for more in (0, 1_000))
    assert ("complete", "silent", 1_000, 1) == (early["state"], late["state"], late["lag_ms"], late["duplicates"])
    assert "complete" == completed(row | {"closed": True}, tally, heard + 2 * (15 * 60 * 1_000_000_000))["state"]
    assert "sparse" == completed(row | {"state": "sparse"}, tally, heard + 2 * (15 * 60 * 1_000_000_000))["state"]
    nothing = completed(row, Tally(), heard)
    assert ("n1", None, None, 0) == (nothing["node"], nothing["last_at"], nothing["lag_ms"], nothing["silver_rows"])


def test_tallies_add_up_in_any_order() -> None:
    one, other = (
        Tally(3, 2, 1, "a", instant(5), instant(6), None),
        Tally(1, 1, 0, None, instant(1), instant(2), instant(9)),
    )
    both = Tally(4, 3, 1, "a", instant(1), instant(6), instant(9))
    assert [both, both, one] == [one.plus(other), other.plus(one), one.plus(Tally())]
    row = {"silver_rows": 2, "quarantined": 1, "duplicates": 4, "node": "a", "first_at": None, "last_at": None}
    assert Tally(7, 2, 1, "a") == Tally.of(row | {"last_received": None})


# In words


def counted(stream: str, state: str, **more: Any) -> Row:
    """A row of the table: a node of nine numbers."""
    row = {"stream": stream, "origin": A, "era": ERA, "node": A, "state": state, "expected": 9, "complete_upto": 4}
    row |= {"missing": 0, "lost": 0, "forgotten": 0, "closed": False, "more": False, "last_received": instant(9)}
    return row | {"missing_ranges": [], "lost_ranges": []} | more


def hole(first: int, last: int, since: float) -> dict[str, Any]:
    return {"first": first, "last": last, "since": instant(since)}


ROWS = (
    counted("samples", "missing", missing=2, missing_ranges=[hole(5, 6, 20)]),
    counted("events", "filling", missing=3, missing_ranges=[hole(2, 2, 9), hole(4, 5, 8)]),
    counted("logs", "missing", missing=1, closed=True, missing_ranges=[hole(9, 9, 8)]),
    counted("samples", "lost", origin=B, node="db", lost=3, lost_ranges=[
        {"first": 1, "last": 3, "why": "spool-full"}, {"first": 4, "last": 4, "why": "filtered by x"},
        {"first": 6, "last": 6, "why": "forgotten"}]),
    counted("catalog", "silent", origin=B, node="db"),
    counted("store", "complete", origin=B, node="db", era=None),
    counted("messages", "sparse", origin=B, node="db"),
    counted("configuration", "filling", origin="root", node="root", era=2, missing=1, missing_ranges=[hole(3, 3, 8)]),
)  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    made = lake_of(tmp_path)
    put(made, COMPLETENESS, *ROWS)
    put(
        made,
        CONFIGURATION,
        wrote(1, f"/TOPO/web/node/{A}", '{"name":"old-1"}'),
        wrote(2, f"/TOPO/web/node/{A}", '{"name":"web-1"}'),
    )
    return made


def test_a_person_is_told_what_is_missing_since_when_and_why(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == missing(lake=lake.root)
    start, nobody = "start of 2026-11-21T02:14:50Z", "nobody has announced a loss"
    assert {
        f"db catalog ({start}) is silent since 2026-11-21T02:15:09Z: what it has made since then, if anything, nobody here can know",
        f"root configuration (epoch 2) waits for 3 (1 of 9), since 2026-11-21T02:15:08Z, when later ones were here; {nobody}",
        f"web-1 events ({start}) waits for 2, 4-5 (3 of 9), since 2026-11-21T02:15:08Z, when later ones were here; {nobody}",
        f"web-1 logs ({start}) lacks 9 (1 of 9): that start is over and did not bring them, and {nobody}",
        f"db samples ({start}) has lost 1-3: spool-full",
        f"web-1 samples ({start}) lacks 5-6 (2 of 9), since 2026-11-21T02:15:20Z, when later ones were here; {nobody}",
        "messages: 9 have come; their numbers may have holes, so none counts as missing",
    } == set(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("which", "status", "count"),
    [
        ({"node": "db"}, 0, 4),
        ({"node": B, "stream": "store"}, 0, 1),
        ({"node": "web-1"}, 1, 3),
        ({"stream": "events"}, 1, 1),
    ],
)
def test_one_machine_or_one_stream_may_be_asked_for(
    which: dict[str, str], status: int, count: int, lake: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status == missing(lake=lake.root, json=True, **which)
    told = json.loads(capsys.readouterr().out)
    assert (status == 0, 0, count) == (told["whole"], told["waiting"], len(told["rows"]))
    assert 0 <= (datetime.fromisoformat(told["rows"][0]["last_received"]) - instant(9)).total_seconds()


def test_what_cannot_be_answered_is_said_in_words(lake: Layout, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing of a node 'x'"):
        missing(lake=lake.root, node="x")
    with pytest.raises(UserError, match="no stream 'x'"):
        missing(lake=lake.root, stream="x")
    uncounted = lake_of(tmp_path / "uncounted")
    with pytest.raises(UserError, match="not been counted"):
        missing(lake=uncounted.root)
    put(uncounted, COMPLETENESS)
    with pytest.raises(UserError, match="not been counted"):
        missing(lake=uncounted.root)


def test_of_what_no_table_has_yet_nobody_says_that_nothing_is_missing(
    lake: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == missing(lake=lake.root, node="db")
    assert "nothing is missing of what is known to exist" in capsys.readouterr().out.splitlines()
    append_segment(lake, "samples", DRAIN, [(1, taken(1, [(CPU, 1, 2)]))])
    assert 0 == missing(lake=lake.root, node="db")
    told = capsys.readouterr()
    assert "nothing is missing of what the tables have counted" in told.out.splitlines()
    assert "1 segments are drained and not in the tables yet" in told.err


@pytest.mark.soak
def test_a_planted_bug_that_time_changes_nothing_would_be_seen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_has_aged", lambda *_: False)
    with pytest.raises(AssertionError):
        test_each_job_counts_its_own_rows_and_time_alone_makes_them_missing(spark, tmp_path)
