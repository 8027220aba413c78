"""`weft lake anomalies`: which series behaved unusually, and why it is thought so (PIP-055)."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.home import home_of
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean

HEAP_MB: Final = 512
ASKED: Final = """
SELECT start, until, kind, node, config_name, labels, because, score, observed, expected_low, expected_high, series
FROM gold.anomalies LEFT JOIN (SELECT DISTINCT ON (series) series, config_name, labels FROM silver.series) USING (series)
WHERE start >= TIMESTAMPTZ '{since}' ORDER BY start DESC, score DESC NULLS LAST, node, series, kind
"""


def anomalies(
    *,
    lake: Annotated[Path | None, Parameter(name="--lake")] = None,
    since: date | None = None,
    judge: Flag = False,
    json: Flag = False,
    limit: int = 200,
    heap_mb: int = HEAP_MB,
) -> None:
    """List series that behaved neither as in the 24 hours before nor as in the same hour of the last 7 days, newest first.

    The driver judges new hours every ten minutes. `weft lake anomalies --judge --since 2026-11-01` judges again from that
    day on, after late data or changed mutes; it needs the lake for itself.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        since: from this UTC day on; default: all findings, and with --judge only the new hours.
        judge: judge now, with Spark.
        json: one JSON array, with all numbers.
        limit: show at most so many rows; --json gives all.
        heap_mb: heap of the JVM in MiB, with --judge.
    """
    from weft.lake.arrow import without

    home = home_of(lake)
    begin = datetime(since.year, since.month, since.day, tzinfo=UTC) if since else None
    if judge:
        _judge(home, begin, heap_mb)
    with without("pandas"):
        import pyarrow.dataset  # noqa: F401  # imported early, because its import looks for pandas
    from weft.cli.tables import print_json
    from weft.pipeline.sql import Lake

    with Lake(home) as asked:
        if "gold.anomalies" not in {table.full_name for table in asked.tables()}:
            raise UserError("no-table", "this lake has no gold.anomalies yet", "weft lake run, which makes it")
        rows = asked.query(ASKED.format(since=begin or datetime(1, 1, 1, tzinfo=UTC)), None if json else limit)
    if json:
        print_json(rows)
        return
    for row in rows.to_pylist():
        print(clean(_line(row)))
    if not rows.num_rows:
        print("nothing is odd")


def _line(row: dict[str, Any]) -> str:
    """One finding in one line: when, what, where, why."""
    labels = ", ".join(f"{name}={value}" for name, value in row["labels"] or ())
    series = f"{row['config_name'] or row['series']}{{{labels}}}" if labels else row["config_name"] or row["series"]
    when = f"{row['start']:%Y-%m-%d %H:%M} to {row['until']:%H:%M}"
    return f"{when}  {row['kind']:8} {row['node']} {series}: {row['because']}"


def _judge(home: Path, since: datetime | None, heap_mb: int) -> None:
    """Judge as the driver, so that no other one may run."""
    from weft.lake.layout import Layout
    from weft.pipeline.job import JobOptions, SamplesJob
    from weft.pipeline.lease import Lease
    from weft.pipeline.session import Options, session
    from weft.pipeline.settings import settings_of

    layout = Layout(home.absolute())
    if not layout.lake_json.exists():
        raise UserError("no-lake", f"{home} is not a lake", "--lake DIR, the directory that the root drains into")
    settings = settings_of(layout)
    with Lease(layout, "samples") as lease:
        options = Options(heap_mb=heap_mb, log=layout.runs() / "spark.log", inherited=(lease.descriptor,))
        spark = session(options._replace(settings=settings.spark_texts))
        try:
            job = SamplesJob(layout, spark, lease.epoch, JobOptions(mutes=settings.mute))
            job.fold_if_behind()
            job.judge(since)
        finally:
            spark.stop()
