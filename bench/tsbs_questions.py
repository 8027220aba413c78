"""Three of TSBS's questions to its cpu-only shape, asked four ways; every answer is compared with what was measured.

`single-groupby-1-1-1`: the greatest value of one metric of one host in each minute of one hour. `double-groupby-1`: the mean
of one metric by host and hour, over twelve hours. `cpu-max-all-1`: the greatest value of each metric of one host in each
hour of eight. Host and beginning are drawn anew each round; a shape that is shorter is asked about all of it.
"""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.tsbs_hosts import METRICS, SEED, TICK_S, Values, name_of
from weft.pipeline import table
from weft.pipeline.scan import quoted
from weft.pipeline.sql import Lake

HOUR_S: Final = 3_600
TABLE: Final = "silver.samples"
SETTINGS: Final[dict[str, Any]] = {"threads": "2"}

Answer = list[tuple[Any, ...]]


class Window(NamedTuple):
    """What one round asks about: a host, and the ticks from `first` up to before `end`."""

    host: int
    first: int
    end: int


class Question(NamedTuple):
    """One question, as SQL and as what it asks of the values measured."""

    name: str
    seconds: int
    sql: str
    picks: Callable[[int, int], list[int]]
    """The hosts that it asks about, by the host drawn and by how many there are."""
    metrics: tuple[str, ...]
    width_s: int
    key: Callable[[datetime, int, str], tuple[Any, ...]]
    fold: Callable[[list[int]], float]

    def window(self, shape: tuple[int, ...], chance: random.Random) -> Window:
        """Draw what a round asks about."""
        ticks, hosts = shape[:2]
        length = min(self.seconds // TICK_S, ticks)
        first = chance.randrange(ticks - length + 1)
        return Window(chance.randrange(hosts), first, first + length)

    def text(self, window: Window, start: datetime) -> str:
        """Its SQL in DuckDB's dialect, but for `{rows}`."""
        ends = (start + timedelta(seconds=TICK_S * tick) for tick in (window.first, window.end))
        since, until = (f"TIMESTAMPTZ '{end:%Y-%m-%d %H:%M:%S}+00:00'" for end in ends)
        between = f'"at" >= {since} AND "at" < {until}'
        return self.sql.replace("{between}", between).replace("{host}", quoted(name_of(window.host)))

    def truth(self, values: Values, window: Window, start: datetime) -> Answer:
        """The answer from what was measured."""
        groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for host in self.picks(window.host, values.shape[1]):
            for metric in self.metrics:
                seen = values[window.first : window.end, host, METRICS.index(metric)].tolist()
                for tick, value in enumerate(seen, window.first):
                    at = start + timedelta(seconds=TICK_S * tick // self.width_s * self.width_s)
                    groups[self.key(at, host, metric)].append(value)
        return sorted((*key, self.fold(seen)) for key, seen in groups.items())


def greatest(values: list[int]) -> float:
    return float(max(values))


QUESTIONS: Final = (
    Question(
        "single-groupby-1-1-1",
        HOUR_S,
        """SELECT date_trunc('minute', "at") AS minute, max(value) AS most FROM {rows}
        WHERE node = {host} AND config_name = 'usage_user' AND {between} GROUP BY 1 ORDER BY 1""",
        lambda host, _hosts: [host],
        METRICS[:1],
        60,
        lambda at, _host, _metric: (at,),
        greatest,
    ),
    Question(
        "double-groupby-1",
        12 * HOUR_S,
        """SELECT date_trunc('hour', "at") AS hour, node, avg(value) AS mean FROM {rows}
        WHERE config_name = 'usage_user' AND {between} GROUP BY 1, 2 ORDER BY 1, 2""",
        lambda _host, hosts: list(range(hosts)),
        METRICS[:1],
        HOUR_S,
        lambda at, host, _metric: (at, name_of(host)),
        fmean,
    ),
    Question(
        "cpu-max-all-1",
        8 * HOUR_S,
        """SELECT date_trunc('hour', "at") AS hour, config_name, max(value) AS most FROM {rows}
        WHERE node = {host} AND {between} GROUP BY 1, 2 ORDER BY 1, 2""",
        lambda host, _hosts: [host],
        METRICS,
        HOUR_S,
        lambda at, _host, metric: (at, metric),
        greatest,
    ),
)

Side = Callable[[str], pa.Table]
"""One way to ask: takes the SQL with `{rows}` in it."""


def by_weft(lake: Path, sql: str) -> pa.Table:
    """As `weft sql` does, but for its process."""
    with Lake(lake) as asked:
        return asked.query(sql.format(rows=TABLE))


def by_duckdb(source: str, sql: str) -> pa.Table:
    with duckdb.connect(config=SETTINGS) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(sql.format(rows=source)).to_arrow_table()


def by_spark(spark: SparkSession, lake: Path, sql: str) -> pa.Table:
    """The table as a notebook opens it; the same SQL in Spark's words."""
    table(spark, lake, TABLE).createOrReplaceTempView("samples")
    return spark.sql(sql.replace('"', "`").replace("TIMESTAMPTZ", "TIMESTAMP").format(rows="samples")).toArrow()


def files_as_source(files: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(map(quoted, files))}])"


