"""The definition of a table: columns, partition, and what a row means; and columns that many tables have.

A table's schema is data: Spark's and Delta's schemas, documentation and the views of `weft sql` are made from it.
Columns are only ever added, nullable, at the end (LAK-036).
"""

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.lake.schemas import Column, Schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

STATISTICS_COLUMNS: Final = 12
"""How many leading columns have minimum, maximum and null count in the Delta log (LAK-031)."""


class Table(NamedTuple):
    """A table of the lake."""

    layer: str
    name: str
    schema: Schema
    grain: str
    """What one row is, in one sentence."""
    partition: str | None = None
    """The partition column; None for a small table."""

    @property
    def full_name(self) -> str:
        """The name in queries: `silver.samples`."""
        return f"{self.layer}.{self.name}"

    @property
    def partitions(self) -> list[str]:
        """The partition column as a list, as it is asked for in many places."""
        return [self.partition] if self.partition else []

    def spark(self) -> "StructType":
        """The schema for Spark, including the partition column. Needs a running session."""
        return _spark(self.schema.ddl())

    def file_columns(self) -> tuple[str, ...]:
        """The columns in the files: all but the partition column."""
        return tuple(name for name in self.schema.names if name != self.partition)

    def statistics(self) -> frozenset[str]:
        """Columns with statistics in the Delta log: the leading ones, and those by which folds find new rows."""
        return frozenset((*self.file_columns()[:STATISTICS_COLUMNS], "batch", "dataset"))


@cache
def _spark(ddl: str) -> "StructType":
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType), ddl
    return schema


def table_of(full_name: str, grain: str, columns: tuple[Column, ...], partition: str | None = None) -> Table:
    """A table from its full name (`silver.samples`), the meaning of a row, and its columns with the partition."""
    layer, _, name = full_name.partition(".")
    return Table(layer, name, Schema(full_name, columns), grain, partition)


ID: Final = (
    Column("origin", "string", "who numbered it: UUID of the node as 32 hex, or a name"),
    Column("era", "bigint", "start of the origin, microseconds since 1970", optional=True),
    Column("sequence", "bigint", "number within origin and era, from 1, without holes"),
)
WHO: Final = (
    Column("node", "string", "name of the node; its origin if it has no name"),
    Column("group", "string", "group of the node", optional=True),
)
DEFINITION: Final = (
    Column("config_name", "string", "name of the metric in the configuration"),
    Column("detail", "string", "what is measured"),
    Column("type", "string", "how a value is calculated: basic, delta, rate, average or percent"),
    Column("param", "string", "parameter of the metric, often empty"),
    Column("labels", "map<string,string>", "labels of the series"),
)
BATCH: Final = Column("batch", "bigint", "micro-batch that wrote the row")
DAY: Final = Column("day", "date", "UTC day of `at`")
DATASET: Final = Column(
    "dataset", "string", "dataset with which it was imported; null: it was measured by a node", optional=True
)
POINT: Final = "struct<at:timestamp,era:bigint,sequence:bigint,value:double>"
_BUCKETS: Final = "array<struct<index:int,count:bigint>>"
SKETCH: Final = f"struct<zero:bigint,positive:{_BUCKETS},negative:{_BUCKETS},collapsed:boolean>"
"""The distribution of values, to within 1 % (PIP-047): see `weft.pipeline.sketch`."""
