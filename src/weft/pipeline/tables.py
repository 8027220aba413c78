"""Every table that the pipeline writes: its columns, its partition, and what its rows are (section 4.1).

A table's schema is data: Spark's and Delta's schemas, documentation and the views of `weft sql` are made from it.
Columns are only ever added, nullable, at the end (LAK-036).
"""

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.lake.schemas import BRONZE, Column, Schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

STATISTICS_COLUMNS: Final = 12
"""How many leading columns have min, max and null count in the Delta log (LAK-031)."""


class Table(NamedTuple):
    """A table of the lake."""

    layer: str
    name: str
    schema: Schema
    grain: str
    """What one row is, in one sentence."""
    partition: str | None = None
    """The partition column, the last of the schema; None: the table is small."""

    @property
    def full_name(self) -> str:
        """As people write it: `silver.samples`."""
        return f"{self.layer}.{self.name}"

    def spark(self) -> "StructType":
        """The schema for Spark, partition column included. Needs a running session."""
        return _spark(self.schema.ddl())

    def file_columns(self) -> tuple[str, ...]:
        """What stands in the files: all but the partition column."""
        return tuple(name for name in self.schema.names if name != self.partition)

    def statistics(self) -> frozenset[str]:
        """Columns whose range the Delta log knows: the leading ones, and the batch, by which folds find what is new."""
        return frozenset((*self.file_columns()[:STATISTICS_COLUMNS], "batch"))


@cache
def _spark(ddl: str) -> "StructType":
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType), ddl
    return schema


def _table(full_name: str, grain: str, columns: tuple[Column, ...], partition: str | None = None) -> Table:
    layer, _, name = full_name.partition(".")
    return Table(layer, name, Schema(full_name, columns), grain, partition)


_ID: Final = (
    Column("origin", "string", "who numbered it: node UUID as 32 hex, or a name"),
    Column("era", "bigint", "start of the origin, microseconds since 1970", optional=True),
    Column("sequence", "bigint", "number within origin and era, from 1, without holes"),
)
_WHO: Final = (
    Column("node", "string", "name of the node; its origin where no name was said"),
    Column("group", "string", "group of the node", optional=True),
)
_DEFINITION: Final = (
    Column("config_name", "string", "name of the metric in the configuration"),
    Column("detail", "string", "what is measured"),
    Column("type", "string", "how two samples calculate: basic, delta, rate, average, percent"),
    Column("param", "string", "parameter of the metric, often empty"),
    Column("labels", "map<string,string>", "labels of the series"),
)
_BATCH: Final = Column("batch", "bigint", "micro-batch that wrote it")
_DAY: Final = Column("day", "date", "UTC day of `at`")
_POINT: Final = "struct<at:timestamp,era:bigint,sequence:bigint,value:double>"


def _bronze(stream: str) -> Table:
    grain = "A row as it was received; duplicates and bad rows included."
    return Table("bronze", stream, BRONZE[stream], grain, "day")


def _quarantine(stream: str) -> Table:
    *kept, day = BRONZE[stream].columns
    return _table(
        f"quarantine.{stream}",
        "A row that silver refused, with the reason; everything of bronze is kept.",
        (
            *kept,
            Column("reason", "string", "why it is here (PIP-031)"),
            Column("because", "string", "the reason with the numbers of this row"),
            day,
        ),
        "day",
    )


