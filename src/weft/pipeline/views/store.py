"""Views over the changes of the store: its current entries, and their history (PIP-051)."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.silver import STORE
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.view import View

STORE_CURRENT: Final = table_of(
    "gold.store_current",
    "The current value of an entry of the store: its greatest change by (tock, tick, lower name of the node), whenever that "
    "arrived. Entries whose greatest change is a deletion are not here (PIP-051). A view over `silver.store`, for "
    "`weft sql`; it has no files.",
    (
        Column("path_text", "string", "path of the entry: elements joined by dots"),
        Column("value", "string", "the value as JSON; null: too large to be kept", optional=True),
        Column("node", "string", "node that gave it this value"),
        Column("tick", "bigint", "number of that change"),
        Column("tock", "bigint", "logical time of that change"),
        Column("since", "timestamp", "when that change was made"),
        Column("by", "string", "user who made the change, if the store has users", optional=True),
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
    "One version of an entry of the store: a change, and from when to when it was in force. At any instant the greatest "
    "change by (tock, tick, lower name of the node) is in force, of those made until then, whenever they arrived (PIP-051). "
    "A view over `silver.store`, for `weft sql`; it has no files.",
    (
        Column("path_text", "string", "path of the entry: elements joined by dots"),
        Column("value", "string", "the value as JSON; null: deleted, or too large to be kept", optional=True),
        Column("deleted", "boolean", "true: the change deletes the entry"),
        Column("valid_from", "timestamp", "when the change was made"),
        Column(
            "valid_to", "timestamp", "when the first greater change was made; null: it is still in force", optional=True
        ),
        Column("stood", "boolean", "true: it was in force; false: a greater change had been made earlier"),
        Column("node", "string", "node that made the change"),
        Column("tick", "bigint", "number of the change"),
        Column("tock", "bigint", "logical time of the change"),
        Column("by", "string", "user who made the change, if the store has users", optional=True),
        Column("received", "timestamp", "when the first node received it"),
        Column("path", "array<string>", "the elements of the path"),
    ),
)
GREATER: Final = (
    "PARTITION BY path_text ORDER BY tock, tick, node DESC ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"
)
"""A window of SQL: the changes of the same entry that are greater than the current one."""
_HISTORY: Final = """
SELECT path_text, value, deleted, "at" AS valid_from, valid_to, coalesce(valid_to > "at", true) AS stood, node, tick, tock,
       "by", received, path
FROM (SELECT *, min("at") OVER (@GREATER) AS valid_to FROM {silver_store})
"""
VIEWS: Final = (
    View(STORE_CURRENT, (STORE,), _CURRENT),
    View(STORE_HISTORY, (STORE,), _HISTORY.replace("@GREATER", GREATER)),
)
