"""Roll-ups between an import and the fold that follows it: days of datasets are made anew of all their values (PIP-099).

As `weft.pipeline.fold.Recomputed`, for DuckDB. A roll-up's view takes its folded rows and its values from these instead, if the
log says that values of a dataset stand behind the mark.
"""

from typing import Final

ANY: Final = "dataset IS NOT NULL AND batch > {mark}"
"""Files of values, for Delta's log."""
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
    """What stands in the place of a roll-up's own rows, and of the values, whose batch then says that they are fresh."""
    names = {"folded": folded, "values": values, "mark": mark}
    return _FOLDED.format(**names), _VALUES.format(**names)
