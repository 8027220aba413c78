"""The pipeline's own tables."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.table import BATCH, ID, WHO, table_of

EDGES: Final = table_of(
    "meta.edges",
    "First or last sample of a series in a contiguous range of its origin: what a late neighbour needs (PIP-043).",
    (
        *ID,
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("type", "string", "how two samples calculate"),
        Column("at_ns", "bigint", "the origin's stamp, nanoseconds"),
        Column("value", "double", "the raw value"),
        Column("value_long", "bigint", "the raw value, exactly, if it is an integer", optional=True),
        Column("base", "double", "the raw base", optional=True),
        Column("base_long", "bigint", "the raw base, exactly, if it is an integer", optional=True),
        Column("island", "bigint", "first sequence of the contiguous range"),
        Column("lost", "bigint", "sequences of the range before this one that hold no sample"),
    ),
)
TWINS: Final = table_of(
    "meta.twins",
    "A row of an imported log that tells of a sample which silver has under another number: a duplicate (PIP-097).",
    (
        *ID,
        Column("of_era", "bigint", "era of the row that silver has", optional=True),
        Column("of_sequence", "bigint", "its number"),
        Column("said", "bigint", "hash of what the row says, to see that its line has changed"),
        Column("batch", "bigint", "micro-batch that took it"),
    ),
)
PROGRESS: Final = table_of(
    "meta.progress",
    "One micro-batch: what came in, where it went, and how long it took.",
    (
        Column("job", "string", "which job"),
        Column("batch", "bigint", "number of the batch"),
        Column("at", "timestamp", "when it was done"),
        Column("rows_in", "bigint", "rows of the segments"),
        Column("rows_silver", "bigint", "rows that silver took"),
        Column("rows_duplicate", "bigint", "rows that were there already"),
        Column("rows_quarantine", "bigint", "rows that silver refused"),
        Column("rows_values", "bigint", "calculated values"),
        Column("segments", "bigint", "segments, whole or in part"),
        Column("freshness_ms", "bigint", "from the newest arrival in the batch to its commit", optional=True),
        Column("seconds", "double", "of the whole batch"),
        Column("steps", "string", "seconds per step, as JSON"),
        Column("offset", "string", "Spark's offset behind the batch"),
        Column("vec", "string", "BLAKE2b-128 of the coverage behind the batch"),
        Column("run", "bigint", "which driver: the epoch of its lease", optional=True),
        Column("version", "string", "which version of the program", optional=True),
        Column("missing", "bigint", "numbers that were missing behind the batch", optional=True),
        Column("behind", "bigint", "segments that existed and were not taken yet", optional=True),
    ),
)
LATE: Final = table_of(
    "meta.late",
    "Late samples of an origin, a day and a micro-batch: over an hour behind the newest of their node (PIP-046).",
    (
        Column("origin", "string", "who numbered them"),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("node", "string", "name of the node"),
        Column("late_day", "date", "UTC day of their stamps"),
        Column("late", "bigint", "how many"),
        Column("first_at", "timestamp", "earliest stamp"),
        Column("last_at", "timestamp", "latest stamp"),
        Column("newest", "timestamp", "newest stamp of the node as of that micro-batch"),
        BATCH,
    ),
)
FORGOTTEN: Final = table_of(
    "meta.forgotten",
    "Rows that were removed from a table on purpose: because they were old, or because somebody said so (LAK-037). Of the "
    "tables of a stream a row here is a range of numbers; of others it is what one removal has taken.",
    (
        Column("number", "bigint", "number of the removal; one commit of one table each"),
        Column("at", "timestamp", "when"),
        Column("by", "string", "who: user and host; `weft lake run` if it was time"),
        Column("why", "string", "the reason that was given"),
        Column("what", "string", "what was chosen, as words of the command"),
        Column("table", "string", "which table, as `silver.samples`"),
        Column("stream", "string", "its stream; null: the table belongs to none", optional=True),
        Column(
            "origin",
            "string",
            "who numbered the rows; null: they had no number, or the table is not by numbers",
            optional=True,
        ),
        Column("era", "bigint", "start of the origin", optional=True),
        Column("first", "bigint", "first number of the range", optional=True),
        Column("last", "bigint", "last number of the range", optional=True),
        Column("rows", "bigint", "rows that are gone"),
    ),
)
