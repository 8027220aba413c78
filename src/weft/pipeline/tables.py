"""Every table and every view of the pipeline, by its full name."""

from typing import Final, NamedTuple

from weft.lake.layout import Layout
from weft.pipeline.schemas.gold import (
    ANOMALIES,
    COMPLETENESS,
    CORRECTIONS,
    LATEST,
    ROLLUP_1D,
    ROLLUP_1H,
    ROLLUP_1M,
)
from weft.pipeline.schemas.meta import (
    EDGES,
    FORGOTTEN,
    LATE,
    PROGRESS,
    TWINS,
)
from weft.pipeline.schemas.silver import (
    CATALOG,
    CONFIGURATION,
    DOCUMENTS,
    EVENTS,
    LOGS,
    MESSAGES,
    SAMPLES,
    SERIES,
    STORE,
    VALUES,
)
from weft.pipeline.schemas.stages import (
    BRONZE_CATALOG,
    BRONZE_CONFIGURATION,
    BRONZE_DOCUMENTS,
    BRONZE_EVENTS,
    BRONZE_LOGS,
    BRONZE_MESSAGES,
    BRONZE_SAMPLES,
    BRONZE_STORE,
    QUARANTINE,
    QUARANTINE_CATALOG,
    QUARANTINE_CONFIGURATION,
    QUARANTINE_DOCUMENTS,
    QUARANTINE_EVENTS,
    QUARANTINE_LOGS,
    QUARANTINE_MESSAGES,
    QUARANTINE_STORE,
)
from weft.pipeline.schemas.table import Table
from weft.pipeline.views import availability, configuration, conflicts, documents, people, runs, store
from weft.pipeline.views.view import View

__all__ = [
    "ADOPTING",
    "ALL",
    "ANOMALIES",
    "BRONZE_CATALOG",
    "BRONZE_CONFIGURATION",
    "BRONZE_DOCUMENTS",
    "BRONZE_EVENTS",
    "BRONZE_LOGS",
    "BRONZE_MESSAGES",
    "BRONZE_SAMPLES",
    "BRONZE_STORE",
    "CATALOG",
    "COMPLETENESS",
    "CONFIGURATION",
    "CORRECTIONS",
    "DOCUMENTS",
    "EDGES",
    "EVENTS",
    "FORGOTTEN",
    "LATE",
    "LATEST",
    "LOGS",
    "MESSAGES",
    "PROGRESS",
    "QUARANTINE",
    "QUARANTINE_CATALOG",
    "QUARANTINE_CONFIGURATION",
    "QUARANTINE_DOCUMENTS",
    "QUARANTINE_EVENTS",
    "QUARANTINE_LOGS",
    "QUARANTINE_MESSAGES",
    "QUARANTINE_STORE",
    "ROLLUP_1D",
    "ROLLUP_1H",
    "ROLLUP_1M",
    "SAMPLES",
    "SERIES",
    "STAGES",
    "STORE",
    "TWINS",
    "VALUES",
    "VIEWS",
    "Stages",
    "Table",
]

ALL: Final[dict[str, Table]] = {
    table.full_name: table
    for table in (
        BRONZE_SAMPLES, QUARANTINE, SAMPLES, VALUES, SERIES, EDGES, TWINS,
        ROLLUP_1M, ROLLUP_1H, ROLLUP_1D, CORRECTIONS, ANOMALIES, LATE, LATEST, COMPLETENESS, PROGRESS, FORGOTTEN,
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

VIEWS: Final[dict[str, View]] = {
    view.table.full_name: view
    for module in (store, documents, configuration, availability, conflicts, runs, people)
    for view in module.VIEWS
}
"""Views: they are queried like tables but have no files."""


def there(layout: Layout) -> list[Table]:
    """The tables that exist."""
    return [table for table in ALL.values() if (layout.table(table.layer, table.name) / LOG).is_dir()]


LOG: Final = "_delta_log"
"""The directory of a table's log, in that of the table."""
ADOPTING: Final = "bronze"
"""The layer whose files may be adopted segments; of such a file, only the name has the batch."""


class Stages(NamedTuple):
    """The tables that a row of a stream can be in."""

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
"""Every stream that has a job, by name, in the order in which jobs start."""
