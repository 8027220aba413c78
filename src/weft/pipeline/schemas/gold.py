"""Tables of gold: what is made of silver, and corrected when silver is."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.table import POINT, WHO, Table, table_of


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
        ),
        partition,
    )


ROLLUP_1M: Final = _rollup("1m", "day")
ROLLUP_1H: Final = _rollup("1h", "month")
ROLLUP_1D: Final = _rollup("1d", "month")
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
    "How much of one origin's era of samples has arrived, and which numbers have not (PIP-060). Messages have no row "
    "here: what of them is not forwarded leaves holes, which are no loss.",
    (
        Column("stream", "string", "which stream"),
        Column("origin", "string", "who numbered it"),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("node", "string", "name of the node; its origin where no name was said"),
        Column("state", "string", "`complete`, `filling`, `missing`, `lost` or `silent`"),
        Column("first_sequence", "bigint", "always 1"),
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
