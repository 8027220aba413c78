"""The tables in which the pipeline keeps what it needs itself."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.table import BATCH, ID, WHO, table_of

EDGES: Final = table_of(
    "meta.edges",
    "First or last sample of a series in a contiguous range of its origin's numbers; later samples form pairs with it (PIP-043).",
    (
        *ID,
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("type", "string", "how a value is calculated"),
        Column("at_ns", "bigint", "time stamp of the origin, nanoseconds since 1970 UTC"),
        Column("value", "double", "the raw value"),
        Column("value_long", "bigint", "the raw value, exactly, if it is an integer", optional=True),
        Column("base", "double", "the raw base", optional=True),
        Column("base_long", "bigint", "the raw base, exactly, if it is an integer", optional=True),
        Column("island", "bigint", "first sequence of the contiguous range"),
        Column("lost", "bigint", "how many earlier sequences of the range have no sample"),
    ),
)
TWINS: Final = table_of(
    "meta.twins",
    "A row of an imported log that repeats a sample which silver has under another number: a duplicate (PIP-097).",
    (
        *ID,
        Column("of_era", "bigint", "era of the row that silver has", optional=True),
        Column("of_sequence", "bigint", "number of that row"),
        Column("said", "bigint", "hash of the content of the row, by which a changed line is noticed"),
        Column("batch", "bigint", "micro-batch that took the row"),
    ),
)
PROGRESS: Final = table_of(
    "meta.progress",
    "One micro-batch: how many rows came in, where they went, and how long it took.",
    (
        Column("job", "string", "name of the job"),
        Column("batch", "bigint", "number of the batch"),
        Column("at", "timestamp", "when the batch was done"),
        Column("rows_in", "bigint", "rows in its segments"),
        Column("rows_silver", "bigint", "rows that silver took"),
        Column("rows_duplicate", "bigint", "rows that repeated a number"),
        Column("rows_quarantine", "bigint", "rows that silver refused"),
        Column("rows_values", "bigint", "calculated values"),
        Column("segments", "bigint", "segments that it took, whole or in part"),
        Column("freshness_ms", "bigint", "time from the newest arrival in the batch to its commit", optional=True),
        Column("seconds", "double", "how long the whole batch took"),
        Column("steps", "string", "seconds per step, as JSON"),
        Column("offset", "string", "offset at which the batch ended"),
        Column("vec", "string", "BLAKE2b-128 of the coverage after the batch"),
        Column("run", "bigint", "the driver, by the epoch of its lease", optional=True),
        Column("version", "string", "version of the program", optional=True),
        Column("missing", "bigint", "numbers that were missing after the batch", optional=True),
        Column("behind", "bigint", "segments that existed after the batch and were not taken yet", optional=True),
    ),
)
LATE: Final = table_of(
    "meta.late",
    "How many samples of an origin, a day and a micro-batch were late: over an hour older than the newest of their node "
    "(PIP-046).",
    (
        Column("origin", "string", "who numbered them"),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("node", "string", "name of the node"),
        Column("late_day", "date", "UTC day of their time stamps"),
        Column("late", "bigint", "how many"),
        Column("first_at", "timestamp", "earliest time stamp"),
        Column("last_at", "timestamp", "latest time stamp"),
        Column("newest", "timestamp", "newest time stamp of the node up to that micro-batch"),
        BATCH,
    ),
)
FORGOTTEN: Final = table_of(
    "meta.forgotten",
    "Rows that were removed from a table on purpose: because of their age, or because somebody asked for it (LAK-037). For "
    "tables of a stream, a row is a range of numbers; for other tables, a row is one removal.",
    (
        Column("number", "bigint", "number of the removal; each is one commit to one table"),
        Column("at", "timestamp", "when"),
        Column("by", "string", "who removed them: user and host of the process"),
        Column("why", "string", "the reason: a person's text, or the age"),
        Column("what", "string", "which rows: options of the command, or the setting of `[lake.keep]`"),
        Column("table", "string", "name of the table, like `silver.samples`"),
        Column("stream", "string", "stream of the table; null: the table belongs to no stream", optional=True),
        Column(
            "origin",
            "string",
            "who numbered the rows; null: they had no number, or the rows of this table have none",
            optional=True,
        ),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("first", "bigint", "first number of the range", optional=True),
        Column("last", "bigint", "last number of the range", optional=True),
        Column("rows", "bigint", "how many rows were removed"),
    ),
)
