"""The differences between streams: their tables, and how their rows become silver and are compared with it.

Job, batch and check are the same for every stream.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.pipeline import tables
from weft.pipeline.tables import Table
from weft.pipeline.transforms import catalog, configuration, documents, events, logs, messages, samples, store
from weft.pipeline.transforms.columns import content_hash, value_of

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
    more: tuple[Table, ...]
    """More tables that only its job writes."""
    to_silver: "Callable[[DataFrame], DataFrame]"
    bronze_hash: "Callable[[], Column]"
    """A hash of the content of a bronze row: equal for a repeated row, by whatever way it came."""
    silver_hash: "Callable[[], Column]"
    """The same hash, computed from a row of silver."""
    is_dense: bool = True
    """True: every number is expected, so an absent one is missing."""
    runs_on: bool = False
    """True: its numbers continue from era to era, and only the first era begins with 1."""
    seen: tuple[str, str, str] = ("node", "at", "received")
    """SQL for silver: the owner of a row, its origin's time stamp, and its arrival."""

    @property
    def own(self) -> tuple[Table, ...]:
        """The tables that no other job writes."""
        return (self.bronze, self.quarantine, self.silver, *self.more)

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables that its job writes."""
        return (*self.own, tables.COMPLETENESS, tables.PROGRESS)


SAMPLES: Final = Kind(
    "samples",
    *tables.STAGES["samples"],
    (
        *(tables.VALUES, tables.SERIES, tables.EDGES, tables.TWINS),
        *(tables.ROLLUP_1M, tables.ROLLUP_1H, tables.ROLLUP_1D, tables.CORRECTIONS, tables.ANOMALIES, tables.LATE),
        tables.LATEST,
    ),
    samples.to_samples,
    lambda: content_hash(value_of("value"), value_of("base")),
    content_hash,
)
MESSAGES: Final = Kind(
    "messages",
    *tables.STAGES["messages"],
    (),
    messages.to_messages,
    messages.bronze_hash,
    messages.silver_hash,
    is_dense=False,
)
EVENTS: Final = Kind(
    "events",
    *tables.STAGES["events"],
    (),
    events.to_events,
    events.bronze_hash,
    events.silver_hash,
)
STORE: Final = Kind(
    "store",
    *tables.STAGES["store"],
    (),
    store.to_store,
    store.bronze_hash,
    store.silver_hash,
)
CATALOG: Final = Kind(
    "catalog",
    *tables.STAGES["catalog"],
    (),
    catalog.to_catalog,
    catalog.bronze_hash,
    catalog.silver_hash,
    seen=("broker", "at", "received"),
)
LOGS: Final = Kind(
    "logs",
    *tables.STAGES["logs"],
    (),
    logs.to_logs,
    logs.bronze_hash,
    logs.silver_hash,
    seen=("broker", "at", "received"),
)
DOCUMENTS: Final = Kind(
    "documents",
    *tables.STAGES["documents"],
    (),
    documents.to_documents,
    documents.bronze_hash,
    documents.silver_hash,
    seen=("origin", f"if(eff between 0 and {LATEST_S}, timestamp_micros(bigint(eff * 1e6)), null)", "received_at"),
)
CONFIGURATION: Final = Kind(
    "configuration",
    *tables.STAGES["configuration"],
    (),
    configuration.to_configuration,
    configuration.bronze_hash,
    configuration.silver_hash,
    runs_on=True,
    seen=("origin", "at", "at"),
)
KINDS: Final = {
    kind.stream: kind for kind in (SAMPLES, MESSAGES, EVENTS, STORE, CATALOG, LOGS, DOCUMENTS, CONFIGURATION)
}
"""Every stream that has a job, by name."""
