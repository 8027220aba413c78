"""`weft lake quarantine`: rows that silver refused, why, and how they get into the tables after all (PIP-033)."""

import json as json_module
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

from weft.base.errors import UserError
from weft.cli.kit.lines import print_compact
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.lake.layout import Layout
    from weft.pipeline.job import Job

app = App(name="quarantine", help="Rows that silver refused: ls, show, retry.")

Where = Annotated[Path | None, Parameter(name="--lake")]
"""The lake's directory; default: $WEFT_LAKE, else ./lake."""
SUMS: Final = """
SELECT stream, reason, sum(rows)::BIGINT AS rows, max(last_received) AS last_received, count(DISTINCT batch) AS batches
FROM meta.quality GROUP BY stream, reason ORDER BY stream, rows DESC, reason
"""
ROWS: Final = (
    "SELECT * FROM quarantine.{stream} WHERE reason = {reason} ORDER BY received_ns DESC, sequence LIMIT {limit}"
)
IMPORTED: Final = (
    "SELECT count(*) AS n FROM quarantine.{stream} WHERE reason = {reason} AND attributes['dataset'] IS NOT NULL"
)
CUT: Final = 160  # the most characters of a row that are printed
USUAL: Final = ("origin", "era", "sequence", "reason", "because")


@app.command
def ls(*, lake: Where = None, json: Flag = False) -> None:
    """List how many rows of each stream are in quarantine, by reason.

    `weft lake quarantine ls`

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        json: a JSON array.
    """
    from weft.cli.lake import open_layout
    from weft.pipeline.sql import Lake
    from weft.pipeline.tables import STAGES

    with Lake(open_layout(lake).root) as asked:
        found = asked.query(SUMS).to_pylist() if STAGES["samples"].quarantine in asked.tables() else []
    if json:
        print_compact(found)
        return
    print(f"{'stream':14} {'reason':24} {'rows':>12} {'batches':>8}  last received")
    for row in found:
        print(f"{row['stream']:14} {row['reason']:24} {row['rows']:12,} {row['batches']:8,}  {_instant(row)}")


@app.command
def show(reason: str, /, *, stream: str = "samples", lake: Where = None, limit: int = 20, json: Flag = False) -> None:
    """Show the newest rows that were refused for a reason, with their contents.

    `weft lake quarantine show future --limit 5`

    Args:
        reason: as `ls` shows it: future, rule:hot, …
        stream: the stream of the rows.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        limit: at most so many rows.
        json: a JSON object per row.
    """
    from weft.cli.lake import open_layout
    from weft.pipeline.scan import quoted
    from weft.pipeline.sql import Lake

    stages = _stages(stream)
    with Lake(open_layout(lake).root) as asked:
        is_there = stages.quarantine in asked.tables()
        question = ROWS.format(stream=stream, reason=quoted(reason), limit=max(0, limit))
        rows = asked.query(question).to_pylist() if is_there else []
    if not rows and not json:
        print(f"no row of {stream} was refused as {reason}: weft lake quarantine ls")
    for row in rows:
        print(json_module.dumps(row, default=_plain, sort_keys=True) if json else _line(row))


@app.command
def retry(
    reason: str,
    /,
    *,
    stream: str = "samples",
    lake: Where = None,
    dry_run: Flag = False,
    json: Flag = False,
    heap_mb: int = 512,
) -> None:
    """Judge refused rows again, with this version and the rules in `lake.toml`; rows that pass go to silver.

    `weft lake quarantine retry rule:hot`, after the rule was removed from lake.toml. No driver may run meanwhile (exit
    status 75). Samples that come back are flagged after-lost: no rates are computed between them and their neighbours,
    because those were computed without them.

    Args:
        reason: as `ls` shows it.
        stream: the stream of the rows.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        dry_run: only say what would come back.
        json: the sums as a JSON object.
        heap_mb: heap of the JVM in MiB.
    """
    from weft.cli.lake import open_layout
    from weft.pipeline.lease import Lease
    from weft.pipeline.rules import rules_of, verify
    from weft.pipeline.runner import LEASE
    from weft.pipeline.session import Options, session
    from weft.pipeline.settings import settings_of

    _stages(stream)
    os.umask(0o077)
    layout = open_layout(lake)
    layout = type(layout)(layout.root.absolute())
    settings = settings_of(layout)
    rules = rules_of(settings)
    with Lease(layout, LEASE) as lease:
        options = Options(heap_mb=heap_mb, log=layout.runs() / "spark.log", settings=settings.spark_texts)
        spark = session(options._replace(inherited=(lease.descriptor,)))
        try:
            verify(spark, rules)
            retried = _retried(_job(layout, spark, lease.epoch, stream, rules), reason, is_dry=dry_run)
        finally:
            spark.stop()
    if json:
        print_compact(retried)
        return
    verb = "would come" if dry_run else "came"
    print(f"{retried['held']:,} rows of {stream} refused as {reason}; {retried['returned']:,} {verb} back")
    for why, rows in retried["still"].items():
        print(f"  {rows:,} are refused as {why}")
    if stays := _imported(layout, stream, reason):
        print(f"  {stays:,} of imported logs stay: import these lines again, as a dataset of their own")


def _imported(layout: "Layout", stream: str, reason: str) -> int:
    """How many rows with this reason belong to an imported dataset."""
    from weft.pipeline.scan import quoted
    from weft.pipeline.sql import Lake

    with Lake(layout.root) as asked:
        is_there = _stages(stream).quarantine in asked.tables()
        question = IMPORTED.format(stream=stream, reason=quoted(reason))
        return asked.query(question)["n"][0].as_py() if is_there else 0


def _retried(job: "Job", reason: str, *, is_dry: bool) -> dict[str, Any]:
    from weft.pipeline import eventlog, releasing

    found = releasing.look(job, reason)
    rows = sum(ranges.count for _, ranges in found.passing)
    if rows and not is_dry:
        releasing.plan(job, reason, found.passing)
        done = job.take()
        rows = done.outcome.silver if done else 0
        job.fold()
        eventlog.note(job.lake, "returned", stream=job.kind.stream, reason=reason, rows=rows)
    return {"held": found.held, "returned": rows, "still": found.reasons}


def _job(layout: "Layout", spark: "SparkSession", epoch: int, stream: str, rules: Any) -> "Job":
    from weft.pipeline.job import Job, JobOptions, SamplesJob
    from weft.pipeline.kinds import KINDS

    options = JobOptions(rules=rules)
    if stream == "samples":
        return SamplesJob(layout, spark, epoch, options)
    return Job(KINDS[stream], layout, spark, epoch, options)


def _stages(stream: str) -> Any:
    from weft.pipeline.tables import STAGES

    if stream not in STAGES:
        raise UserError("no-stream", f"there is no stream {stream!r}", ", ".join(STAGES))
    return STAGES[stream]


def _line(row: dict[str, Any]) -> str:
    """One row for people, without escape sequences."""
    at = datetime.fromtimestamp((row["received_ns"] or 0) / 1e9, UTC)
    who = "/".join(str(row[name]) for name in ("origin", "era", "sequence"))
    more = {
        name: value for name, value in row.items() if value is not None and name not in (*USUAL, "received_ns", "day")
    }
    details = json_module.dumps(more, default=_plain, sort_keys=True)
    return clean(f"{at:%Y-%m-%d %H:%M:%S} {who}  {row['because']}  {details}"[:CUT])


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _instant(row: dict[str, Any]) -> str:
    last = row["last_received"]
    return "-" if last is None else f"{last:%Y-%m-%d %H:%M:%S}"
