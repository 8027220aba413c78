"""Views over the operations of documents (PIP-053)."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.silver import DOCUMENTS
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.view import View

DOCUMENT_OPERATIONS: Final = table_of(
    "gold.document_operations",
    "An operation that is part of the document of a session, in the order in which all nodes fold. Operations after a "
    "missing number of their source are not here (DOC-010). A view over `silver.documents`, for `weft sql`; it has no files.",
    (
        Column("session", "string", "name of the session"),
        Column("place", "bigint", "place in the order of the session, from 1"),
        Column("source", "string", "who made it, 32 hex"),
        Column("sequence", "bigint", "its number at that source"),
        Column("eff", "double", "effective time, seconds since 1970"),
        Column("at", "timestamp", "the same as a time; null: the operation has none"),
        Column("verb", "string", "what it does"),
        Column("reference", "string", "the part of the document"),
        Column("by", "string", "the operator", optional=True),
        Column(
            "inert_reason", "string", "why it has no effect, if that follows from the operation alone", optional=True
        ),
        Column("received_at", "timestamp", "when a node received it, or made it"),
        Column("body", "string", "the operation, as text"),
    ),
)
DOCUMENT_SESSIONS: Final = table_of(
    "gold.document_sessions",
    "What the lake has of a session. A view over `silver.documents`, for `weft sql`; it has no files.",
    (
        Column("session", "string", "name of the session"),
        Column("schema", "string", "schema of its document", optional=True),
        Column("operations", "bigint", "operations that are part of the document"),
        Column("beyond", "bigint", "operations after a missing number of their source"),
        Column("sources", "bigint", "how many sources (starts of nodes) have made operations"),
        Column("vector", "map<string,bigint>", "for each source, the number up to which all operations are here"),
        Column("first_eff", "double", "effective time of the earliest operation, seconds since 1970", optional=True),
        Column("last_eff", "double", "effective time of the latest operation", optional=True),
        Column("last_received", "timestamp", "latest arrival"),
    ),
)
PREFIX: Final = "row_number() OVER (PARTITION BY session, source ORDER BY sequence) = sequence"
"""A condition: all earlier operations of the same source are in the lake too."""
_OPERATIONS: Final = """
SELECT session, row_number() OVER (PARTITION BY session ORDER BY eff, source, sequence) AS place, source, sequence, eff,
       CASE WHEN eff > 0 THEN to_timestamp(eff) END AS "at", verb, reference, "by", inert_reason, received_at,
       coalesce(try(decode(body)), body::VARCHAR) AS body
FROM (SELECT * FROM {silver_documents} QUALIFY @PREFIX)
"""
_SESSIONS: Final = """
WITH operations AS (SELECT *, @PREFIX AS stands FROM {silver_documents}),
vectors AS (SELECT session, map_from_entries(list((source, latest) ORDER BY source)) AS vector FROM (
    SELECT session, source, max(sequence) AS latest FROM operations WHERE stands GROUP BY session, source
) GROUP BY session)
SELECT session, max(schema) AS schema, count(*) FILTER (stands) AS operations, count(*) FILTER (NOT stands) AS beyond,
       count(DISTINCT source) AS sources, any_value(vector) AS vector, min(eff) FILTER (stands) AS first_eff,
       max(eff) FILTER (stands) AS last_eff, max(received_at) AS last_received
FROM operations LEFT JOIN vectors USING (session) GROUP BY session
"""
VIEWS: Final = (
    View(DOCUMENT_OPERATIONS, (DOCUMENTS,), _OPERATIONS.replace("@PREFIX", PREFIX)),
    View(DOCUMENT_SESSIONS, (DOCUMENTS,), _SESSIONS.replace("@PREFIX", PREFIX)),
)
