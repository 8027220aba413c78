"""Segment and table schemas as plain rows; Arrow, Spark DDL and documentation are made from them.

Nothing heavy is imported until `arrow()` is called. Versions only add nullable columns at the end; a reader of one
version reads all versions (LAK-021). Spark accepts all types used here from Arrow without conversion: no dictionary,
large, view or unsigned types (LAK-020).
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.lake.layout import STREAMS

if TYPE_CHECKING:
    import pyarrow as pa

VERSION: Final = 2
"""Version of the segment schemas that this program writes.

From version 2 on a file states the place of its rows (`PLACES`).
"""


LONG_MAX: Final = (1 << 63) - 1
LONG_MIN: Final = -(1 << 63)
"""Bounds of a bigint."""


class Column(NamedTuple):
    """One column: its name, its Spark type, its meaning, and whether it may be null in good rows."""

    name: str
    type: str
    doc: str
    optional: bool = False


class Schema(NamedTuple):
    """An ordered, named list of columns.

    All are nullable on disk, because an error row holds only what could be read.
    """

    name: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def ddl(self) -> str:
        """The schema as DDL, for `spark.createDataFrame(rows, ddl)` and `DataSource.schema`."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    def arrow(self) -> "pa.Schema":
        """The Arrow schema. Imports PyArrow."""
        return _arrow(self)

    def only(self, names: Iterable[str]) -> "Schema":
        """The named columns, in the order of the schema. KeyError for a name that is not there."""
        wanted = set(names)
        if unknown := wanted - set(self.names):
            raise KeyError(min(unknown))
        return Schema(self.name, tuple(column for column in self.columns if column.name in wanted))

    def plus(self, name: str, *columns: Column) -> "Schema":
        """A schema with these columns and `columns` after them, under another name."""
        return Schema(name, self.columns + columns)

    def markdown(self) -> str:
        """The schema as a Markdown table, for documentation."""
        rows = [f"| `{c.name}` | {c.type}{' or null' if c.optional else ''} | {c.doc} |" for c in self.columns]
        return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows])


COMMON: Final[tuple[Column, ...]] = (
    Column("origin", "string", "who numbered it: UUID of the node as 32 hex, or a name"),
    Column("era", "bigint", "start of the origin, microseconds since 1970", optional=True),
    Column("sequence", "bigint", "number within origin and era, from 1, without holes"),
    Column("at_ns", "bigint", "time stamp of the origin, nanoseconds since 1970 UTC"),
    Column("received_ns", "bigint", "when the first node received it, nanoseconds since 1970 UTC"),
    Column("lsn", "bigint", "number of the record in the drain's journal"),
    Column("error", "string", "why the row could not be read; null in good rows", optional=True),
    Column("raw", "binary", "the payload as it came; in samples only if there is an error", optional=True),
)
SAMPLES: Final = Schema(
    "samples",
    (
        *COMMON,
        Column("series", "bigint", "key of the series: BLAKE2b-64 of its definition (LAK-019)"),
        Column("config_name", "string", "name of the metric in the configuration"),
        Column("detail", "string", "what is measured"),
        Column("type", "string", "how a value is calculated: basic, delta, rate, average or percent"),
        Column("param", "string", "parameter of the metric, often empty"),
        Column("labels", "map<string,string>", "labels of the series"),
        Column("value_long", "bigint", "the value if it is an integer", optional=True),
        Column("value_double", "double", "the value if it is not", optional=True),
        Column("text", "string", "the value if it is text", optional=True),
        Column("base_long", "bigint", "the base if it is an integer", optional=True),
        Column("base_double", "double", "the base if it is not", optional=True),
        Column("config_number", "bigint", "number of the configuration that asked for it", optional=True),
        Column("attributes", "map<string,string>", "other attributes of the record, such as step, volatile, mid and n"),
    ),
)
_OTHER: Final[tuple[Column, ...]] = (
    *COMMON,
    Column("key", "string", "key, path or type of the record"),
    Column("body", "string", "the payload as canonical JSON; null if it is raw bytes or empty", optional=True),
    Column("attributes", "map<string,string>", "attributes of the record; values that are not text as JSON"),
)
SEGMENTS: Final[dict[str, Schema]] = {
    stream: SAMPLES if stream == "samples" else Schema(stream, _OTHER) for stream in STREAMS
}
"""The schema of the segments of each stream."""

PLACES: Final = (
    Column("drain", "string", "the drain that wrote the segment, 32 hex"),
    Column("segment", "bigint", "number of the segment"),
    Column("row", "bigint", "number of the row in the segment, from 0"),
)
"""The place of a row.

Segments have these columns since version 2, as bronze does, so that a segment can become a file of bronze (LAK-040).
"""

BRONZE: Final[dict[str, Schema]] = {
    stream: segment.plus(
        f"bronze.{stream}",
        *PLACES,
        Column("batch", "bigint", "micro-batch that took the row"),
        Column("day", "date", "UTC day of `received_ns`"),
    )
    for stream, segment in SEGMENTS.items()
}
"""The columns of a stream's table in bronze: those of its segments, the place of each row, batch and day."""


def spark_names(stream: str, chosen: str) -> tuple[str, ...]:
    """The names in the comma list `chosen`, in the order of the stream's schema; all names if it is empty.

    KeyError for an unknown name.
    """
    names = [name.strip() for name in chosen.split(",") if name.strip()]
    return SEGMENTS[stream].only(names).names if names else SEGMENTS[stream].names


@lru_cache(maxsize=256)
def _arrow(schema: Schema) -> "pa.Schema":
    import pyarrow as pa

    scalar = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
    }

    def arrow_type(text: str) -> "pa.DataType":
        if text.startswith("map<"):
            key, value = _split(text[4:-1])
            return pa.map_(arrow_type(key), arrow_type(value))
        if text.startswith("array<"):
            return pa.list_(arrow_type(text[6:-1]))
        if text.startswith("struct<"):
            fields = [field.partition(":") for field in _split(text[7:-1])]
            return pa.struct([pa.field(name, arrow_type(kind)) for name, _, kind in fields])
        return scalar[text]

    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in schema.columns])


def _split(text: str) -> list[str]:
    """Split a list of types at its commas, except at commas within brackets.

    >>> _split("at:timestamp,points:array<struct<x:int,y:int>>")
    ['at:timestamp', 'points:array<struct<x:int,y:int>>']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
