"""Documents, made from their operations (PIP-053)."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.silver import DOCUMENTS
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.view import View

DOCUMENT_OPERATIONS: Final = table_of(
    "gold.document_operations",
    "An operation of a session that stands in its document, in the order in which all nodes fold: what lies behind a "
    "number that has not come is not here (DOC-010). A view over `silver.documents`, for `weft sql`: no files of its own.",
    (
        Column("session", "string", "name of the session"),
        Column("place", "bigint", "place in the order of the session, from 1"),
        Column("source", "string", "who made it, 32 hex"),
        Column("sequence", "bigint", "its number there"),
        Column("eff", "double", "effective time, seconds since 1970"),
        Column("at", "timestamp", "the same as a time; null: it said none"),
        Column("verb", "string", "what it does"),
        Column("reference", "string", "what it is about"),
        Column("by", "string", "the operator", optional=True),
        Column("inert_reason", "string", "why it changes nothing, if that is seen from itself alone", optional=True),
        Column("received_at", "timestamp", "when a node received it, or made it"),
        Column("body", "string", "the operation, as text"),
    ),
)
DOCUMENT_SESSIONS: Final = table_of(
    "gold.document_sessions",
    "A session: what the lake has of it. A view over `silver.documents`, for `weft sql`: no files of its own.",
    (
        Column("session", "string", "name of the session"),
        Column("schema", "string", "schema of its document", optional=True),
        Column("operations", "bigint", "operations that stand in the document"),
        Column("beyond", "bigint", "operations that lie behind a number that has not come"),
        Column("sources", "bigint", "who has made operations: starts of nodes"),
        Column("vector", "map<string,bigint>", "of each source, up to which number everything is here"),
        Column("first_eff", "double", "effective time of the earliest, seconds since 1970", optional=True),
        Column("last_eff", "double", "effective time of the latest", optional=True),
        Column("last_received", "timestamp", "latest arrival"),
    ),
)
PREFIX: Final = "row_number() OVER (PARTITION BY session, source ORDER BY sequence) = sequence"
"""Whether every earlier operation of the same source is in the lake too."""
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
