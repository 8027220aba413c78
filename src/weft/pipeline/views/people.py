"""Short views for people: current values, values by the hour, and alerts. A row fits 100 columns (MET-005)."""

from typing import Final

from weft.lake.schemas import Column
from weft.pipeline.schemas.gold import LATEST, ROLLUP_1H
from weft.pipeline.schemas.silver import EVENTS, SERIES
from weft.pipeline.schemas.table import table_of
from weft.pipeline.views.view import View

FORGOTTEN_H: Final = 24  # a series is not shown any more if it is older than the newest of its node by as much
UNITS: Final[dict[tuple[str, str], str]] = {
    **{
        (detail, ""): "%"
        for detail in ("CPU", "MEMORY_PERCENT", "SWAP_PERCENT", "DISK_PERCENT", "INODE_PERCENT", "GPU", "PROC_CPU")
    },
    **{(detail, ""): "By" for detail in ("MEMORY", "SWAP", "MEM_PART", "DISK_FREE", "PROC_MEM", "FILE_SIZE")},
    **{(detail, ""): "By/s" for detail in ("DISK", "NETWORK", "PROC_IO")},
    **{(detail, ""): "s" for detail in ("UPTIME", "CLOCK_OFFSET", "FILE_AGE")},
    **{(detail, ""): "1" for detail in ("DISK_READONLY", "INFO")},
    **{(detail, ""): "{thread}" for detail in ("LOAD", "PROC_THREADS")},
    **{
        ("DISK_IO", unit): word
        for unit, word in (("bytes", "By/s"), ("operations", "{operation}/s"), ("busy_ms", "ms/s"))
    },
    **{("DISK_USE", unit): word for unit, word in (("used", "By"), ("free", "By"), ("inodes", "{inode}"))},
    **{
        ("NET_IF", unit): word
        for unit, word in (
            ("bytes", "By/s"),
            ("packets", "{packet}/s"),
            ("errors", "{error}/s"),
            ("drops", "{packet}/s"),
        )
    },
    **{("HTTP", unit): word for unit, word in (("up", "1"), ("status", "{status}"), ("seconds", "s"))},
    ("CPU_MODE", ""): "s/s",
    ("TCP_STATE", ""): "{connection}",
    ("NET_ERRORS", ""): "{error}/s",
    ("TEMP", ""): "Cel",
    ("FAN", ""): "{rotation}/min",
    ("PRESSURE", ""): "us/s",
    ("CONTEXT", ""): "{switch}/s",
    ("UNITS_FAILED", ""): "{unit}",
    ("PROC_COUNT", ""): "{process}",
    ("PROC_FDS", ""): "{file}",
    ("PROC_STARTS", ""): "{start}",
}
"""Units of calculated values (UCUM), by detail and the label `unit`. A test compares them with `weft metrics`."""
_UNIT: Final = (
    "CASE "
    + " ".join(
        f"WHEN detail = '{detail}' AND coalesce(labels['unit'], '') = '{label}' THEN '{unit}'"
        for (detail, label), unit in UNITS.items()
    )
    + " ELSE '' END"
)
_UNIT_SQL: Final = _UNIT.replace("{", "{{").replace("}", "}}")  # a view's text goes through `format`
_NAMED: Final = f"""
    SELECT series, config_name AS metric, {_UNIT_SQL} AS unit,
           left(trim(concat_ws(' ', nullif(param, ''), array_to_string(map_values(labels), ' '))), 18) AS of
    FROM {{silver_series}}
"""  # noqa: S608  # made of our own text
_NODE: Final = Column("node", "string", "name of the node")
_METRIC: Final = Column("metric", "string", "name of the metric in the configuration")
_OF: Final = Column(
    "of", "string", "what is measured, from parameter and labels, like a disk or a process; the first 18 characters"
)
_LABEL: Final = Column("unit", "string", "unit of the value (UCUM); empty if it is unknown")
RECENT: Final = table_of(
    "gold.recent",
    "Current values: the newest calculated value of each series, and how old it is. A series is left out if its node has "
    f"samples of other series that are {FORGOTTEN_H} hours newer. A view over `gold.latest`, for `weft sql`; it has no "
    "files.",
    (
        _NODE,
        _METRIC,
        _OF,
        Column("value", "double", "the calculated value, rounded to three decimals", optional=True),
        _LABEL,
        Column("at", "string", "month, day and time, UTC; the whole instant is in `gold.latest`"),
        Column("age", "string", "how old it is"),
    ),
)
_RECENT: Final = f"""
WITH named AS ({_NAMED}), aged AS (
    SELECT *, coalesce(result_at, "at") AS told, max("at") OVER (PARTITION BY node) AS newest FROM {{gold_latest}}
)
SELECT node, metric, of, round(result, 3) AS value, unit, strftime(told, '%m-%d %H:%M:%S') AS "at",
       CASE WHEN s < 120 THEN s || ' s' WHEN s < 7200 THEN s // 60 || ' min' WHEN s < 172800 THEN s // 3600 || ' h'
            ELSE s // 86400 || ' d' END AS age
FROM (SELECT *, greatest(0, date_diff('second', told, now())) AS s FROM aged WHERE told > newest - INTERVAL {FORGOTTEN_H} HOUR)
JOIN named USING (series)
ORDER BY node, metric, of
"""  # noqa: S608  # made of our own text
HOURLY: Final = table_of(
    "gold.hourly",
    "Each series by the hour: mean, percentile and greatest value, the newest hour first. A view over `gold.rollup_1h`, for "
    "`weft sql`; it has no files.",
    (
        Column("hour", "string", "month, day and hour, UTC"),
        _NODE,
        _METRIC,
        _OF,
        Column("n", "bigint", "how many values"),
        Column("mean", "double", "mean value; rounded to two decimals, as `p95` and `max`"),
        Column(
            "p95",
            "double",
            "95 % of the values are not above it, to within 1 %; never above `max`",
            optional=True,
        ),
        Column("max", "double", "greatest value"),
        _LABEL,
    ),
)
_HOURLY: Final = f"""
WITH named AS ({_NAMED})
SELECT strftime(window_start, '%m-%d %H:%M') AS hour, node, metric, of, n, round(sum / n, 2) AS mean,
       round(percentile(sketch, 0.95, min, max), 2) AS p95, round(max, 2) AS max, unit
FROM {{gold_rollup_1h}} JOIN named USING (series) WHERE n > 0
ORDER BY window_start DESC, node, metric, of
"""  # noqa: S608  # made of our own text
ALERTS: Final = table_of(
    "gold.alerts",
    "Alerts that fired, the newest first, and until when. A view over `silver.events`, for `weft sql`; it has no files.",
    (
        Column("since", "string", "when the alert was raised: month, day, hour and minute, UTC"),
        Column("until", "string", "when it was cleared; null: not yet", optional=True),
        Column("severity", "string", "severity of the alert"),
        _NODE,
        Column("alert", "string", "name of the alert"),
        _OF,
        Column("value", "double", "value with which it was raised"),
        Column("condition", "string", "condition that was true"),
        Column("says", "string", "text of the alert, its first 22 characters"),
    ),
)
_ALERTS: Final = """
WITH told AS (
    SELECT node, subject AS alert, event, "at", era, sequence, fields, fields->>'$.labels' AS labels FROM {silver_events}
    WHERE event IN ('alert.raised', 'alert.cleared')
), paired AS (
    SELECT *, lead(event) OVER turns AS next_event, lead("at") OVER turns AS next_at FROM told
    WINDOW turns AS (PARTITION BY node, alert, labels ORDER BY era, sequence)
)
SELECT strftime("at", '%m-%d %H:%M') AS since,
       CASE WHEN next_event = 'alert.cleared' THEN strftime(next_at, '%m-%d %H:%M') END AS until,
       fields->>'$.severity' AS severity, node, alert,
       left(array_to_string(fields->>'$.labels.*', ' '), 18) AS of,
       round(TRY_CAST(fields->>'$.value' AS DOUBLE), 3) AS value, fields->>'$.when' AS condition, left(fields->>'$.text', 22) AS says
FROM paired WHERE event = 'alert.raised'
ORDER BY "at" DESC, node
"""
VIEWS: Final = (
    View(RECENT, (LATEST, SERIES), _RECENT),
    View(HOURLY, (ROLLUP_1H, SERIES), _HOURLY),
    View(ALERTS, (EVENTS,), _ALERTS),
)
