"""What it takes to judge the hours of a fleet that has run for days (PIP-055), by a driver with its usual memory.

    python -m bench.pipeline_judge [--days 7] [--nodes 100] [--series 10] [--hours 6]

The roll-ups of so many days are written first; then the hours of the last `hours` hours are judged twice: by a cold JVM, as
behind a backlog, and once more. Every third series has ten odd minutes at the end, which must be found.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

from bench.hosts import load
from bench.lakes import Spent, family, memory_mb, started
from weft.lake.layout import Layout
from weft.lake.segments import open_lake
from weft.pipeline.anomalies import Anomalies
from weft.pipeline.delta import Tables
from weft.pipeline.tables import ANOMALIES, LATEST, ROLLUP_1H, ROLLUP_1M, SERIES, VALUES, Table
from weft.pipeline.writer import Writer

START: Final = "TIMESTAMPTZ '2026-11-20 00:00:00+00'"
MEAN: Final = "50 + 10 * (hash(i * 100000007 + j * 1009 + {at}) % 1000) / 1000.0"


class Fleet(NamedTuple):
    """How much there is to judge."""

    days: int
    nodes: int
    series: int
    hours: int


def columns(fleet: Fleet) -> Iterator[tuple[Table, str]]:
    """Each table, and a query for rows of it; the columns that it does not name are null."""
    of = f"FROM range({fleet.nodes}) nodes(i), range({fleet.series}) series(j)"
    who = "'node' || i AS node, 'g' AS \"group\", j AS series"
    minutes = fleet.days * 1440
    counts = "0.0 AS sum_sq, 40.0 AS min, 60.0 AS max, 0 AS resets"
    for day in range(fleet.days):
        at = f"(m + {1440 * day})"
        odd = f"CASE WHEN j % 3 = 0 AND {at} BETWEEN {minutes - 100} AND {minutes - 91} THEN 500 ELSE 0 END"
        total = f"6 * ({MEAN.format(at=at)}) + {odd} AS sum"
        when = f"{START} + INTERVAL ({at}) MINUTE AS window_start, DATE '2026-11-20' + {day} AS day"
        yield ROLLUP_1M, f"SELECT {who}, {when}, 6 AS n, {total}, {counts} {of}, range(1440) r(m)"
    when = f"{START} + INTERVAL (h) HOUR AS window_start, DATE '2026-11-01' AS month"
    total = f"360 * ({MEAN.format(at='h')}) AS sum"
    yield ROLLUP_1H, f"SELECT {who}, {when}, 360 AS n, {total}, {counts} {of}, range({24 * fleet.days}) r(h)"
    end = f"{START} + INTERVAL ({minutes - 1}) MINUTE"
    yield LATEST, f"SELECT {who}, 'o' AS origin, {end} AS at, {end} AS result_at, 1.0 AS result {of}"
    yield SERIES, f"SELECT j AS series, 'metric' AS config_name, 0 AS batch FROM range({fleet.series}) series(j)"
    at = f"{START} + INTERVAL ({minutes - 1} - m) MINUTE"
    values = f"SELECT {who}, {at} AS at, CAST({at} AS DATE) AS day, 0 AS batch, 1.0 AS result {of}"
    yield VALUES, f"{values}, range({60 * fleet.hours}) r(m)"


def fill(tables: Tables, fleet: Fleet) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, query in columns(fleet):
            rows = connection.sql(query).to_arrow_table()
            shape = table.schema.arrow()
            made = {
                field.name: rows[field.name].cast(field.type)
                if field.name in rows.column_names
                else pa.nulls(rows.num_rows, field.type)
                for field in shape
            }
            tables.handle(table)
            tables.commit(table, 0, tables.write_rows(table, pa.table(made, schema=shape), 0), {})


def judge(home: Path, fleet: Fleet) -> None:
    """Print what each judgement took."""
    lake = Layout(home / "lake")
    open_lake(lake, "ab" * 16, 1)
    tables = Tables(lake, started(home), Writer("samples", "0" * 32, 1))
    fill(tables, fleet)
    wanted = fleet.nodes * -(-fleet.series // 3)
    print("| judgement | s | CPU s | anomalies | memory MB |\n|---|--:|--:|--:|--:|")
    for number, name in enumerate(("first", "again")):
        with Spent() as spent:
            Anomalies(tables, {}).bring(number)
        found = tables.dataset(ANOMALIES, tables.files(ANOMALIES)).count_rows()
        if found < wanted:
            raise ValueError(f"{found} anomalies were found of at least {wanted}")
        print(f"| {name} | {spent.wall:.1f} | {spent.cpu:.1f} | {found:,} | {memory_mb(family())} |")
        tables.append_rows(VALUES, number + 1, fresh(tables, number + 1), {})
    print(f"\n{load()}")


def fresh(tables: Tables, batch: int) -> list[dict[str, object]]:
    """A value of each node, of a later batch, so that its hours are judged again."""
    newest = tables.dataset(LATEST, tables.files(LATEST)).to_table(columns=["node", "result_at"]).to_pylist()
    at = {row["node"]: row["result_at"] for row in newest}
    return [{"node": node, "series": 0, "at": when, "day": when.date(), "batch": batch} for node, when in at.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--series", type=int, default=10)
    parser.add_argument("--hours", type=int, default=6)
    chosen = parser.parse_args()
    fleet = Fleet(chosen.days, chosen.nodes, chosen.series, chosen.hours)
    print(f"{fleet.nodes * fleet.series:,} series of {fleet.days} days; {load()}\n")
    with tempfile.TemporaryDirectory() as directory:
        judge(Path(directory), fleet)


if __name__ == "__main__":
    main()
