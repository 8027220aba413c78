"""Roll-ups between an import and the next fold: days of datasets are computed anew from all their values (PIP-099).

The same as `weft.pipeline.fold.Recomputed`, for DuckDB. If the log shows values of a dataset after the mark, the view of a
roll-up reads these instead of its folded rows and values.
"""

from typing import Final

ANY: Final = "dataset IS NOT NULL AND batch > {mark}"
"""A condition on Delta's log: files with values of datasets that are not folded yet."""
_FOLDED: Final = """(
    WITH days AS (
        SELECT DISTINCT node, series, date_trunc('day', "at") AS day FROM {values} WHERE batch > {mark} AND dataset IS NOT NULL
    )
    SELECT r.* FROM {folded} r
    ANTI JOIN days d ON r.node = d.node AND r.series = d.series AND date_trunc('day', r.window_start) = d.day
)"""
_VALUES: Final = """(
    WITH days AS (
        SELECT DISTINCT node, series, date_trunc('day', "at") AS day FROM {values} WHERE batch > {mark} AND dataset IS NOT NULL
    )
    SELECT r.* FROM {values} r
    ANTI JOIN days d ON r.node = d.node AND r.series = d.series AND date_trunc('day', r."at") = d.day
    UNION ALL BY NAME
    SELECT r.* REPLACE ({mark} + 1 AS batch) FROM {values} r
    SEMI JOIN days d ON r.node = d.node AND r.series = d.series AND date_trunc('day', r."at") = d.day
)"""


def sources(folded: str, values: str, mark: int) -> tuple[str, str]:
    """What to read instead of a roll-up's rows, and instead of the values. These values get a batch after the mark."""
    names = {"folded": folded, "values": values, "mark": mark}
    return _FOLDED.format(**names), _VALUES.format(**names)
