"""Exports tables, or parts of them, as Parquet, Arrow's IPC format, CSV or OpenMetrics (PIP-098).

Rows are queried as `weft sql` does, so views can be exported, and rows that are not folded yet are included. They are
read and written batch by batch. A range of time applies to the time column of the table. The file appears only when it is
complete.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.base.errors import UserError
from weft.pipeline.exposition import COLUMNS, ORDER, Exposition, Row
from weft.pipeline.filing import UNFINISHED
from weft.pipeline.sql import LAYERS, Lake
from weft.pipeline.tables import ALL, SAMPLES, VALUES, VIEWS, Table

if TYPE_CHECKING:
    import pyarrow as pa

TIMES: Final = ("at", "window_start", "received_at", "since", "start", "hour")
"""The time columns of tables; the first one that a table has is used. Bronze has nanoseconds instead."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ROWS: Final = "SELECT * FROM {table}{where}"
_SAMPLES: Final = "SELECT {columns} FROM silver.samples{where} ORDER BY {order}"
_RESULTS: Final = """
SELECT node, config_name, detail, 'basic' AS type, param, labels, series, epoch_ns("at") AS at_ns, result AS value,
       NULL::BIGINT AS value_long, NULL::DOUBLE AS base, NULL::BIGINT AS base_long
FROM (FROM silver.values{where}) JOIN (SELECT series, config_name, detail, param, labels FROM silver.series) USING (series)
WHERE result IS NOT NULL ORDER BY {order}
"""
_EXPOSED: Final = {SAMPLES.full_name: _SAMPLES, VALUES.full_name: _RESULTS}


class Wish(NamedTuple):
    """What to export."""

    table: Table
    since: datetime | None = None
    until: datetime | None = None
    """End of the range, not included."""


class Exported(NamedTuple):
    """The result of an export."""

    rows: int
    left_out: dict[str, int]
    """Rows that the format cannot express, by reason."""


def table_named(name: str) -> Table:
    """The table or view with this name; a bare name is resolved as in `weft sql`. UserError `no-table`."""
    known = ALL | {view.table.full_name: view.table for view in VIEWS.values()}
    for full_name in (name, *(f"{layer}.{name}" for layer in LAYERS)):
        if full_name in known:
            return known[full_name]
    raise UserError("no-table", f"there is no table {name!r}", "weft lake ls; weft lake schema TABLE")


def rows_of(lake: Lake, wish: Wish) -> "Iterator[pa.RecordBatch | pa.Schema]":
    """The schema of the wanted rows, then the rows. UserError `no-time` if the table has no time column."""
    return lake.batches(_ROWS.format(table=wish.table.full_name, where=_where(wish)))


def expose(lake: Lake, wish: Wish, path: Path) -> Exported:
    """Write samples or calculated values as OpenMetrics to a file, which is replaced (PIP-098).

    UserError `bad-format` for any other table, or OSError; the old file is then unchanged.
    """
    if wish.table.full_name not in _EXPOSED:
        mend = "--format parquet, arrow or csv; or export samples or values"
        raise UserError(
            "bad-format", f"{wish.table.full_name} cannot be written as OpenMetrics, which has samples only", mend
        )
    query = _EXPOSED[wish.table.full_name].format(columns=", ".join(COLUMNS), where=_where(wish), order=ORDER)
    text = Exposition()
    fresh = path.with_name(path.name + UNFINISHED)
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(text.lines(_plain(lake.batches(query))))
        os.replace(fresh, path)  # noqa: PTH105  # the name says that it replaces
    finally:
        fresh.unlink(missing_ok=True)
    return Exported(text.written, text.left_out)


def _plain(batches: "Iterator[pa.RecordBatch | pa.Schema]") -> Iterator[Row]:
    import pyarrow as pa

    for batch in batches:
        if isinstance(batch, pa.RecordBatch):
            yield from batch.to_pylist()


def _where(wish: Wish) -> str:
    bounds = [(sign, at) for sign, at in ((">=", wish.since), ("<", wish.until)) if at is not None]
    if not bounds:
        return ""
    names = wish.table.schema.names
    column = next((name for name in TIMES if name in names), None)
    if column is not None:
        return " WHERE " + " AND ".join(f"\"{column}\" {sign} TIMESTAMPTZ '{at.isoformat()}'" for sign, at in bounds)
    if "at_ns" in names:
        return " WHERE " + " AND ".join(
            f"at_ns {sign} {(at - EPOCH) // timedelta(microseconds=1)}000" for sign, at in bounds
        )
    raise UserError(
        "no-time", f"{wish.table.full_name} has no time column", "export the whole table: without --since and --until"
    )
