"""The tables of gold: made from silver, and corrected when silver changes."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.table import BATCH, DAY, POINT, SKETCH, WHO, Table, table_of


def _rollup(width: str, partition: str) -> Table:
    return table_of(
        f"gold.rollup_{width}",
        f"Calculated values of one series on one node in one window of {width}.",
        (
            *WHO,
            Column("series", "bigint", "key of the series"),
            Column("window_start", "timestamp", "start of the window"),
            Column("n", "bigint", "how many values"),
            Column("sum", "double", "their sum", optional=True),
            Column("sum_sq", "double", "sum of their squares", optional=True),
            Column("min", "double", "least value", optional=True),
            Column("max", "double", "greatest value", optional=True),
            Column("first", POINT, "earliest value by (at, era, sequence)", optional=True),
            Column("last", POINT, "latest value by (at, era, sequence)", optional=True),
            Column("resets", "bigint", "pairs without a result because a counter ran backwards"),
            Column(partition, "date", f"UTC {partition} of the window"),
            Column(
                "sketch",
                SKETCH,
                "distribution of the values; null: the window was folded by a version without sketches",
                optional=True,
            ),
        ),
        partition,
    )


ROLLUP_1M: Final = _rollup("1m", "day")
ROLLUP_1H: Final = _rollup("1h", "month")
ROLLUP_1D: Final = _rollup("1d", "month")
CORRECTIONS: Final = table_of(
    "gold.corrections",
    "A window of `gold.rollup_1h` that was published, and that late values have changed since (PIP-046).",
    (
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("window_start", "timestamp", "start of the window"),
        Column("n_before", "bigint", "values in it before; 0: the window did not exist"),
        Column("n_after", "bigint", "values in it after the change"),
        Column("mean_before", "double", "their mean", optional=True),
        Column("mean_after", "double", "their mean", optional=True),
        Column("batch", "bigint", "the last micro-batch that brought late values for it"),
    ),
)
ANOMALIES: Final = table_of(
    "gold.anomalies",
    "A part of an hour in which a series differed both from its last 24 hours and from the same hour of the last 7 days "
    "(PIP-055).",
    (
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("hour", "timestamp", "start of the hour that was judged"),
        Column("kind", "string", "`high`, `low`, `flat`, `missing` or `resets`"),
        Column("start", "timestamp", "start of its first window"),
        Column("until", "timestamp", "end of its last window"),
        Column("windows", "bigint", "how many minutes it lasts"),
        Column(
            "observed",
            "double",
            "the mean of a minute that is farthest off; for `missing` and `resets`: how many values or resets",
            optional=True,
        ),
        Column("expected_low", "double", "lower end of the usual range", optional=True),
        Column("expected_high", "double", "upper end of the usual range", optional=True),
        Column("score", "double", "distance from the usual; 6 is the end of the usual range", optional=True),
        Column("because", "string", "the finding in one sentence"),
        BATCH,
        DAY,
    ),
    "day",
)
LATEST: Final = table_of(
    "gold.latest",
    "The newest sample of a series on a node, and the newest calculated value.",
    (
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("origin", "string", "origin of the sample"),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("sequence", "bigint", "number of the sample"),
        Column("at", "timestamp", "time stamp of the origin"),
        Column("received", "timestamp", "when the first node received it"),
        Column("value", "double", "the raw value", optional=True),
        Column("base", "double", "the raw base", optional=True),
        Column("text", "string", "the value if it is text", optional=True),
        Column("result", "double", "the newest calculated value", optional=True),
        Column("result_at", "timestamp", "time stamp of that value", optional=True),
        Column("result_era", "bigint", "era of the later sample of that value", optional=True),
        Column("result_sequence", "bigint", "number of the later sample of that value", optional=True),
    ),
)
COMPLETENESS: Final = table_of(
    "gold.completeness",
    "How much of one era of an origin has arrived in a stream, and which numbers have not (PIP-060). Of messages only those "
    "arrive that are forwarded: so none of their numbers counts as missing, and their state is `sparse`.",
    (
        Column("stream", "string", "name of the stream"),
        Column("origin", "string", "who numbered the records"),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("node", "string", "name of the node; its origin if it has no name"),
        Column("state", "string", "`complete`, `filling`, `missing`, `lost`, `silent` or `sparse` (docs/as-of.md)"),
        Column(
            "first_sequence",
            "bigint",
            "the first number that is expected: 1; for writes of the configuration, one more than the last of the root before",
        ),
        Column("highest_known", "bigint", "the highest number known to exist"),
        Column("known_by", "string", "how that is known: `received`, `era-link` or `lost`"),
        Column("expected", "bigint", "received + lost + forgotten + missing (PIP-061)"),
        Column("received", "bigint", "numbers that are in silver or in quarantine"),
        Column("silver_rows", "bigint", "rows in silver"),
        Column("quarantined", "bigint", "rows in quarantine"),
        Column("duplicates", "bigint", "rows that repeated a number"),
        Column("lost", "bigint", "numbers announced lost that never came"),
        Column(
            "forgotten", "bigint", "numbers dropped by a filter or removed on purpose; they are in `lost_ranges` too"
        ),
        Column("missing", "bigint", "numbers that have not arrived, without an announced loss"),
        Column(
            "missing_ranges",
            "array<struct<first:bigint,last:bigint,since:timestamp>>",
            "the missing numbers, at most 1,000 ranges",
        ),
        Column(
            "lost_ranges",
            "array<struct<first:bigint,last:bigint,why:string>>",
            "lost and forgotten numbers with the reason, at most 1,000 ranges",
        ),
        Column("more", "boolean", "true: there are more missing ranges than `missing_ranges` has"),
        Column("first_at", "timestamp", "earliest time stamp", optional=True),
        Column("last_at", "timestamp", "latest time stamp", optional=True),
        Column("last_received", "timestamp", "latest arrival", optional=True),
        Column("lag_ms", "bigint", "last_received minus last_at", optional=True),
        Column("complete_upto", "bigint", "n: all numbers of 1..n have arrived or are announced lost"),
        Column("closed", "boolean", "true: the era has ended, and its last number is known"),
        Column("upto", "bigint", "micro-batch up to which this row is computed"),
    ),
)
