"""The five queries at the end of the demonstration, as anybody could ask them with `weft sql`."""

from typing import Final, NamedTuple


class Question(NamedTuple):
    """A question in words, and in SQL over the tables of the lake."""

    words: str
    sql: str


QUESTIONS: Final = (
    Question(
        "Which processes were the busiest in the last minute?",
        """
        SELECT labels['process'] AS process, round(avg(result), 2) AS percent_of_one_cpu, count(*) AS measured
        FROM silver.values JOIN silver.series USING (series)
        WHERE config_name = 'process_cpu' AND result IS NOT NULL
          AND "at" > (SELECT max("at") FROM silver.values) - INTERVAL 1 MINUTE
        GROUP BY process ORDER BY percent_of_one_cpu DESC LIMIT 5
        """,
    ),
    Question(
        "How busy was each machine, minute by minute?",
        """
        SELECT window_start AS minute, node, n AS measured, round(sum / n, 1) AS mean_percent, round(max, 1) AS max_percent
        FROM gold.rollup_1m JOIN silver.series USING (series)
        WHERE config_name = 'cpu' AND n > 0 ORDER BY minute, node
        """,
    ),
    Question(
        "What is the last known memory use of each machine?",
        """
        SELECT node, round(value / 1e9, 2) AS gigabytes, "at"
        FROM gold.latest JOIN silver.series USING (series) WHERE config_name = 'memory' ORDER BY node
        """,
    ),
    Question(
        "What became of all rows, of samples and of what the nodes tell, and how soon?",
        """
        SELECT count(*) AS batches, sum(rows_in)::BIGINT AS rows_in, sum(rows_silver)::BIGINT AS silver,
               sum(rows_duplicate)::BIGINT AS duplicates, sum(rows_quarantine)::BIGINT AS quarantined,
               round(median(freshness_ms) / 1000, 1) AS seconds_to_table
        FROM meta.progress
        """,
    ),
    Question(
        "Is anything missing?",
        """
        SELECT node, era, expected, received, duplicates, lost, missing, missing_ranges, state
        FROM gold.completeness WHERE stream = 'samples' ORDER BY node, era
        """,
    ),
)