def write_plain(files: Sequence[str], target: Path) -> None:
    """Let DuckDB write the rows of these files as one Parquet file, in its own way."""
    with duckdb.connect(config=SETTINGS) as connection:
        connection.execute(f"COPY (FROM {files_as_source(files)}) TO {quoted(str(target))} (FORMAT parquet)")


def rows_of(answer: pa.Table) -> Answer:
    return [tuple(row.values()) for row in answer.to_pylist()]


class Sides(NamedTuple):
    """Who is asked, by name; the first one is ours."""

    ways: dict[str, Side]
    values: Values
    start: datetime

    def ask(self, question: Question, rounds: int) -> dict[str, list[float]]:
        """Seconds of each way in each round, in turns; the first round fills caches and does not count.

        ValueError if an answer is not what was measured.
        """
        chance = random.Random(f"{SEED} {question.name}")
        took: dict[str, list[float]] = {name: [] for name in self.ways}
        for number in range(rounds + 1):
            window = question.window(self.values.shape, chance)
            sql, truth = question.text(window, self.start), question.truth(self.values, window, self.start)
            names = list(self.ways)
            for name in names[number % len(names) :] + names[: number % len(names)]:
                began = time.perf_counter()
                answer = self.ways[name](sql)
                took[name].append(time.perf_counter() - began)
                if rows_of(answer) != truth:
                    raise ValueError(
                        f"{question.name}: {name} answers {rows_of(answer)[:3]} …, measured was {truth[:3]} …"
                    )
        return {name: seconds[1:] for name, seconds in took.items()}


def sides_of(lake: Path, files: Sequence[str], plain: Path, spark: SparkSession) -> dict[str, Side]:
    """All ways."""
    return {
        "weft sql": partial(by_weft, lake),
        "DuckDB, the same files": partial(by_duckdb, files_as_source(files)),
        "DuckDB, a file of its own": partial(by_duckdb, files_as_source([str(plain)])),
        "Spark, the same table": partial(by_spark, spark, lake),
    }


def compare(sides: Sides, rounds: int) -> None:
    """Print a row per question: medians, and how many times each way's time ours took."""
    first, *others = sides.ways
    print(f"| question | {first} ms | {' | '.join(f'{name} ms (ratio)' for name in others)} |")
    print(f"|---|--:|{'--:|' * len(others)}")
    for question in QUESTIONS:
        took = {name: 1000 * median(seconds) for name, seconds in sides.ask(question, rounds).items()}
        ours, *theirs = took.values()
        row = " | ".join(f"{other:.0f} ({ours / other:.2f})" for other in theirs)
        hours = min(question.seconds, TICK_S * len(sides.values)) / HOUR_S
        print(f"| {question.name}, {hours:.1f} h | {ours:.0f} | {row} |", flush=True)


def clock_midnight(days: int) -> datetime:
    """The beginning of the UTC day so many days ago."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)
