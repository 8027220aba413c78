"""Conflicts between people, nodes or roots, and what was rejected.

There are three kinds. Store: conflicts that nodes report when they decide them (STO-013); every node reports each, and it
is listed once. Documents: two bodies under one number (GSP-011), of which the one with the smaller hash counts, and
conflicts that a node has shown to both parties (DOC-040). Configuration: writes of a root that was cut off, which are
lost with its successor's first write (CFG-003). An operation of a document that a later one overrides is not a conflict
and is not listed; folding the document shows it.
"""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.silver import CONFIGURATION, DOCUMENTS, EVENTS
from weft.pipeline.schemas.stages import STAGES
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.configuration import VERSIONS
from weft.pipeline.views.view import View

CONFLICTS: Final = table_of(
    "gold.conflicts",
    "A change that does not count because another one does: in the store, in a document, or in the configuration. A view "
    "over `silver.events`, `silver.configuration` and the operations on documents, for `weft sql`; it has no files.",
    (
        Column("kind", "string", "`store`, `document` or `configuration`"),
        Column("at", "timestamp", "when the conflict was found; for the configuration: when the write was lost"),
        Column("place", "string", "store: path of the entry; document: session and part of it; configuration: key"),
        Column(
            "reason",
            "string",
            "store: `concurrent`, `id-clash` or `tock-regression`; document: `fork` or `conflict`; configuration: `lost-write`",
        ),
        Column("kept", "string", "what counts: a change as JSON, the body of an operation, or a value", optional=True),
        Column("kept_by", "string", "who made it: node, source, or who asked for the write", optional=True),
        Column("lost", "string", "what does not count", optional=True),
        Column("lost_by", "string", "who made that", optional=True),
        Column("told_by", "string", "the node that reported it first; for the configuration: `root`"),
    ),
)
_STORE: Final = """
SELECT 'store' AS kind, min("at") AS "at", fields ->> '$.path' AS place, fields ->> '$.reason' AS reason,
       any_value(fields -> '$.kept')::VARCHAR AS kept, fields ->> '$.kept.node' AS kept_by,
       any_value(fields -> '$.lost')::VARCHAR AS lost, fields ->> '$.lost.node' AS lost_by, arg_min(node, "at") AS told_by
FROM {silver_events} WHERE event = 'store.conflict'
GROUP BY place, reason, kept_by, lost_by, fields ->> '$.kept.tick', fields ->> '$.lost.tick'
"""
_SHOWN: Final = """
SELECT 'document' AS kind, min("at") AS "at",
       concat_ws(' ', fields ->> '$.session', fields ->> '$.slot', fields ->> '$.attribute') AS place, 'conflict' AS reason,
       NULL::VARCHAR AS kept, NULL::VARCHAR AS kept_by, NULL::VARCHAR AS lost, NULL::VARCHAR AS lost_by,
       arg_min(node, "at") AS told_by
FROM {silver_events} WHERE event = 'doc.conflict' GROUP BY fields ->> '$.session', fields ->> '$.id', place
"""
_FORKS: Final = """
WITH told AS (SELECT *, make_timestamptz(received_ns // 1000) AS heard FROM {quarantine_documents} WHERE reason = 'changed'),
first AS (SELECT origin, sequence, min(heard) AS "at", arg_min(drain, heard) AS told_by FROM told GROUP BY ALL),
held AS (SELECT * FROM {silver_documents} SEMI JOIN first USING (origin, sequence)),
bodies AS (SELECT origin, sequence, raw AS body FROM told UNION SELECT origin, sequence, body FROM held),
best AS (SELECT origin, sequence, arg_min(body, sha256(body)) AS kept FROM bodies GROUP BY ALL)
SELECT 'document' AS kind, first."at", concat_ws(' ', session, reference) AS place, 'fork' AS reason,
       coalesce(try(decode(kept)), kept::VARCHAR) AS kept, source || ':' || sequence AS kept_by,
       coalesce(try(decode(bodies.body)), bodies.body::VARCHAR) AS lost, source || ':' || sequence AS lost_by, told_by
FROM bodies JOIN best USING (origin, sequence) JOIN held USING (origin, sequence) JOIN first USING (origin, sequence)
WHERE bodies.body <> kept
"""
_WRITES: Final = """
WITH @VERSIONS
SELECT 'configuration' AS kind, reached.since AS "at", writes.key AS place, 'lost-write' AS reason,
       stands.value AS kept, stands."by" AS kept_by, writes.value AS lost, writes."by" AS lost_by, 'root' AS told_by
FROM (SELECT key, number, min(reign) AS reign FROM lost GROUP BY ALL) AS gone
JOIN writes ON writes.number = gone.number
JOIN timed AS reached ON reached.number = gone.reign
LEFT JOIN versions ON versions.key = gone.key AND versions.step <= gone.reign AND gone.reign < coalesce(versions.next, 9223372036854775807)
LEFT JOIN writes AS stands ON stands.number = versions.number
""".replace("@VERSIONS", VERSIONS)
_SQL: Final = " UNION ALL ".join(f"({one})" for one in (_STORE, _SHOWN, _FORKS, _WRITES))
VIEWS: Final = (View(CONFLICTS, (EVENTS, CONFIGURATION, DOCUMENTS, STAGES["documents"].quarantine), _SQL),)
