"""The differences between streams: their tables, and how their rows become silver and are compared with it.

Job, batch and check are the same for every stream.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.pipeline import tables
from weft.pipeline.tables import Table
from weft.pipeline.transforms import catalog, configuration, documents, events, logs, messages, samples, store
from weft.pipeline.transforms.columns import content_hash, with_others

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LATEST_S: Final = 253_402_300_799
"""End of the year 9999, seconds since 1970: the author of an operation may state any time."""


class Kind(NamedTuple):
    """The tables and rules of one stream."""

    stream: str
    """Name of the stream, and of its job."""
    bronze: Table
    quarantine: Table
    silver: Table
    silver_columns: "Callable[[], dict[str, Column]]"
    """The columns of silver that bronze lacks, as expressions over a row of bronze."""
    content: tuple[str, ...]
    """The columns of silver by which a repeated row is compared with the first one."""
    more: tuple[Table, ...] = ()
    """More tables that only its job writes."""
    is_dense: bool = True
    """True: every number is expected, so an absent one is missing."""
    runs_on: bool = False
    """True: its numbers continue from era to era, and only the first era begins with 1."""
    seen: tuple[str, str, str] = ("node", "at", "received")
    """SQL for silver: the owner of a row, its origin's time stamp, and its arrival."""

    def to_silver(self, rows: "DataFrame") -> "DataFrame":
        """Accepted rows of bronze as rows of silver.

        Grain: one record of the stream. Key: (origin, era, sequence). Columns: those of the stream's table in silver.
        """
        return rows.select(*_made(self.stream))

    def bronze_hash(self) -> "Column":
        """A hash of the content of a bronze row: equal for a repeated row, by whatever way it came."""
        return content_hash(self.content, self.silver_columns())

    def silver_hash(self) -> "Column":
        """The same hash, computed from a row of silver."""
        return content_hash(self.content, {})

    @property
    def own(self) -> tuple[Table, ...]:
        """The tables that no other job writes."""
        return (self.bronze, self.quarantine, self.silver, *self.more)

    @property
    def counted(self) -> tuple[tuple[Table, str], ...]:
        """Tables of which each batch counts the rows, and the columns of `meta.progress` with these counts."""
        stages = ((self.bronze, "rows_in"), (self.silver, "rows_silver"), (self.quarantine, "rows_quarantine"))
        return (*stages, (tables.VALUES, "rows_values")) if tables.VALUES in self.more else stages

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables that its job writes."""
        return (*self.own, tables.COMPLETENESS, tables.PROGRESS)


SAMPLES: Final = Kind(
    "samples",
    *tables.STAGES["samples"],
    samples.silver_columns,
    samples.CONTENT,
    (
        *(tables.VALUES, tables.SERIES, tables.EDGES, tables.TWINS),
        *(tables.ROLLUP_1M, tables.ROLLUP_1H, tables.ROLLUP_1D, tables.CORRECTIONS, tables.ANOMALIES, tables.LATE),
        tables.LATEST,
    ),
)
MESSAGES: Final = Kind(
    "messages", *tables.STAGES["messages"], messages.silver_columns, messages.CONTENT, is_dense=False
)
EVENTS: Final = Kind("events", *tables.STAGES["events"], events.silver_columns, events.CONTENT)
STORE: Final = Kind("store", *tables.STAGES["store"], store.silver_columns, store.CONTENT)
CATALOG: Final = Kind(
    "catalog",
    *tables.STAGES["catalog"],
    catalog.silver_columns,
    catalog.CONTENT,
    seen=("broker", "at", "received"),
)
LOGS: Final = Kind(
    "logs",
    *tables.STAGES["logs"],
    logs.silver_columns,
    logs.CONTENT,
    seen=("broker", "at", "received"),
)
DOCUMENTS: Final = Kind(
    "documents",
    *tables.STAGES["documents"],
    documents.silver_columns,
    documents.CONTENT,
    seen=("origin", f"if(eff between 0 and {LATEST_S}, timestamp_micros(bigint(eff * 1e6)), null)", "received_at"),
)
CONFIGURATION: Final = Kind(
    "configuration",
    *tables.STAGES["configuration"],
    configuration.silver_columns,
    configuration.CONTENT,
    runs_on=True,
    seen=("origin", "at", "at"),
)
KINDS: Final = {
    kind.stream: kind for kind in (SAMPLES, MESSAGES, EVENTS, STORE, CATALOG, LOGS, DOCUMENTS, CONFIGURATION)
}
"""Every stream that has a job, by name."""


@cache
def _made(stream: str) -> "tuple[Column, ...]":
    kind = KINDS[stream]
    return with_others(kind.silver.schema.names, **kind.silver_columns())
