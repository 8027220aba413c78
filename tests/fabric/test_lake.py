"""The whole road with Spark at its end: nodes are killed on the way, the tables equal the sensors' own journals."""

import json
import math
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fabric.fabric import Fabric
from tests.pipeline.kills import SETTINGS
from weft.base.records import Stream, StreamRecord
from weft.cli.fleet import Member
from weft.shell.journal import JournalReader
from weft.wire import samples

pytestmark = pytest.mark.prove("Spark over what a fleet left")

TREE = {"root": "", "collector-1": "root", "sensor-1": "collector-1", "sensor-2": "collector-1"}
MINUTE_MS = 60_000
QUICK_JAVA = "-XX:TieredStopAtLevel=1"  # a JVM that lives for half a minute does not earn back what compiles well
Window = tuple[str, str, str, int]


def weft(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", *words], capture_output=True, timeout=300, check=False, text=True
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    return done.stdout


def ask(fabric: Fabric, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(weft("sql", "--lake", str(fabric.lake), "--json", sql))
    return rows


def rows_of(journal: Path, node: str) -> Iterator[tuple[int, str, str, int, float, float | None]]:
    """(era, metric, labels, at, value, base) of a node's own samples, in the order of their numbers."""
    for _, record in JournalReader(journal).entries():
        if isinstance(record, StreamRecord) and record.stream == Stream.SAMPLES and record.attributes["node"] == node:
            batch = samples.decode(record.payload)
            for row in batch.rows:
                series = batch.series[row.series]
                labels = json.dumps(dict(sorted(series.labels.items())))
                yield record.era or 0, series.config_name, labels, batch.t0_ms + row.offset_ms, row.value, row.base


def recomputed(fabric: Fabric) -> dict[Window, list[float]]:
    """Every value of every one-minute window, from the journals alone."""
    windows: dict[Window, list[float]] = defaultdict(list)
    for node in TREE:
        before: dict[tuple[int, str, str], tuple[float, float | None]] = {}
        for era, metric, labels, at, value, base in rows_of(fabric.place / node / "journal", node):
            key = (node, metric, labels, at // MINUTE_MS)
            if metric == "memory":
                windows[key].append(float(value))
                continue
            last = before.get((era, metric, labels))
            before[era, metric, labels] = (value, base)
            if last is not None and base is not None and last[1] is not None and value >= last[0] and base >= last[1]:
                share = (value - last[0]) / (base - last[1]) if base != last[1] else 0.0
                windows[key].append(100.0 * share)
    return windows


@pytest.mark.proves("PIP-045", "PIP-061")
def test_killed_nodes_leave_tables_that_equal_the_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soak: bool
) -> None:
    """`make soak` has the pipeline beside the fabric, and kills it too; tests/pipeline kills it in every run."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
    with Fabric(tmp_path, TREE) as fabric:
        fabric.measure_on(30)
        (fabric.lake / "lake.toml").write_text(SETTINGS, "utf-8")
        pipeline = Member("pipeline", ("-m", "weft.cli.main", "lake", "run", "--lake", str(fabric.lake), "--json"))
        if soak:
            fabric.fleet.add(pipeline)
            out = tmp_path / "pipeline.out"
            fabric.until(lambda: out.read_bytes().count(b"\n") >= 1, "the first batch", patience_s=180)
        for victim in ("collector-1", "root"):
            fabric.kill(victim)
            fabric.until(lambda victim=victim: fabric.taken(victim) > 0, f"{victim} is back")  # type: ignore[misc]  # bound
        if soak:
            pipeline.wanted = False
            fabric.kill("pipeline")
        fabric.measure_on(30)
        fabric.stop()
        weft("lake", "run", "--lake", str(fabric.lake), "--once")

        made = fabric.made()
        told = ask(fabric, "FROM gold.completeness WHERE stream = 'samples'")
        assert {(row["missing"], row["duplicates"], row["lost"]) for row in told} == {(0, 0, 0)}
        assert sum(ranges.count for _, ranges in made) == sum(row["received"] for row in told)

        windows = recomputed(fabric)
        gold = ask(
            fabric,
            "SELECT node, config_name, labels, epoch_ms(window_start) // 60000 AS minute, n, sum, min, max"
            " FROM gold.rollup_1m JOIN silver.series USING (series) WHERE n > 0",
        )
        found = {
            (r["node"], r["config_name"], json.dumps(dict(sorted(_labels(r["labels"]).items()))), r["minute"]): r
            for r in gold
        }
        assert {key: len(values) for key, values in windows.items()} == {key: row["n"] for key, row in found.items()}
        for key, values in windows.items():
            row = found[key]
            assert (min(values), max(values)) == pytest.approx((row["min"], row["max"]), rel=1e-12)
            assert math.fsum(values) == pytest.approx(row["sum"], rel=1e-9)


def _labels(shown: Any) -> dict[str, str]:
    return dict(shown) if not isinstance(shown, dict) else shown
