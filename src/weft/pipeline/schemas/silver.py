"""The tables of silver: typed rows, each number exactly once."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.table import BATCH, DATASET, DAY, DEFINITION, ID, WHO, table_of

SAMPLES: Final = table_of(
    "silver.samples",
    "One sample, exactly once.",
    (
        *ID,
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("at", "timestamp", "time stamp of the origin"),
        Column("value", "double", "the raw value", optional=True),
        Column("value_long", "bigint", "the raw value, exactly, if it is an integer", optional=True),
        Column("base", "double", "the raw base", optional=True),
        Column("base_long", "bigint", "the raw base, exactly, if it is an integer", optional=True),
        Column("received", "timestamp", "when the first node received it"),
        *DEFINITION,
        Column("text", "string", "the value if it is text", optional=True),
        Column("at_ns", "bigint", "time stamp of the origin, nanoseconds since 1970 UTC"),
        Column("delay_ms", "bigint", "received minus at"),
        Column("config_number", "bigint", "number of the configuration that asked for it", optional=True),
        Column("flags", "array<string>", "any of `volatile`, `step`, `after-lost`, `ambiguous`, `rule:<name>`"),
        BATCH,
        DAY,
        DATASET,
    ),
    "day",
)
MESSAGES: Final = table_of(
    "silver.messages",
    "One message that came into the root's journal, exactly once. Numbers of an origin have holes: messages that were not "
    "forwarded are not here, and do not count as missing.",
    (
        *ID,
        *WHO,
        Column("mid", "string", "identity of the message as text: origin/era/sequence"),
        Column("type", "string", "type of the message"),
        Column("at", "timestamp", "time stamp of the origin, when it accepted the message"),
        Column("received", "timestamp", "when it came into the root's journal"),
        Column("fmt", "string", "format of the payload: `raw`, `text`, `json`, `msgpack` or `xml`"),
        Column("depth", "bigint", "how often it was forwarded, 0 at its origin"),
        Column("unsure", "boolean", "true: it came so late that no node could tell whether it had come before"),
        Column("payload", "binary", "the bytes as they were sent; several frames one after the other"),
        Column("body", "string", "text and XML as text, JSON and MessagePack as canonical JSON", optional=True),
        Column("via", "array<string>", "nodes that transmitted it, the origin first, 32 hex each", optional=True),
        Column("frames", "array<bigint>", "bytes of each frame of the payload; null: it is one frame", optional=True),
        Column("at_ns", "bigint", "time stamp of the origin, nanoseconds since 1970 UTC"),
        BATCH,
        DAY,
    ),
    "day",
)
EVENTS: Final = table_of(
    "silver.events",
    "One event that a node reported, exactly once (docs/events.md).",
    (
        *ID,
        *WHO,
        Column("event", "string", "name of the event"),
        Column("subsystem", "string", "part of the node that reported it: the name up to its first dot"),
        Column("severity", "string", "`debug`, `info`, `warning` or `error`", optional=True),
        Column("at", "timestamp", "time stamp of the origin"),
        Column("received", "timestamp", "when the first node received it"),
        Column("peer", "string", "the other node that it is about: field `node`", optional=True),
        Column("subject", "string", "what it is about: field `name`, `key` or `filter`", optional=True),
        Column("number", "bigint", "field `number`: often that of a configuration", optional=True),
        Column("fields", "string", "all fields, as JSON", optional=True),
        Column("at_ns", "bigint", "time stamp of the origin, nanoseconds since 1970 UTC"),
        BATCH,
        DAY,
    ),
    "day",
)
STORE: Final = table_of(
    "silver.store",
    "One change of one entry of the store, exactly once, whichever nodes reported it.",
    (
        *ID,
        Column("node", "string", "node that changed it, by its name in the store; the same as `origin`"),
        Column("tick", "bigint", "number of the change at its node; the same as `sequence`"),
        Column("path_text", "string", "path of the entry, as people write it: elements joined by dots"),
        Column(
            "at",
            "timestamp",
            "when its node made the change; for a change of a foreign server: when a node first received it",
        ),
        Column("received", "timestamp", "when the first node received it"),
        Column("deleted", "boolean", "true: the change deletes the entry"),
        Column(
            "tock",
            "bigint",
            "logical time of the change: of two changes, the one with the greater (tock, tick) is later",
        ),
        Column("by", "string", "user who made the change, if the store has users", optional=True),
        Column("value", "string", "the value as JSON; null: deleted, or too large to be kept", optional=True),
        Column("path", "array<string>", "elements of the path, numbers and booleans as JSON; null is the meta tree"),
        Column("chain", "array<struct<node:string,tick:bigint>>", "changes that its author had seen, newest first"),
        Column("at_ns", "bigint", "the same as `at`, nanoseconds since 1970 UTC"),
        BATCH,
        DAY,
    ),
    "day",
)
BROKER: Final = Column("broker", "string", "node of the broker, 32 hex; the same as `origin`")
CATALOG: Final = table_of(
    "silver.catalog",
    "One change of one instance of a service, as a broker recorded it: registered, updated, silent, back or removed (CAT-040).",
    (
        *ID,
        BROKER,
        Column("epoch", "string", "start of the broker, 16 hex digits"),
        Column("index", "bigint", "number of the change within the epoch, as watchers see it; the same as `sequence`"),
        Column("at", "timestamp", "when the broker recorded it"),
        Column("received", "timestamp", "the same as `at`"),
        Column("op", "string", "`register`, `update`, `suspect`, `active`, `inactive`, `health` or `remove`"),
        Column("name", "string", "name of the service"),
        Column("instance", "string", "name of the instance"),
        Column("state", "string", "state after the change: `active`, `suspect` or `inactive`; `none`: removed"),
        Column("reason", "string", "reason for the change: `silent`, `left`, `reaped` and others", optional=True),
        Column(
            "health", "string", "health after the change: `passing`, `warning`, `critical` or `unknown`", optional=True
        ),
        Column("owner", "string", "owner of the instance", optional=True),
        Column("observed_ip", "string", "address from which it registered", optional=True),
        Column("net", "string", "network of the broker", optional=True),
        Column("since", "timestamp", "when that state began", optional=True),
        Column("metadata", "map<string,string>", "field `metadata` of its record", optional=True),
        Column("record", "string", "the whole record of the instance, as JSON; null: removed", optional=True),
        Column("at_ns", "bigint", "the same as `at`, nanoseconds since 1970 UTC"),
        BATCH,
        DAY,
    ),
    "day",
)
LOGS: Final = table_of(
    "silver.logs",
    "One log record of a service that a broker received, exactly once (LOG-005); or a record that says which ones are lost.",
    (
        *ID,
        BROKER,
        Column(
            "at",
            "timestamp",
            "time stamp of the service; that of the broker if the service has none, or if they differ by over a day",
        ),
        Column("received", "timestamp", "when the broker received it"),
        Column("level", "string", "`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`"),
        Column("service", "string", "name of the service"),
        Column("instance", "string", "name of the instance"),
        Column(
            "seq",
            "bigint",
            "number of the record within one run of the instance; gives the order (LOG-009)",
            optional=True,
        ),
        Column("logger", "string", "logger within the service", optional=True),
        Column("message", "string", "text of the record"),
        Column("ts", "timestamp", "time stamp of the service, unchanged", optional=True),
        Column("net", "string", "network of the broker", optional=True),
        Column("fields", "string", "other fields of the record, as JSON", optional=True),
        Column("repeated", "bigint", "how many equal records this row stands for (LOG-007)", optional=True),
        Column("lost_from", "bigint", "first `seq` of lost records (LOG-006)", optional=True),
        Column("lost_to", "bigint", "last `seq` of lost records", optional=True),
        Column("at_ns", "bigint", "the same as `at`, nanoseconds since 1970 UTC"),
        BATCH,
        DAY,
    ),
    "day",
)
DOCUMENTS: Final = table_of(
    "silver.documents",
    "One operation on a document that people edit together, exactly once, whichever nodes delivered it. When and from whom "
    "it was received is as the first node reports whose row arrived (GSP-034).",
    (
        *ID,
        Column("session", "string", "name of the session: `origin` up to its last slash"),
        Column("source", "string", "who made it: UUID of one start of a node, 32 hex; `origin` after its last slash"),
        Column(
            "eff", "double", "effective time, seconds since 1970; operations are ordered by (eff, source, sequence)"
        ),
        Column("timestamp_raw", "string", "timestamp in the operation, as written"),
        Column("verb", "string", "`set`, `add`, `remove` or `action`; any other text if it is inert"),
        Column(
            "reference", "string", "the part of the document: names and values, like `period=1 jam=3`; empty: the root"
        ),
        Column("by", "string", "the operator", optional=True),
        Column("origsource", "string", "for a copy of an operation: the source of the original, 32 hex", optional=True),
        Column("origsequence", "bigint", "for a copy: the number of the original", optional=True),
        Column(
            "inert_reason", "string", "why it has no effect, if that follows from the operation alone", optional=True
        ),
        Column("signer", "string", "who signed it; always null in this version", optional=True),
        Column("received_at", "timestamp", "when a node received it, or made it"),
        Column(
            "received_from", "string", "peer that sent it, 32 hex; the node itself if it was made there", optional=True
        ),
        Column("body", "binary", "the operation as its source wrote it: XML in UTF-8"),
        Column(
            "outcome",
            "string",
            "`inert:<inert_reason>`; null: that depends on the whole session, see `weft doc rebuild --from lake`",
            optional=True,
        ),
        Column("schema", "string", "schema of the document of the session", optional=True),
        BATCH,
        Column("day", "date", "UTC day of `received_at`"),
    ),
    "day",
)
CONFIGURATION: Final = table_of(
    "silver.configuration",
    "One write of a root, exactly once. Its number is epoch · 2^40 + counter, as `weft config history` shows it; the counter "
    "continues from root to root (CFG-003). If a later epoch used the same counter again, the write was lost with its root.",
    (
        *ID,
        Column("epoch", "bigint", "epoch of the root; the same as `era`"),
        Column("counter", "bigint", "number of the write; the same as `sequence`"),
        Column("key", "string", "key that was written: a path like /CONFIG/web/metric/cpu"),
        Column(
            "value",
            "string",
            'the value as JSON, `{"$b": base64}` if it is not valid JSON; null: deleted',
            optional=True,
        ),
        Column("by", "string", "who asked for it: a user, `ttl`, `clone` and others", optional=True),
        Column("at", "timestamp", "when the root wrote it; from then on it was in force there"),
        Column("at_ns", "bigint", "the same as `at`, nanoseconds since 1970 UTC"),
        BATCH,
        DAY,
    ),
    "day",
)
VALUES: Final = table_of(
    "silver.values",
    "One calculated value (MEA-001): from a sample and the one before it, or from a basic sample alone.",
    (
        *ID,
        Column("from_sequence", "bigint", "number of the sample before it; null for basic types", optional=True),
        *WHO,
        Column("series", "bigint", "key of the series"),
        Column("at", "timestamp", "time stamp of the later sample"),
        Column("span_ms", "bigint", "time between the two samples", optional=True),
        Column("result", "double", "the value; if it is null, `reason` says why", optional=True),
        Column("reason", "string", "`reset`, `base-reset` or `clock`; with a result: `across-lost`", optional=True),
        BATCH,
        DAY,
        Column(
            "from_era",
            "bigint",
            "in a dataset: era of the sample before it, which is the one before in time",
            optional=True,
        ),
        DATASET,
    ),
    "day",
)
SERIES: Final = table_of(
    "silver.series",
    "One series: the definition that its key stands for, as it came first.",
    (
        Column("series", "bigint", "key of the series: BLAKE2b-64 of its definition (LAK-019)"),
        *DEFINITION,
        Column("definition", "bigint", "hash of the definition, by which a collision is noticed"),
        BATCH,
    ),
)
