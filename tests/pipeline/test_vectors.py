"""The vectors of calculated values, of pairs and of completeness, all in one lake: every vector is a node of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.ground import ERA, MEM, NET, T0_MS, Ground, era_end, lost, taken
from weft.base.records import Record, Stream, StreamRecord
from weft.wire import samples

pytestmark = pytest.mark.prove("whole batches in Spark")

FILE = Path(__file__).parents[1] / "vectors" / "pipeline.jsonl"
VECTORS = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def vectors(kind: str) -> dict[str, dict[str, Any]]:
    """Origin and meaning of the vectors of one kind."""
    return {
        f"{number:032x}": vector["means"]
        for number, vector in enumerate(VECTORS, 1)
        if vector["id"].startswith(kind) and vector["direction"] == "spark"
    }


def pair(origin: str, means: dict[str, Any]) -> StreamRecord:
    """Both samples of a calculated value; stamps before 2000 are moved."""
    points = [means["from"], means["to"]]
    t0 = points[0][0] + (0 if points[0][0] > T0_MS - 10_000_000 else T0_MS)
    series = samples.Series("some", "SOME", means["type"], {})
    rows = [samples.Row(0, at - points[0][0], value, base) for at, value, base in points]
    body = samples.encode(samples.SampleBatch(t0, (series,), rows))
    return StreamRecord(
        Stream.SAMPLES, bytes.fromhex(origin), ERA, 1, t0 * 10**6, t0 * 10**6, "weft.metric", body, {"n": len(rows)}
    )


def covering(origin: str, ranges: list[list[int]], counted: list[int]) -> Iterator[StreamRecord]:
    """Samples of these numbers; those of `counted` are of the one counter."""
    for first, last in ranges:
        rows = [(NET if n in counted else MEM, n, None) for n in range(first, last + 1)]
        yield taken(first, rows, origin)


def batches() -> list[list[Record]]:
    """What arrives, batch by batch, of all vectors at once."""
    arriving: list[list[Record]] = [[], [], []]
    arriving[0] += [pair(origin, means) for origin, means in vectors("calc-").items()]
    for origin, means in vectors("pairs-").items():
        for number, batch in enumerate(means["batches"]):
            arriving[number] += covering(origin, batch.get("covers", []), means["samples"])
            arriving[number] += [lost(first, last, origin) for first, last in batch.get("lost", [])]
    for origin, means in vectors("completeness-").items():
        arriving[0] += covering(origin, means["received"], [])
        arriving[1] += [lost(first, last, origin) for first, last in means.get("lost", [])]
        if "era_link_last" in means:
            arriving[2].append(era_end(means["era_link_last"], origin))
    return arriving


def pairs_of(ground: Ground, batch: int) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    for origin, made_by, first, last in ground.rows("silver.values", "origin", "batch", "from_sequence", "sequence"):
        if made_by == batch and first is not None:
            found.setdefault(origin, []).append([first, last])
    return found


@pytest.mark.proves("PIP-040", "PIP-042", "PIP-043", "PIP-060", "PIP-061")
def test_values_pairs_and_completeness_are_as_the_vectors_say(ground: Ground) -> None:
    for number, records in enumerate(batches()):
        ground.take(*records)
        found = pairs_of(ground, number)
        for origin, means in vectors("pairs-").items():
            wanted = means["batches"][number]["pairs"] if number < len(means["batches"]) else []
            assert wanted == found.get(origin, []), (number, means)
    ground.job.fold()
    values = {row["origin"]: row for row in ground.rows("silver.values") if row["sequence"] == 2}
    for origin, means in vectors("calc-").items():
        row = values[origin]
        assert (means["result"], means["reason"]) == (row["result"], row["reason"]), means
    across = [
        [origin, [row["from_sequence"], row["sequence"]]]
        for origin in vectors("pairs-")
        for row in ground.rows("silver.values")
        if row["origin"] == origin and row["reason"] == "across-lost"
    ]
    said = [(origin, batch) for origin, means in vectors("pairs-").items() for batch in means["batches"]]
    assert [[origin, pair] for origin, batch in said for pair in batch.get("across_lost", [])] == across
    rows = {row["origin"]: row for row in ground.rows("gold.completeness")}
    for origin, means in vectors("completeness-").items():
        row = rows[origin]
        holes = [[hole["first"], hole["last"]] for hole in row["missing_ranges"]]
        found_now = {**row, "missing_ranges": holes, "lost_count": row["lost"], "state_before_overdue": row["state"]}
        known = means.keys() & found_now.keys() - {"received", "lost"}
        assert {name: means[name] for name in known} == {name: found_now[name] for name in known}
