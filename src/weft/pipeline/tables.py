"""Every table and every view of the pipeline, by its full name."""

import os
from itertools import chain
from pathlib import Path
from typing import Final

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
from weft.pipeline.schemas.stages import STAGES, Stages
from weft.pipeline.schemas.table import Table
from weft.pipeline.views import availability, configuration, conflicts, documents, people, runs, store
from weft.pipeline.views.view import View

__all__ = [
    "ADOPTING",
    "ALL",
    "ANOMALIES",
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
        *STAGES["samples"], VALUES, SERIES, EDGES, TWINS,
        ROLLUP_1M, ROLLUP_1H, ROLLUP_1D, CORRECTIONS, ANOMALIES, LATE, LATEST, COMPLETENESS, PROGRESS, FORGOTTEN,
        *chain.from_iterable(STAGES.values()),
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
    return [table for table in ALL.values() if _has_log(layout.table(table.layer, table.name))]


def _has_log(table: Path) -> bool:
    """Whether a table's log has a file. After a power cut its directory may be there, and its first commit not."""
    try:
        with os.scandir(table / LOG) as files:
            return next(files, None) is not None
    except FileNotFoundError:
        return False


LOG: Final = "_delta_log"
"""The directory of a table's log, in that of the table."""
ADOPTING: Final = "bronze"
"""The layer whose files may be adopted segments; of such a file, only the name has the batch."""
