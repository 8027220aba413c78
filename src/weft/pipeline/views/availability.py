"""The availability of services per day (PIP-054).

What a broker reports about an instance holds until its next report, as long as records of the broker arrive: for each of
its starts, from the first record to the last. Between two starts, and where the number of a catalog change is missing,
the state is unknown. Times are in whole milliseconds, and a state begins in the same millisecond in which the one before
ends; so the four parts of a day always add up to it.

```
lives     for each start of a broker, the time from its first record to its last
told      changes in the broker's order; if its clock was set back, the time stands still until the clock has caught up
points    changes and the ends of lives, in order; between two with consecutive numbers nothing is missing
known     spans of time in which the state is known
runs      for each instance, the time from one state to the next
pieces    runs within known spans, cut at midnight
```
"""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.gold import COMPLETENESS
from weft.pipeline.schemas.silver import CATALOG, EVENTS
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.view import View

DAY_MS: Final = 86_400_000
AVAILABILITY: Final = table_of(
    "gold.availability",
    "One day (UTC) of an instance of a service, as one broker recorded it: how long it was in which state. The parts add up "
    "to the day, exactly. There is a row for each day from the registration to the removal, or until the broker's records "
    "end. A view over `silver.catalog` and `silver.events`, for `weft sql`; it has no files.",
    (
        Column("day", "date", "the day, UTC"),
        Column("name", "string", "name of the service"),
        Column("instance", "string", "name of the instance"),
        Column("broker", "string", "node of the broker, 32 hex"),
        Column("up_ms", "bigint", "time in which it was active"),
        Column("suspect_ms", "bigint", "time in which a beat was missing"),
        Column("down_ms", "bigint", "time in which it was inactive or removed"),
        Column(
            "unknown_ms",
            "bigint",
            "unknown time: not registered yet, the broker was away, or a change of the instance is missing",
        ),
        Column("transitions", "bigint", "how often it changed between up, suspect and down"),
        Column("longest_outage_ms", "bigint", "the longest time on that day in which it was down without a break"),
    ),
)
_SQL: Final = """
WITH said AS (
    SELECT origin AS broker, era, sequence, name, instance, epoch_ms("at") AS ms, state = 'none' AS is_gone,
           CASE state WHEN 'active' THEN 'up' WHEN 'suspect' THEN 'suspect' ELSE 'down' END AS state
    FROM {silver_catalog}
), heard AS (
    SELECT broker, era, ms FROM said
    UNION ALL SELECT origin, era, epoch_ms("at") FROM {silver_events}
    UNION ALL SELECT origin, era, epoch_ms(unnest([first_at, last_at])) FROM {gold_completeness} WHERE stream IN ('samples', 'events')
), spans AS (
    SELECT broker, era, min(ms) AS first, max(ms) AS last FROM heard
    WHERE ms IS NOT NULL AND broker IN (SELECT broker FROM said) GROUP BY broker, era
), lives AS (
    SELECT broker, era, greatest(first, coalesce(upto, first)) AS first, greatest(last, coalesce(upto, last)) AS last FROM (
        SELECT *, max(last) OVER (PARTITION BY broker ORDER BY era ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS upto
        FROM spans
    )
), told AS (
    SELECT said.* EXCLUDE (ms), max(greatest(ms, first)) OVER (
        PARTITION BY said.broker ORDER BY said.era, sequence ROWS UNBOUNDED PRECEDING
    ) AS ms
    FROM said JOIN lives USING (broker, era)
), ends AS (
    SELECT origin AS broker, era, max(sequence) AS highest FROM {silver_catalog} GROUP BY ALL
    UNION ALL SELECT origin, era, highest_known FROM {gold_completeness} WHERE stream = 'catalog'
), points AS (
    SELECT broker, era, sequence, ms FROM told
    UNION ALL SELECT broker, era, 0, first FROM lives
    UNION ALL
    SELECT broker, era, 1 + coalesce((SELECT max(highest) FROM ends WHERE ends.broker = lives.broker AND ends.era = lives.era), 0), last
    FROM lives
), stretches AS (
    SELECT broker, era, ms AS first, lead(ms) OVER numbers AS last, lead(sequence) OVER numbers = sequence + 1 AS is_known
    FROM points WINDOW numbers AS (PARTITION BY broker, era ORDER BY sequence)
), known AS (
    SELECT broker, min(first) AS first, max(last) AS last FROM (
        SELECT *, count(*) FILTER (is_new) OVER (PARTITION BY broker ORDER BY first, last) AS island FROM (
            SELECT *, first IS DISTINCT FROM lag(last) OVER (PARTITION BY broker ORDER BY first, last) AS is_new
            FROM stretches WHERE is_known AND last > first
        )
    ) GROUP BY broker, island
), turns AS (
    SELECT * FROM (
        SELECT *, lag(state) OVER (PARTITION BY broker, name, instance ORDER BY era, sequence) AS before FROM told
    ) WHERE state IS DISTINCT FROM before
), runs AS (
    SELECT broker, name, instance, state, ms AS first,
           lead(ms) OVER (PARTITION BY broker, name, instance ORDER BY era, sequence) AS last
    FROM turns
), met AS (
    SELECT broker, name, instance, state, greatest(runs.first, known.first) AS first,
           least(coalesce(runs.last, known.last), known.last) AS last
    FROM runs JOIN known USING (broker) WHERE runs.first < known.last AND coalesce(runs.last, known.last) > known.first
), cut AS (
    SELECT *, unnest(range(first // @DAY, (last - 1) // @DAY + 1)) AS number FROM met WHERE last > first
), pieces AS (
    SELECT broker, name, instance, number, state, least(last, (number + 1) * @DAY) - greatest(first, number * @DAY) AS ms FROM cut
), instances AS (
    SELECT broker, name, instance, min(ms) // @DAY AS first, max(ms) // @DAY AS last, arg_max(is_gone, (era, sequence)) AS is_gone
    FROM told GROUP BY ALL
), days AS (
    SELECT broker, name, instance, unnest(range(first, greatest(last, CASE WHEN NOT is_gone THEN upto END) + 1)) AS number
    FROM instances JOIN (SELECT broker, max(last) // @DAY AS upto FROM lives GROUP BY broker) USING (broker)
), sums AS (
    SELECT broker, name, instance, number, coalesce(sum(ms) FILTER (state = 'up'), 0)::BIGINT AS up_ms,
           coalesce(sum(ms) FILTER (state = 'suspect'), 0)::BIGINT AS suspect_ms,
           coalesce(sum(ms) FILTER (state = 'down'), 0)::BIGINT AS down_ms,
           coalesce(max(ms) FILTER (state = 'down'), 0)::BIGINT AS longest_outage_ms
    FROM days LEFT JOIN pieces USING (broker, name, instance, number) GROUP BY ALL
), counts AS (
    SELECT broker, name, instance, ms // @DAY AS number, count(*) AS transitions FROM turns WHERE before IS NOT NULL GROUP BY ALL
)
SELECT DATE '1970-01-01' + number::INTEGER AS day, name, instance, broker, up_ms, suspect_ms, down_ms,
       @DAY - up_ms - suspect_ms - down_ms AS unknown_ms, coalesce(transitions, 0) AS transitions, longest_outage_ms
FROM sums LEFT JOIN counts USING (broker, name, instance, number)
"""
VIEWS: Final = (View(AVAILABILITY, (CATALOG, EVENTS, COMPLETENESS), _SQL.replace("@DAY", str(DAY_MS))),)
