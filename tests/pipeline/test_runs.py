"""What the pipeline says of itself, asked with SQL: its drivers, and what was refused (section 4.1)."""

from pathlib import Path
from typing import Any

from tests.pipeline.ground import NOW_NS
from tests.pipeline.plain import instant, lake_of, put
from weft.pipeline.sql import Lake
from weft.pipeline.tables import PROGRESS, STAGES, VIEWS


def batch(number: int, run: int | None, rows: int, refused: int = 0, job: str = "samples") -> dict[str, Any]:
    told = {"job": job, "batch": number, "at": instant(number), "rows_in": rows, "rows_silver": rows - refused}
    counts = {"rows_duplicate": 0, "rows_quarantine": refused, "freshness_ms": 100 * (number + 1), "run": run}
    return told | counts | {"version": None if run is None else "0.9"}


def test_a_driver_is_a_row_and_so_are_batches_of_before(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    put(lake, PROGRESS, batch(0, None, 5), batch(1, 3, 10, 1), batch(0, 3, 2, job="events"), batch(2, 4, 0, -1))
    with Lake(lake.root) as asked:
        rows = asked.query("SELECT * FROM meta.runs ORDER BY run NULLS FIRST").to_pylist()
    assert [None, 3, 4] == [row["run"] for row in rows]
    assert (["events", "samples"], 2, 12, 11, 1, "0.9") == tuple(
        rows[1][name] for name in ("jobs", "batches", "rows_in", "rows_silver", "rows_quarantine", "version")
    )
    assert (150.0, 195.0) == (rows[1]["freshness_p50_ms"], rows[1]["freshness_p95_ms"])
    assert (instant(0), instant(1)) == (rows[1]["first_at"], rows[1]["last_at"])
    assert -1 == rows[2]["rows_quarantine"], "a retry took it back"
    assert tuple(rows[0]) == VIEWS["meta.runs"].table.schema.names


def test_what_was_refused_is_counted_by_batch_and_reason(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    bad = [("a", 1, "future"), ("b", 1, "future"), ("a", 2, "future"), ("a", 2, "rule:hot")]
    put(
        lake,
        STAGES["samples"].quarantine,
        *[{"origin": o, "batch": b, "reason": r, "received_ns": NOW_NS} for o, b, r in bad],
    )
    question = "SELECT stream, batch, reason, rows, origins FROM meta.quality ORDER BY ALL"
    with Lake(lake.root) as asked:
        found = [tuple(row.values()) for row in asked.query(question).to_pylist()]
    assert [("samples", 1, "future", 2, 2), ("samples", 2, "future", 1, 1), ("samples", 2, "rule:hot", 1, 1)] == found
    put(lake, STAGES["events"].quarantine, {"origin": "a", "batch": 0, "reason": "too-long", "received_ns": NOW_NS})
    with Lake(lake.root) as asked:
        both = asked.query("SELECT * FROM meta.quality ORDER BY stream").to_pylist()
    assert ("events", 0, "too-long", 1) == tuple(both[0].values())[:4]
    assert NOW_NS // 1000 == round(both[0]["first_received"].timestamp() * 1e6)
