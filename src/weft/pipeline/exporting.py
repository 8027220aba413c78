"""Tables, and parts of them, for other programs: Parquet, Arrow's IPC format, CSV, OpenMetrics (PIP-098).

Rows are asked of the lake as `weft sql` asks, so views and what is not folded yet are in, and come batch by batch. What is
asked for from one instant to another is chosen by the time that the table is about. A file is there when it is whole.
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
"""What a table may be about in time, the first of these that it has; bronze has nanoseconds instead."""
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
    """What is to be exported."""

    table: Table
    since: datetime | None = None
    until: datetime | None = None
    """Not included."""


class Exported(NamedTuple):
    """What became of it."""

    rows: int
    left_out: dict[str, int]
    """Rows that the format cannot say, by why."""


def table_named(name: str) -> Table:
    """The table or view that is meant; a bare name is looked for as `weft sql` does. UserError `no-table`."""
    known = ALL | {view.table.full_name: view.table for view in VIEWS.values()}
    for full_name in (name, *(f"{layer}.{name}" for layer in LAYERS)):
        if full_name in known:
            return known[full_name]
    raise UserError("no-table", f"there is no table {name!r}", "weft lake ls; weft lake schema TABLE")


def rows_of(lake: Lake, wish: Wish) -> "Iterator[pa.RecordBatch | pa.Schema]":
    """The schema of the rows that are meant, then the rows. UserError `no-time` if the table is not about time."""
    return lake.batches(_ROWS.format(table=wish.table.full_name, where=_where(wish)))


def expose(lake: Lake, wish: Wish, path: Path) -> Exported:
    """Write samples, or calculated values, as OpenMetrics to a file, in place of what stood there (PIP-098).

    UserError `bad-format` for any other table; OSError; then the file is as it was.
    """
    if wish.table.full_name not in _EXPOSED:
        mend = "--format parquet, arrow or csv; or export samples, or values"
        raise UserError("bad-format", f"{wish.table.full_name} holds no samples, which OpenMetrics is made of", mend)
    query = _EXPOSED[wish.table.full_name].format(columns=", ".join(COLUMNS), where=_where(wish), order=ORDER)
    text = Exposition()
    fresh = path.with_name(path.name + UNFINISHED)
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(text.lines(_plain(lake.batches(query))))
        os.replace(fresh, path)  # noqa: PTH105  # says that it replaces
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
    about = next((name for name in TIMES if name in names), None)
    if about is not None:
        return " WHERE " + " AND ".join(f"\"{about}\" {sign} TIMESTAMPTZ '{at.isoformat()}'" for sign, at in bounds)
    if "at_ns" in names:
        return " WHERE " + " AND ".join(
            f"at_ns {sign} {(at - EPOCH) // timedelta(microseconds=1)}000" for sign, at in bounds
        )
    raise UserError(
        "no-time", f"{wish.table.full_name} is not about time", "the whole table: without --since and --until"
    )
