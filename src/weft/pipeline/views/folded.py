"""The SELECTs of folded tables together with the rows of silver after the last fold (PIP-045, PIP-050).

Rows of samples whose batch is null are pending: no batch has taken them yet (PIP-102).
"""

from typing import Final

from weft.pipeline.schemas.gold import ROLLUP_1D, ROLLUP_1H, ROLLUP_1M

WIDTHS: Final = {ROLLUP_1M: "minute", ROLLUP_1H: "hour", ROLLUP_1D: "day"}
ROLLUP_VIEW: Final = """
WITH parts AS (
    SELECT * FROM {folded}
    UNION ALL BY NAME
    SELECT node, "group", series, "at" AS window_start, (result IS NOT NULL)::BIGINT AS n, result AS sum,
           result * result AS sum_sq, result AS min, result AS max, point AS first, point AS last,
           coalesce(reason IN ('reset', 'base-reset'), false)::BIGINT AS resets, sketch_of(result) AS sketch
    FROM (SELECT *, CASE WHEN result IS NOT NULL THEN
                 {{'at': "at", 'era': era, 'sequence': sequence, 'value': result}} END AS point FROM {values})
    WHERE batch > {mark}
)
SELECT node, any_value("group") AS "group", series, date_trunc('{width}', window_start) AS window_start,
       sum(n)::BIGINT AS n, sum(sum) AS sum, sum(sum_sq) AS sum_sq, min(min) AS min, max(max) AS max,
       min(first) AS first, max(last) AS last, sum(resets)::BIGINT AS resets,
       CASE WHEN count(*) = 1 THEN any_value(sketch) ELSE sketch_merge(list(sketch)) END AS sketch
FROM parts GROUP BY node, series, date_trunc('{width}', window_start)
"""
LATEST_VIEW: Final = """
WITH raw AS (
    SELECT node, "group", series, origin, era, sequence, "at", received, value, base, text FROM {folded}
    UNION ALL BY NAME
    SELECT node, "group", series, origin, era, sequence, "at", received, value, base, text FROM {samples}
    WHERE batch > {mark} OR batch IS NULL
), newest AS (
    SELECT * FROM raw QUALIFY row_number() OVER (PARTITION BY node, series ORDER BY "at" DESC, era DESC, sequence DESC) = 1
), outcomes AS (
    SELECT node, series, result, result_at, result_era, result_sequence, 0 AS turn FROM {folded} WHERE result_at IS NOT NULL
    UNION ALL BY NAME
    SELECT node, series, result, "at" AS result_at, era AS result_era, sequence AS result_sequence, 1 AS turn
    FROM {values} WHERE batch > {mark} AND result IS NOT NULL
), calculated AS (
    SELECT * FROM outcomes
    QUALIFY row_number() OVER (
        PARTITION BY node, series ORDER BY result_at DESC, result_era DESC, result_sequence DESC, turn DESC
    ) = 1
)
SELECT newest.*, result, result_at, result_era, result_sequence
FROM newest LEFT JOIN calculated USING (node, series)
"""
