"""The availability of services per day (PIP-054).

What a broker reports about an instance holds until its next report. It is known while the broker is heard: for each of
its starts, from the first record to the last. Between two starts, and where the number of a catalog change is missing,
the state is unknown. Times are counted in whole milliseconds; each boundary is the same for what ends and for what
begins there, so the four parts of a day always add up to it.

```
lives     of each start of a broker, from when to when it was heard of
told      changes in the broker's order; a clock that is set back stands still
points    changes and the ends of lives, in order; between two of them nothing is missing if they are numbered so
known     stretches of time in which the broker's word counts
runs      of each instance: from one state to the next
pieces    runs, as far as they are known, cut at midnight
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
    "One day (UTC) of an instance of a service, as one broker had it: how long it was in which state. The parts add up "
    "to the day, exactly. From the day on which it was registered to that on which it was removed, or until nothing is "
    "known any more. A view over `silver.catalog` and `silver.events`, for `weft sql`: no files of its own.",
    (
        Column("day", "date", "the day, UTC"),
        Column("name", "string", "of the service"),
        Column("instance", "string", "of its copies, which one"),
        Column("broker", "string", "node of the broker that says so, 32 hex"),
        Column("up_ms", "bigint", "it was active"),
        Column("suspect_ms", "bigint", "a beat was missing"),
        Column("down_ms", "bigint", "it was inactive, or removed"),
        Column(
            "unknown_ms",
            "bigint",
            "nobody knows: not registered yet, the broker was away, or a change of it is missing",
        ),
        Column("transitions", "bigint", "how often it went from one of up, suspect, down to another"),
        Column("longest_outage_ms", "bigint", "the longest time of that day that it was down without a break"),
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
