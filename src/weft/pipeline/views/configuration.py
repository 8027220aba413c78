"""The history of the configuration by key (PIP-052), and which writes nodes have applied.

The order of writes is that of their numbers, not of clocks: a write is in force from the first instant at which its
number or a later one was written. A root that was cut off may have gone on writing. Its writes that its successor did not
have are lost from the successor's first write on, and the earlier values are in force again. So a write may be in force
twice.

```
timed     every write, and the instant from which its number or a later one was written
reigns    the first write of each epoch
lost      writes that were lost, and the reign with which that happened
steps     for each key, the numbers at which its value may change
winners   for each step, the write that is in force
versions  from one winner of a key to the next
```
"""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.silver import CONFIGURATION, EVENTS
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.view import View

CONFIGURATION_HISTORY: Final = table_of(
    "gold.configuration_history",
    "A value of a key of the configuration, and from when to when it was in force at the root. It has two rows if a root "
    "that was cut off had written another value in between. A view over `silver.configuration` and `silver.events`, for "
    "`weft sql`; it has no files.",
    (
        Column("key", "string", "key that was written: a path like /CONFIG/web/metric/cpu"),
        Column(
            "value",
            "string",
            'the value as JSON, `{"$b": base64}` if it is not valid JSON; null: deleted',
            optional=True,
        ),
        Column("valid_from", "timestamp", "when it came into force"),
        Column("valid_to", "timestamp", "when it ceased to be in force; null: it is still in force", optional=True),
        Column("epoch", "bigint", "epoch of the root that wrote it"),
        Column("counter", "bigint", "number of the write"),
        Column("number", "bigint", "epoch and counter in one, as `weft config history` shows it"),
        Column("by", "string", "who asked for it", optional=True),
        Column("was_lost", "boolean", "true: it ceased to be in force because its root was cut off when it wrote it"),
        Column(
            "nodes",
            "array<struct<node:string,first:timestamp,last:timestamp>>",
            "nodes that reported to run a configuration with it: when for the first time, and when for the last",
        ),
    ),
)
VERSIONS: Final = """
writes AS (SELECT *, epoch * 1099511627776 + counter AS number FROM {silver_configuration}),
timed AS (
    SELECT *, min("at") OVER (ORDER BY number ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS since FROM writes
), reigns AS (
    SELECT epoch, min(counter) AS first, min(number) AS number FROM writes GROUP BY epoch
), lost AS (
    SELECT writes.key, writes.number, reigns.number AS reign
    FROM writes JOIN reigns ON reigns.epoch > writes.epoch AND reigns.first <= writes.counter
), steps AS (
    SELECT key, number AS step FROM writes WHERE key IN (SELECT key FROM lost)
    UNION SELECT key, reign FROM lost
), winners AS (
    SELECT steps.key, step, max(writes.number) AS number
    FROM steps LEFT JOIN writes ON writes.key = steps.key AND writes.number <= step AND NOT EXISTS (
        SELECT 1 FROM lost WHERE lost.number = writes.number AND lost.reign <= step
    ) GROUP BY ALL
    UNION ALL
    SELECT key, number, number FROM writes WHERE key NOT IN (SELECT key FROM lost)
), versions AS (
    SELECT key, step, number, lead(step) OVER (PARTITION BY key ORDER BY step) AS next FROM (
        SELECT *, lag(number) OVER (PARTITION BY key ORDER BY step) AS before,
               row_number() OVER (PARTITION BY key ORDER BY step) AS place
        FROM winners
    ) WHERE place = 1 OR number IS DISTINCT FROM before
)"""
"""Common table expressions: for each key, which write is in force from which number to which."""
_HISTORY: Final = """
WITH @VERSIONS, said AS (
    SELECT node, number, min("at") AS first, max("at") AS last FROM {silver_events}
    WHERE event = 'config.applied' AND number IS NOT NULL GROUP BY ALL
), each AS (
    SELECT key, step, next, node FROM versions, (SELECT DISTINCT node FROM said)
), began AS (
    SELECT each.*, said.number AS lowest, said.first FROM each ASOF JOIN said ON each.node = said.node AND each.step <= said.number
), applied AS (
    SELECT began.key, began.step, list({{'node': began.node, 'first': began.first, 'last': said.last}} ORDER BY began.node) AS nodes
    FROM (SELECT *, coalesce(next, 9223372036854775807) AS upto FROM began) AS began
    ASOF JOIN said ON began.node = said.node AND began.upto > said.number
    WHERE began.lowest < began.upto GROUP BY ALL
)
SELECT versions.key, written.value, reached.since AS valid_from, ended.since AS valid_to, written.epoch, written.counter,
       versions.number, written."by",
       EXISTS (SELECT 1 FROM lost WHERE lost.number = versions.number AND lost.reign = versions.next) AS was_lost,
       coalesce(applied.nodes, []) AS nodes
FROM versions JOIN writes AS written ON written.number = versions.number
JOIN timed AS reached ON reached.number = versions.step
LEFT JOIN timed AS ended ON ended.number = versions.next
LEFT JOIN applied ON applied.key = versions.key AND applied.step = versions.step
"""
VIEWS: Final = (View(CONFIGURATION_HISTORY, (CONFIGURATION, EVENTS), _HISTORY.replace("@VERSIONS", VERSIONS)),)
