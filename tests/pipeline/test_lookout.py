"""What a driver tells of itself: events that are news, and numbers for who scrapes them (PIP-089)."""

import errno
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import DeltaError
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.pipeline.ground import MEM, lost, taken
from tests.pipeline.plain import lake_of
from weft.base.errors import UserError
from weft.cli import lake_run
from weft.lake.consumers import register
from weft.lake.layout import Layout
from weft.lake.offsets import Offset
from weft.lake.segments import append_segment
from weft.pipeline import eventlog
from weft.pipeline.batch import Outcome
from weft.pipeline.eventlog import Lookout, note
from weft.pipeline.job import Done
from weft.pipeline.metrics import Meter, waiting_rows
from weft.pipeline.runner import _of_disk

DRAIN = "d1" * 16


def done(number: int, *, job: str = "samples", refused: int = 0, missing: int = 0, age_ms: int | None = 900) -> Done:
    outcome = Outcome(10, 7 - refused, 3, refused, 4)
    return Done(job, number, outcome, 2, age_ms, 0.5, {}, missing, 6, run=9, bytes=1_000, commit_s=0.02)


def written(lake: Layout) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (lake.runs() / eventlog.FILE).read_text("utf-8").splitlines()]


def test_news_is_told_once(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    told: list[dict[str, Any]] = []
    lookout = Lookout(lake, told.append)
    for batch in (done(1), done(2, refused=1), done(3, refused=2), done(4, missing=5), done(5, missing=2), done(6)):
        lookout.hear(batch)
    lookout.hear(done(1, job="events", refused=1, missing=1))
    for age_ms in (400_000, 500_000, 10):
        lookout.hear(done(7, age_ms=age_ms))
    lookout.ended()
    assert [
        ("run-began", None), ("quarantine-started", 2), ("hole-found", 4), ("hole-filled", 6),
        ("quarantine-started", 1), ("hole-found", 1), ("behind", 7), ("caught-up", 7), ("run-ended", None),
    ] == [(event["event"], event.get("batch")) for event in written(lake)]  # fmt: skip
    assert told == written(lake)
    assert (9, 10, 100) == (told[0]["run"], told[-1]["batches"], told[-1]["rows"])
    assert 0o600 == (lake.runs() / eventlog.FILE).stat().st_mode & 0o777


def test_why_a_driver_ended_has_its_name_and_a_refused_one_says_nothing(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    lookout = Lookout(lake)
    lookout.failed(UserError("lease-held", "another one runs", "wait"))
    lookout.failed(UserError("lost-lease", "it has passed on", "again"))
    lookout.failed(OSError(errno.ENOSPC, "no space"))
    lookout.failed(ValueError("x" * 5_000))
    lookout.ended()
    assert ["lease-lost", "full", "batch-failed"] == [event["event"] for event in written(lake)]
    assert 1_000 == len(written(lake)[-1]["why"])


FULL = OSError(errno.ENOSPC, "No space left on device", "/lake/a.parquet")


@pytest.mark.parametrize(
    ("error", "is_of_disk"),
    [
        (FULL, True),
        (OSError(errno.EIO, "Input/output error"), True),
        (DeltaError("Generic LocalFileSystem error: No space left on device (os error 28)"), True),
        (
            RuntimeError("An error occurred while calling o7.parquet.\n: java.io.IOException: No space left on device"),
            True,
        ),
        (DeltaError("Kernel error"), False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), False),
        (TimeoutError(), False),
        (ValueError("no"), False),
    ],
)
def test_a_disk_that_refuses_ends_a_driver_with_a_sentence_that_names_it(
    tmp_path: Path, error: Exception, *, is_of_disk: bool
) -> None:
    refusal = _of_disk(Layout(tmp_path), error)
    assert is_of_disk == (refusal is not None)
    assert refusal is None or ("storage-failed", True) == (refusal.code, str(tmp_path) in refusal.text)


def test_a_full_disk_is_the_event_whatever_error_says_it(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    refusal = UserError("storage-failed", "the disk refuses", "more room")
    refusal.__cause__ = FULL
    Lookout(lake).failed(refusal)
    Lookout(lake).failed(OSError("Generic LocalFileSystem error: No space left on device (os error 28)"))
    assert ["full", "full"] == [event["event"] for event in written(lake)]


def test_the_log_is_bounded_and_one_that_cannot_be_written_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path)
    monkeypatch.setattr(eventlog, "BYTES_MAX", 300)
    for number in range(20):
        note(lake, "compacted", table="silver.samples", files=number)
    kept = sum(len((lake.runs() / name).read_text("utf-8")) for name in (eventlog.FILE, eventlog.OLDER))
    assert 300 < kept < 900
    assert 19 == written(lake)[-1]["files"]
    nowhere = Layout(tmp_path / "file")
    nowhere.root.touch()
    assert "compacted" == note(nowhere, "compacted")["event"]


def numbers(text: str) -> dict[str, float]:
    return {
        f"{sample.name}{''.join(f' {value}' for _, value in sorted(sample.labels.items()))}": sample.value
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]  # theirs
        for sample in family.samples
    }


@pytest.mark.proves("PIP-089")
def test_a_scrape_finds_every_number_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of(tmp_path)
    monkeypatch.setattr("weft.pipeline.metrics.reasons_of", lambda *_: {"future": 1, "rule:hot": 1})
    for first in (1, 4, 7):
        append_segment(lake, "samples", DRAIN, [(1, taken(first, [(MEM, first, None)] * 3)), (2, lost(90, 91))])
    register(lake, "samples", "samples", Offset(v=1, o=1, vec="", at={DRAIN: (2, 1)}), 1)
    meter = Meter(lake)
    meter.hear(done(1, refused=2, missing=5))
    meter.hear(done(2))
    meter.hear(done(1, job="events", age_ms=None))
    port = meter.serve(0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b"weft_lake_lag_rows" in answer.read()
    found = numbers(meter.text())
    expected = {
        "weft_lake_rows_total in samples": 20, "weft_lake_rows_total silver samples": 12,
        "weft_lake_rows_total values samples": 8, "weft_lake_segments_total samples": 4,
        "weft_lake_bytes_total samples": 2_000, "weft_lake_duplicates_total samples": 6,
        "weft_lake_quarantined_total future samples": 1, "weft_lake_quarantined_total rule:hot samples": 1,
        "weft_lake_batch_seconds_count samples": 2, "weft_lake_commit_seconds_sum events": 0.02,
        "weft_lake_freshness_seconds samples": 0.9, "weft_lake_missing samples": 0, "weft_lake_lease_epoch": 9,
        "weft_lake_lag_rows samples": 5,
    }  # fmt: skip
    assert expected == {name: found.get(name) for name in expected}
    assert waiting_rows(lake, "events") == 0


def test_a_port_that_is_taken_and_a_stream_that_is_none_are_said_in_a_sentence(tmp_path: Path) -> None:
    port = Meter(lake_of(tmp_path)).serve(0)
    with pytest.raises(UserError, match=f"127.0.0.1:{port}: Address already in use"):
        lake_run._metered(Layout(tmp_path), port)
    with pytest.raises(UserError, match="there is no stream 'sample'"):
        lake_run._named("samples,sample")
    assert ("samples", "events") == lake_run._named(" events, samples,")
    assert () == lake_run._named("")
