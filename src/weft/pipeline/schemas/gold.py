"""Tables of gold: made from silver, and corrected when silver changes."""

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
            Column("n", "bigint", "values with a result"),
            Column("sum", "double", "their sum", optional=True),
            Column("sum_sq", "double", "sum of their squares", optional=True),
            Column("min", "double", "the least", optional=True),
            Column("max", "double", "the greatest", optional=True),
            Column("first", POINT, "the earliest by (at, era, sequence)", optional=True),
            Column("last", POINT, "the latest by (at, era, sequence)", optional=True),
            Column("resets", "bigint", "pairs without a result because a counter ran backwards"),
            Column(partition, "date", f"UTC {partition} of the window"),
            Column("sketch", SKETCH, "how the values are spread; null: folded before there were any", optional=True),
        ),
        partition,
    )


ROLLUP_1M: Final = _rollup("1m", "day")
ROLLUP_1H: Final = _rollup("1h", "month")
ROLLUP_1D: Final = _rollup("1d", "month")
CORRECTIONS: Final = table_of(
    "gold.corrections",
    "A window of `gold.rollup_1h` that everybody could have read, and that late values have changed since (PIP-046).",
    (
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("window_start", "timestamp", "start of the window"),
        Column("n_before", "bigint", "values that it held; 0: there was no such row"),
        Column("n_after", "bigint", "values that it holds since"),
        Column("mean_before", "double", "their mean", optional=True),
        Column("mean_after", "double", "their mean", optional=True),
        Column("batch", "bigint", "the last micro-batch that brought late values of it"),
    ),
)
ANOMALIES: Final = table_of(
    "gold.anomalies",
    "A stretch of an hour in which a series was not as it was in the 24 hours before, nor in the same hour of the last 7 "
    "days (PIP-055).",
    (
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("hour", "timestamp", "start of the hour that was judged"),
        Column("kind", "string", "`high`, `low`, `flat`, `missing` or `resets`"),
        Column("start", "timestamp", "start of its first window"),
        Column("until", "timestamp", "end of its last window"),
        Column("windows", "bigint", "windows of a minute that it is made of"),
        Column(
            "observed", "double", "the mean that is farthest off; of `missing` and `resets`: how many", optional=True
        ),
        Column("expected_low", "double", "what would have been usual, from", optional=True),
        Column("expected_high", "double", "what would have been usual, to", optional=True),
        Column("score", "double", "how far off: 6 is the edge of what is usual", optional=True),
        Column("because", "string", "the same in one sentence"),
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
        Column("origin", "string", "who numbered the sample"),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("sequence", "bigint", "number of the sample"),
        Column("at", "timestamp", "the origin's stamp"),
        Column("received", "timestamp", "stamp of the first node that received it"),
        Column("value", "double", "the raw value", optional=True),
        Column("base", "double", "the raw base", optional=True),
        Column("text", "string", "the value if it is text", optional=True),
        Column("result", "double", "the newest calculated value", optional=True),
        Column("result_at", "timestamp", "its stamp", optional=True),
        Column("result_era", "bigint", "era of its later sample", optional=True),
        Column("result_sequence", "bigint", "number of its later sample", optional=True),
    ),
)
COMPLETENESS: Final = table_of(
    "gold.completeness",
    "How much of one origin's era has arrived in a stream, and which numbers have not (PIP-060). Numbers of messages "
    "have holes by nature, since not all are forwarded: none of them is ever called missing, and their state is `sparse`.",
    (
        Column("stream", "string", "which stream"),
        Column("origin", "string", "who numbered it"),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("node", "string", "name of the node; its origin where no name was said"),
        Column("state", "string", "`complete`, `filling`, `missing`, `lost` or `silent`; `sparse`: nobody can say"),
        Column(
            "first_sequence",
            "bigint",
            "the first number that there must be: 1; of writes of the configuration, which go on from root to root, one more",
        ),
        Column("highest_known", "bigint", "the highest number known to exist"),
        Column("known_by", "string", "how: `received`, `era-link`, `lost`"),
        Column("expected", "bigint", "received + lost + forgotten + missing (PIP-061)"),
        Column("received", "bigint", "numbers that are in silver or in quarantine"),
        Column("silver_rows", "bigint", "rows in silver"),
        Column("quarantined", "bigint", "rows in quarantine"),
        Column("duplicates", "bigint", "rows that were there already"),
        Column("lost", "bigint", "numbers announced lost that never came"),
        Column("forgotten", "bigint", "numbers taken out on purpose, by a filter: `lost_ranges` names them too"),
        Column("missing", "bigint", "numbers that nobody explains"),
        Column("missing_ranges", "array<struct<first:bigint,last:bigint,since:timestamp>>", "at most 1,000 of them"),
        Column("lost_ranges", "array<struct<first:bigint,last:bigint,why:string>>", "announced losses, and why"),
        Column("more", "boolean", "there are more missing ranges than are shown"),
        Column("first_at", "timestamp", "earliest stamp", optional=True),
        Column("last_at", "timestamp", "latest stamp", optional=True),
        Column("last_received", "timestamp", "latest arrival", optional=True),
        Column("lag_ms", "bigint", "last_received minus last_at", optional=True),
        Column("complete_upto", "bigint", "all of 1..n have arrived or are announced lost"),
        Column("closed", "boolean", "the era is over: an era link names its last number"),
        Column("upto", "bigint", "micro-batch up to which this holds"),
    ),
)
