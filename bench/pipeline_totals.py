"""Whether a dashboard and a notebook see what flows, and the same totals a minute later from the tables alone.

    python -m bench.pipeline_totals [--rate 50000] [--seconds 210] [--rest 60]

A sensor sends so many samples a second to a root that drains; `weft lake run` makes tables of them. Meanwhile two ask over
the bridge (PIP-102): a dashboard, half a second after each answer, for the last minute of each node, and a notebook, every
ten seconds, for the count and the sum of each series. No answer of the notebook may have fewer rows than the one before.
After `rest` more seconds its question is asked once more, without the bridge. It fails (status 1) unless that answer is
what the sensor was told to send, computed here.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from bench.hosts import load
from bench.lakes import percentile
from bench.pipeline_fresh import BATCH_ROWS, LOOK_S, driver, prove_alive
from bench.pipeline_traffic import SERIES, Burst, rows_of
from weft.pipeline.sql import Lake
from weft.pipeline.tables import SAMPLES

DASHBOARD: Final = """
SELECT node, count(*) AS rows, avg(value) AS mean, max(at_ns) AS newest
FROM silver.samples WHERE "at" > now() - INTERVAL 1 MINUTE GROUP BY node
"""
NOTEBOOK: Final = """
SELECT series.config_name AS name, count(*) AS rows, sum(samples.value_long)::HUGEINT::VARCHAR AS total
FROM silver.samples JOIN silver.series USING (series) GROUP BY ALL
"""
NOTEBOOK_S: Final = 10.0
WARM_S: Final = 90.0  # while Spark starts nobody makes tables, and then it has to catch up

Totals = dict[str, tuple[int, int | None]]
"""By series: rows, and the sum of its whole numbers; None if it has none."""


def sent(rows: int) -> Totals:
    """What the sensor was told to send."""
    counts: Counter[str] = Counter()
    sums: dict[str, int] = {}
    for first in range(0, rows, BATCH_ROWS):
        for row in rows_of(first, BATCH_ROWS):
            name = f"m{row.series}"
            counts[name] += 1
            if isinstance(row.value, int):
                sums[name] = sums.get(name, 0) + row.value
    return {name: (counts[name], sums.get(name)) for name in counts}


def totals(lake: Path, *, fresh: bool) -> Totals:
    """The notebook's answer."""
    with Lake(lake, fresh=fresh) as asked:
        found = asked.query(NOTEBOOK).to_pylist()
    return {one["name"]: (one["rows"], None if one["total"] is None else int(one["total"])) for one in found}


def watch(burst: Burst, seconds: float) -> tuple[list[float], int]:
    """How old the newest row of each of the dashboard's answers was, after `WARM_S`; and how often the notebook asked.

    RuntimeError if an answer of the notebook had fewer rows than the one before.
    """
    ages: list[float] = []
    before = asked = 0
    began = noted = time.monotonic()
    while time.monotonic() < began + seconds:
        time.sleep(LOOK_S)
        prove_alive(burst.fleet)
        with Lake(burst.lake.root, fresh=True) as dashboard:
            nodes = dashboard.query(DASHBOARD).to_pylist() if SAMPLES in dashboard.known() else []
        if nodes and time.monotonic() - began > WARM_S:
            ages.append(time.time() - max(node["newest"] for node in nodes) / 1e9)
        if nodes and time.monotonic() - noted > NOTEBOOK_S:
            rows = sum(count for count, _ in totals(burst.lake.root, fresh=True).values())
            if rows < before:
                raise RuntimeError(f"an answer has fewer rows than one before: {rows:,} and {before:,}")
            before, noted, asked = rows, time.monotonic(), asked + 1
    return ages, asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seconds", type=int, default=210)
    parser.add_argument("--rest", type=int, default=60)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        Burst(Path(directory), chosen.rate * chosen.seconds, chosen.rate, BATCH_ROWS) as burst,
    ):
        driver(burst.fleet, burst.lake)
        burst.send()
        ages, asked = watch(burst, chosen.seconds)
        time.sleep(chosen.rest)
        found, expected = totals(burst.lake.root, fresh=False), sent(burst.rows)
    print(f"{chosen.rate:,} samples/s for {chosen.seconds} s; {load()}")
    p50, p95 = percentile(ages, 0.5), percentile(ages, 0.95)
    print(
        f"newest row of {len(ages)} answers of a dashboard: p50 {p50:.2f} s old, p95 {p95:.2f} s; of a notebook {asked}"
    )
    rows, verdict = sum(count for count, _ in found.values()), "the same" if found == expected else "others"
    print(
        f"from the tables alone {chosen.rest} s later: {rows:,} of {burst.rows:,} rows; {SERIES} series, totals {verdict}"
    )
    sys.exit(found != expected)


if __name__ == "__main__":
    main()
