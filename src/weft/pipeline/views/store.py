"""The store, made of its changes (PIP-051)."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.silver import STORE
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.view import View

STORE_CURRENT: Final = table_of(
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
_CURRENT: Final = """
SELECT path_text, value, node, tick, tock, "at" AS since, "by", path FROM (
    SELECT * FROM {silver_store}
    QUALIFY row_number() OVER (PARTITION BY path_text ORDER BY tock DESC, tick DESC, node) = 1
) WHERE NOT deleted
"""
VIEWS: Final = (View(STORE_CURRENT, (STORE,), _CURRENT),)
