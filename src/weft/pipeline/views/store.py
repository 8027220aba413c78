"""The store, made from its changes (PIP-051)."""

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
STORE_HISTORY: Final = table_of(
    "gold.store_history",
    "One version of an entry of the store: a change of it, and from when to when it stood. Of an instant that is the "
    "greatest change by (tock, tick, lower name of the node) of those made until then, whenever they arrived (PIP-051). "
    "A view over `silver.store`, for `weft sql`: no files of its own.",
    (
        Column("path_text", "string", "where the entry stands: elements joined by dots"),
        Column("value", "string", "the value as JSON; null: deleted, or too large to be kept", optional=True),
        Column("deleted", "boolean", "there is no value from here on"),
        Column("valid_from", "timestamp", "when the change was made"),
        Column("valid_to", "timestamp", "when the first greater change was made; null: it stands", optional=True),
        Column("stood", "boolean", "it was in force at all; false: a greater change was older"),
        Column("node", "string", "who made the change"),
        Column("tick", "bigint", "number of the change"),
        Column("tock", "bigint", "date of the change"),
        Column("by", "string", "the user, if there are users", optional=True),
        Column("received", "timestamp", "when a node received it first"),
        Column("path", "array<string>", "the elements of the path"),
    ),
)
GREATER: Final = (
    "PARTITION BY path_text ORDER BY tock, tick, node DESC ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"
)
"""Window over the changes of an entry that are greater than one of them."""
_HISTORY: Final = """
SELECT path_text, value, deleted, "at" AS valid_from, valid_to, coalesce(valid_to > "at", true) AS stood, node, tick, tock,
       "by", received, path
FROM (SELECT *, min("at") OVER (@GREATER) AS valid_to FROM {silver_store})
"""
VIEWS: Final = (
    View(STORE_CURRENT, (STORE,), _CURRENT),
    View(STORE_HISTORY, (STORE,), _HISTORY.replace("@GREATER", GREATER)),
)
