"""What a stream becomes: its tables, and how its rows turn into silver and are compared with it.

A job, a batch and the check are the same for every stream; this table holds what differs.
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
"""End of the year 9999, seconds since 1970: whoever makes an operation may say any time."""


class Kind(NamedTuple):
    """One stream, from its segments to silver."""

    stream: str
    """Also the name of its job."""
    bronze: Table
    quarantine: Table
    silver: Table
    more: tuple[Table, ...]
    """What else only its job writes."""
    to_silver: "Callable[[DataFrame], DataFrame]"
    said: "Callable[[], Column]"
    """One number for what a row of bronze says: equal for a repeated row, whatever way it came."""
    kept: "Callable[[], Column]"
    """The same number of a row of silver."""
    is_dense: bool = True
    """Its numbers have no holes by themselves: one that is absent is missing."""
    runs_on: bool = False
    """Its numbers go on from era to era, and begin with 1 in the first one only."""
    seen: tuple[str, str, str] = ("node", "at", "received")
    """In silver, as SQL: whose a row is, its origin's stamp, and when it arrived."""

    @property
    def own(self) -> tuple[Table, ...]:
        """What no other job writes."""
        return (self.bronze, self.quarantine, self.silver, *self.more)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Everything that its job writes."""
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
"""Of every stream that has a job, by its name."""
