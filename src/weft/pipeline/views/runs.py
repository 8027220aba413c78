"""The pipeline's reports about itself: one row per driver, and refused rows by reason."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.meta import PROGRESS
from weft.pipeline.schemas.stages import STAGES
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.view import View

RUNS: Final = table_of(
    "meta.runs",
    "One driver, from its first batch to its last: what it did, and how fresh its tables were. Batches from before drivers "
    "were recorded are one row without a number. A view over `meta.progress`, for `weft sql`; it has no files.",
    (
        Column("run", "bigint", "the driver, by the epoch of its lease", optional=True),
        Column("version", "string", "version of the program", optional=True),
        Column("jobs", "array<string>", "streams of its batches"),
        Column("first_at", "timestamp", "end of its first batch"),
        Column("last_at", "timestamp", "end of its last batch"),
        Column("batches", "bigint", "how many batches, of all jobs"),
        Column("rows_in", "bigint", "rows in its segments"),
        Column("rows_silver", "bigint", "rows that silver took"),
        Column("rows_duplicate", "bigint", "rows that repeated a number"),
        Column("rows_quarantine", "bigint", "rows that silver refused, minus rows that were released later"),
        Column("seconds", "double", "how long all batches together took"),
        Column(
            "freshness_p50_ms", "double", "median time from the newest arrival in a batch to its commit", optional=True
        ),
        Column("freshness_p95_ms", "double", "the same time, which 95 % of the batches did not exceed", optional=True),
    ),
)
_RUNS: Final = """
SELECT run, max(version) AS version, list_sort(list(DISTINCT job)) AS jobs, min("at") AS first_at, max("at") AS last_at,
       count(*) AS batches, sum(rows_in)::BIGINT AS rows_in, sum(rows_silver)::BIGINT AS rows_silver,
       sum(rows_duplicate)::BIGINT AS rows_duplicate, sum(rows_quarantine)::BIGINT AS rows_quarantine,
       sum(seconds) AS seconds, quantile_cont(freshness_ms, 0.5) AS freshness_p50_ms,
       quantile_cont(freshness_ms, 0.95) AS freshness_p95_ms
FROM {meta_progress} GROUP BY run
"""
QUALITY: Final = table_of(
    "meta.quality",
    "Rows in quarantine, by stream, batch and reason. A view over the tables of quarantine, for `weft sql`; it has no files.",
    (
        Column("stream", "string", "name of the stream"),
        Column("batch", "bigint", "micro-batch that refused them"),
        Column("reason", "string", "why they were refused (PIP-031)"),
        Column("rows", "bigint", "how many rows"),
        Column("origins", "bigint", "how many origins they have"),
        Column("first_received", "timestamp", "when the first of them arrived", optional=True),
        Column("last_received", "timestamp", "when the last of them arrived", optional=True),
    ),
)
QUARANTINES: Final = tuple(stages.quarantine for stages in STAGES.values())
_QUALITY: Final = """
SELECT '@STREAM' AS stream, batch, reason, count(*) AS rows, count(DISTINCT origin) AS origins,
       min(make_timestamptz(received_ns // 1000)) AS first_received,
       max(make_timestamptz(received_ns // 1000)) AS last_received
FROM {quarantine_@STREAM} GROUP BY batch, reason
"""
VIEWS: Final = (
    View(RUNS, (PROGRESS,), _RUNS),
    View(
        QUALITY,
        QUARANTINES,
        " UNION ALL ".join(_QUALITY.replace("@STREAM", table.name) for table in QUARANTINES),
    ),
)
