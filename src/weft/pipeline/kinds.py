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
    """Other tables that only its job writes."""
    to_silver: "Callable[[DataFrame], DataFrame]"
    said: "Callable[[], Column]"
    """A hash of the content of a bronze row: equal for a repeated row, whatever way it came."""
    kept: "Callable[[], Column]"
    """The same hash for a row of silver."""
    is_dense: bool = True
    """True: its numbers have no holes by nature, so an absent number is missing."""
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
    messages.said,
    messages.kept,
    is_dense=False,
)
EVENTS: Final = Kind(
    "events",
    *tables.STAGES["events"],
    (),
    events.to_events,
    events.said,
    events.kept,
)
STORE: Final = Kind(
    "store",
    *tables.STAGES["store"],
    (),
    store.to_store,
    store.said,
    store.kept,
)
CATALOG: Final = Kind(
    "catalog",
    *tables.STAGES["catalog"],
    (),
    catalog.to_catalog,
    catalog.said,
    catalog.kept,
    seen=("broker", "at", "received"),
)
LOGS: Final = Kind(
    "logs",
    *tables.STAGES["logs"],
    (),
    logs.to_logs,
    logs.said,
    logs.kept,
    seen=("broker", "at", "received"),
)
DOCUMENTS: Final = Kind(
    "documents",
    *tables.STAGES["documents"],
    (),
    documents.to_documents,
    documents.said,
    documents.kept,
    seen=("origin", f"if(eff between 0 and {LATEST_S}, timestamp_micros(bigint(eff * 1e6)), null)", "received_at"),
)
CONFIGURATION: Final = Kind(
    "configuration",
    *tables.STAGES["configuration"],
    (),
    configuration.to_configuration,
    configuration.said,
    configuration.kept,
    runs_on=True,
    seen=("origin", "at", "at"),
)
KINDS: Final = {
    kind.stream: kind for kind in (SAMPLES, MESSAGES, EVENTS, STORE, CATALOG, LOGS, DOCUMENTS, CONFIGURATION)
}
"""Every stream that has a job, by name."""