BRONZE_SAMPLES: Final = _bronze("samples")
BRONZE_MESSAGES: Final = _bronze("messages")
BRONZE_EVENTS: Final = _bronze("events")
BRONZE_STORE: Final = _bronze("store")
BRONZE_CATALOG: Final = _bronze("catalog")
BRONZE_LOGS: Final = _bronze("logs")
BRONZE_DOCUMENTS: Final = _bronze("documents")
BRONZE_CONFIGURATION: Final = _bronze("configuration")
QUARANTINE: Final = _quarantine("samples")
QUARANTINE_MESSAGES: Final = _quarantine("messages")
QUARANTINE_EVENTS: Final = _quarantine("events")
QUARANTINE_STORE: Final = _quarantine("store")
QUARANTINE_CATALOG: Final = _quarantine("catalog")
QUARANTINE_LOGS: Final = _quarantine("logs")
QUARANTINE_DOCUMENTS: Final = _quarantine("documents")
QUARANTINE_CONFIGURATION: Final = _quarantine("configuration")
SAMPLES: Final = _table(
    "silver.samples",
    "One sample that was taken, exactly once.",
    (
        *_ID,
        *_WHO,
        Column("series", "bigint", "key of the series"),
        Column("at", "timestamp", "the origin's stamp"),
        Column("value", "double", "the raw value", optional=True),
        Column("value_long", "bigint", "the raw value, exactly, if it is an integer", optional=True),
        Column("base", "double", "the raw base", optional=True),
        Column("base_long", "bigint", "the raw base, exactly, if it is an integer", optional=True),
        Column("received", "timestamp", "stamp of the first node that received it"),
        *_DEFINITION,
        Column("text", "string", "the value if it is text", optional=True),
        Column("at_ns", "bigint", "the origin's stamp, nanoseconds since 1970 UTC"),
        Column("delay_ms", "bigint", "received minus at"),
        Column("config_number", "bigint", "number of the configuration that asked for it", optional=True),
        Column("flags", "array<string>", "`volatile`, `step`, `after-lost`, `rule:<name>`"),
        _BATCH,
        _DAY,
    ),
    "day",
)
MESSAGES: Final = _table(
    "silver.messages",
    "One message that the root's journal has taken, exactly once. Numbers of an origin have holes: what was not "
    "forwarded is not here, and is not missing.",
    (
        *_ID,
        *_WHO,
        Column("mid", "string", "its identity as text: origin/era/sequence"),
        Column("type", "string", "type of the message"),
        Column("at", "timestamp", "the origin's stamp when it accepted the message"),
        Column("received", "timestamp", "when the root's journal took it"),
        Column("fmt", "string", "what the payload is: `raw`, `text`, `json`, `msgpack` or `xml`"),
        Column("depth", "bigint", "how often it was forwarded, 0 at its origin"),
        Column("unsure", "boolean", "it came so late that no node could tell any more whether it came before"),
        Column("payload", "binary", "the bytes as they were sent, frames one behind the other"),
        Column("body", "string", "text of text and XML, canonical JSON of JSON and MessagePack", optional=True),
        Column("via", "array<string>", "nodes that have transmitted it, the origin first, 32 hex each", optional=True),
        Column("frames", "array<bigint>", "bytes of each frame of the payload; null: it is one", optional=True),
        Column("at_ns", "bigint", "the origin's stamp, nanoseconds since 1970 UTC"),
        _BATCH,
        _DAY,
    ),
    "day",
)
EVENTS: Final = _table(
    "silver.events",
    "One event that a node has told, exactly once (docs/events.md).",
    (
        *_ID,
        *_WHO,
        Column("event", "string", "name of the event"),
        Column("subsystem", "string", "what told it: the name up to its dot"),
        Column("severity", "string", "`debug`, `info`, `warning` or `error`", optional=True),
        Column("at", "timestamp", "the origin's stamp"),
        Column("received", "timestamp", "stamp of the first node that received it"),
        Column("peer", "string", "the other node that it is about: field `node`", optional=True),
        Column("subject", "string", "what it is about: field `name`, `key` or `filter`", optional=True),
        Column("number", "bigint", "number of the configuration, or of what else it counts", optional=True),
        Column("fields", "string", "all fields, as JSON", optional=True),
        Column("at_ns", "bigint", "the origin's stamp, nanoseconds since 1970 UTC"),
        _BATCH,
        _DAY,
    ),
    "day",
)
STORE: Final = _table(
    "silver.store",
    "One change of one entry of the store, exactly once, whichever nodes have told of it.",
    (
        *_ID,
        Column("node", "string", "who changed it: its name in the store; the same as `origin`"),
        Column("tick", "bigint", "number of the change among those of its node; the same as `sequence`"),
        Column("path_text", "string", "where the entry stands, as people write it: elements joined by dots"),
        Column("at", "timestamp", "when its node took the order; of a foreign server's: when it was first heard of"),
        Column("received", "timestamp", "stamp of the first node that received it"),
        Column("deleted", "boolean", "the entry has no value from here on"),
        Column("tock", "bigint", "date of the change: of two changes the greater (tock, tick) is the later one"),
        Column("by", "string", "the user, if there are users", optional=True),
        Column("value", "string", "the value as JSON; null: deleted, or too large to be kept", optional=True),
        Column("path", "array<string>", "the elements of the path, numbers and truth as JSON; null is the meta tree"),
        Column("chain", "array<struct<node:string,tick:bigint>>", "changes its author had seen, newest first"),
        Column("at_ns", "bigint", "the same as `at`, nanoseconds since 1970 UTC"),
        _BATCH,
        _DAY,
    ),
    "day",
)
_BROKER: Final = Column("broker", "string", "node of the broker, 32 hex; the same as `origin`")
CATALOG: Final = _table(
    "silver.catalog",
    "One change of one instance of a service, as a broker has it: registered, updated, silent, back, gone (CAT-040).",
    (
        *_ID,
        _BROKER,
        Column("epoch", "string", "of that run of the broker, 16 hex digits"),
        Column("index", "bigint", "number of the change in its epoch, as watchers see it; the same as `sequence`"),
        Column("at", "timestamp", "when the broker made it"),
        Column("received", "timestamp", "the same as `at`"),
        Column("op", "string", "`register`, `update`, `suspect`, `active`, `inactive`, `health` or `remove`"),
        Column("name", "string", "of the service"),
        Column("instance", "string", "of its copies, which one"),
        Column("state", "string", "from then on: `active`, `suspect`, `inactive`; `none`: removed"),
        Column("reason", "string", "why: `silent`, `left`, `reaped`, …", optional=True),
        Column("health", "string", "from then on: `passing`, `warning`, `critical` or `unknown`", optional=True),
        Column("owner", "string", "whose it is", optional=True),
        Column("observed_ip", "string", "where it registered from", optional=True),
        Column("net", "string", "network of the broker", optional=True),
        Column("since", "timestamp", "when it came into that state", optional=True),
        Column("metadata", "map<string,string>", "`metadata` of its record", optional=True),
        Column("record", "string", "all that it says of itself, as JSON; null: removed", optional=True),
        Column("at_ns", "bigint", "the same as `at`, nanoseconds since 1970 UTC"),
        _BATCH,
        _DAY,
    ),
    "day",
)
LOGS: Final = _table(
    "silver.logs",
    "One log record of a service, as a broker has heard it, exactly once (LOG-005); or one that says which are lost.",
    (
        *_ID,
        _BROKER,
        Column("at", "timestamp", "the service's stamp; if it has none, or a day's difference, that of the broker"),
        Column("received", "timestamp", "when the broker heard it"),
        Column("level", "string", "`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`"),
        Column("service", "string", "who says it"),
        Column("instance", "string", "of its copies, which one"),
        Column("seq", "bigint", "number in that run of the instance: its order (LOG-009)", optional=True),
        Column("logger", "string", "part of the service", optional=True),
        Column("message", "string", "what it says"),
        Column("ts", "timestamp", "the service's stamp, whatever it is", optional=True),
        Column("net", "string", "network of the broker", optional=True),
        Column("fields", "string", "what else it says, as JSON", optional=True),
        Column("repeated", "bigint", "it stands for so many that were equal (LOG-007)", optional=True),
        Column("lost_from", "bigint", "first `seq` of those that are lost (LOG-006)", optional=True),
        Column("lost_to", "bigint", "last `seq` of them", optional=True),
        Column("at_ns", "bigint", "the same as `at`, nanoseconds since 1970 UTC"),
        _BATCH,
        _DAY,
    ),
    "day",
)
DOCUMENTS: Final = _table(
    "silver.documents",
    "One operation on a document that people edit together, exactly once, whichever nodes have told of it; when and "
    "from whom it was received is what the first of them says whose row came (GSP-034).",
    (
        *_ID,
        Column("session", "string", "name of the session: `origin` up to its last slash"),
        Column("source", "string", "who made it: UUID of one start of a node, 32 hex; `origin` behind its last slash"),
        Column("eff", "double", "effective time, seconds since 1970: operations count by (eff, source, sequence)"),
        Column("timestamp_raw", "string", "its timestamp, as it says it"),
        Column("verb", "string", "`set`, `add`, `remove`, `action`; whatever it says, if it is inert"),
        Column("reference", "string", "what it is about: names and values, as `period=1 jam=3`; empty: the root"),
        Column("by", "string", "the operator", optional=True),
        Column("origsource", "string", "it is a copy of an operation of this source, 32 hex", optional=True),
        Column("origsequence", "bigint", "and of this number there", optional=True),
        Column("inert_reason", "string", "why it changes nothing, if that is seen from itself alone", optional=True),
        Column("signer", "string", "who has signed it; always null in this version", optional=True),
        Column("received_at", "timestamp", "when a node received it, or made it"),
        Column("received_from", "string", "from whom, 32 hex; that node itself: it was made there", optional=True),
        Column("body", "binary", "the operation, as its source made it: XML in UTF-8"),
        Column(
            "outcome",
            "string",
            "`inert:<inert_reason>`; null: the whole log decides it, `weft doc rebuild --from lake` folds it",
            optional=True,
        ),
        Column("schema", "string", "schema of the session's document", optional=True),
        _BATCH,
        Column("day", "date", "UTC day of `received_at`"),
    ),
    "day",
)
CONFIGURATION: Final = _table(
    "silver.configuration",
    "One write of a root, exactly once; its number is epoch · 2^40 + counter, as `weft config history` shows it, and the "
    "counter goes on from root to root (CFG-003). A write whose counter a later epoch gave again was lost with its root.",
    (
        *_ID,
        Column("epoch", "bigint", "under which root; the same as `era`"),
        Column("counter", "bigint", "number of the write; the same as `sequence`"),
        Column("key", "string", "what was written: a path like /CONFIG/web/metric/cpu"),
        Column("value", "string", 'as JSON, `{"$b": base64}` of what is none; null: deleted', optional=True),
        Column("by", "string", "who wanted it: a user, `ttl`, `clone`, …", optional=True),
        Column("at", "timestamp", "when the root wrote it, and it was in force there"),
        Column("at_ns", "bigint", "the same as `at`, nanoseconds since 1970 UTC"),
        _BATCH,
        _DAY,
    ),
    "day",
)
VALUES: Final = _table(
    "silver.values",
    "One calculated value (MEA-001): of a sample and its neighbour before, or of a basic sample alone.",
    (
        *_ID,
        Column("from_sequence", "bigint", "the neighbour before; null for basic types", optional=True),
        *_WHO,
        Column("series", "bigint", "key of the series"),
        Column("at", "timestamp", "stamp of the later sample"),
        Column("span_ms", "bigint", "time between the two samples", optional=True),
        Column("result", "double", "the value; null says `reason`", optional=True),
        Column("reason", "string", "`reset`, `base-reset`, `clock`; with a result: `across-lost`", optional=True),
        _BATCH,
        _DAY,
    ),
    "day",
)
SERIES: Final = _table(
    "silver.series",
    "One series: what its key stands for, as first seen.",
    (
        Column("series", "bigint", "key of the series: BLAKE2b-64 of its definition (LAK-019)"),
        *_DEFINITION,
        Column("definition", "bigint", "hash of the definition, to see a collision"),
        _BATCH,
    ),
)
EDGES: Final = _table(
    "meta.edges",
    "First or last sample of a series in a contiguous range of its origin: what a late neighbour needs (PIP-043).",
    (
        *_ID,
        *_WHO,
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


def _rollup(width: str, partition: str) -> Table:
    return _table(
        f"gold.rollup_{width}",
        f"Calculated values of one series on one node in one window of {width}.",
        (
            *_WHO,
            Column("series", "bigint", "key of the series"),
            Column("window_start", "timestamp", "start of the window"),
            Column("n", "bigint", "values with a result"),
            Column("sum", "double", "their sum", optional=True),
            Column("sum_sq", "double", "sum of their squares", optional=True),
            Column("min", "double", "the least", optional=True),
            Column("max", "double", "the greatest", optional=True),
            Column("first", _POINT, "the earliest by (at, era, sequence)", optional=True),
            Column("last", _POINT, "the latest by (at, era, sequence)", optional=True),
            Column("resets", "bigint", "pairs without a result because a counter ran backwards"),
            Column(partition, "date", f"UTC {partition} of the window"),
        ),
        partition,
    )


ROLLUP_1M: Final = _rollup("1m", "day")
ROLLUP_1H: Final = _rollup("1h", "month")
ROLLUP_1D: Final = _rollup("1d", "month")
LATEST: Final = _table(
    "gold.latest",
    "The newest sample of a series on a node, and the newest calculated value.",
    (
        *_WHO,
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
COMPLETENESS: Final = _table(
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
PROGRESS: Final = _table(
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
    ),
)
ALL: Final[dict[str, Table]] = {
    table.full_name: table
    for table in (
        BRONZE_SAMPLES, QUARANTINE, SAMPLES, VALUES, SERIES, EDGES,
        ROLLUP_1M, ROLLUP_1H, ROLLUP_1D, LATEST, COMPLETENESS, PROGRESS,
        BRONZE_MESSAGES, QUARANTINE_MESSAGES, MESSAGES,
        BRONZE_EVENTS, QUARANTINE_EVENTS, EVENTS,
        BRONZE_STORE, QUARANTINE_STORE, STORE,
        BRONZE_CATALOG, QUARANTINE_CATALOG, CATALOG,
        BRONZE_LOGS, QUARANTINE_LOGS, LOGS,
        BRONZE_DOCUMENTS, QUARANTINE_DOCUMENTS, DOCUMENTS,
        BRONZE_CONFIGURATION, QUARANTINE_CONFIGURATION, CONFIGURATION,
    )
}  # fmt: skip
"""Every table, by its full name."""


STORE_CURRENT: Final = _table(
    "gold.store_current",
    "An entry of the store as it stands: its greatest change by (tock, tick, lower name of the node), whenever that "
    "arrived; entries whose greatest change deletes them are not here (PIP-051). A view over `silver.store`, for "
    "`weft sql`: no files of its own.",
    (
        Column("path_text", "string", "where the entry stands: elements joined by dots"),
        Column("value", "string", "the value as JSON; null: too large to be kept", optional=True),
        Column("node", "string", "who gave it this value"),
        Column("tick", "bigint", "number of that change"),
        Column("tock", "bigint", "date of that change"),
        Column("since", "timestamp", "when it was made"),
        Column("by", "string", "the user, if there are users", optional=True),
        Column("path", "array<string>", "the elements of the path"),
    ),
)
DOCUMENT_OPERATIONS: Final = _table(
    "gold.document_operations",
    "An operation of a session that stands in its document, in the order in which all nodes fold: what lies behind a "
    "number that has not come is not here (DOC-010). A view over `silver.documents`, for `weft sql`: no files of its own.",
    (
        Column("session", "string", "name of the session"),
        Column("place", "bigint", "place in the order of the session, from 1"),
        Column("source", "string", "who made it, 32 hex"),
        Column("sequence", "bigint", "its number there"),
        Column("eff", "double", "effective time, seconds since 1970"),
        Column("at", "timestamp", "the same as a time; null: it said none"),
        Column("verb", "string", "what it does"),
        Column("reference", "string", "what it is about"),
        Column("by", "string", "the operator", optional=True),
        Column("inert_reason", "string", "why it changes nothing, if that is seen from itself alone", optional=True),
        Column("received_at", "timestamp", "when a node received it, or made it"),
        Column("body", "string", "the operation, as text"),
    ),
)
DOCUMENT_SESSIONS: Final = _table(
    "gold.document_sessions",
    "A session: what the lake has of it. A view over `silver.documents`, for `weft sql`: no files of its own.",
    (
        Column("session", "string", "name of the session"),
        Column("schema", "string", "schema of its document", optional=True),
        Column("operations", "bigint", "operations that stand in the document"),
        Column("beyond", "bigint", "operations that lie behind a number that has not come"),
        Column("sources", "bigint", "who has made operations: starts of nodes"),
        Column("vector", "map<string,bigint>", "of each source, up to which number everything is here"),
        Column("first_eff", "double", "effective time of the earliest, seconds since 1970", optional=True),
        Column("last_eff", "double", "effective time of the latest", optional=True),
        Column("last_received", "timestamp", "latest arrival"),
    ),
)
VIEWS: Final[dict[str, Table]] = {
    view.full_name: view for view in (STORE_CURRENT, DOCUMENT_OPERATIONS, DOCUMENT_SESSIONS)
}
"""What is no table but can be asked like one."""


class Stages(NamedTuple):
    """The tables that a row of a stream may come to stand in."""

    bronze: Table
    quarantine: Table
    silver: Table


STAGES: Final = {
    "samples": Stages(BRONZE_SAMPLES, QUARANTINE, SAMPLES),
    "messages": Stages(BRONZE_MESSAGES, QUARANTINE_MESSAGES, MESSAGES),
    "events": Stages(BRONZE_EVENTS, QUARANTINE_EVENTS, EVENTS),
    "store": Stages(BRONZE_STORE, QUARANTINE_STORE, STORE),
    "catalog": Stages(BRONZE_CATALOG, QUARANTINE_CATALOG, CATALOG),
    "logs": Stages(BRONZE_LOGS, QUARANTINE_LOGS, LOGS),
    "documents": Stages(BRONZE_DOCUMENTS, QUARANTINE_DOCUMENTS, DOCUMENTS),
    "configuration": Stages(BRONZE_CONFIGURATION, QUARANTINE_CONFIGURATION, CONFIGURATION),
}
"""Of every stream that has a job, by its name, in the order in which jobs start."""
