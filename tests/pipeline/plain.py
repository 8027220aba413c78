"""Tables of a lake with rows as they are wanted: written without Spark, for what only reads them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from tests.pipeline.ground import ERA, A, at_ms
from weft.lake.layout import Layout
from weft.lake.segments import open_lake
from weft.pipeline.tables import Table

Row = dict[str, Any]


def lake_of(path: Path) -> Layout:
    """An empty lake."""
    lake = Layout(path)
    open_lake(lake, "ab" * 16, 1)
    return lake


def put(lake: Layout, table: Table, *rows: Row) -> None:
    """Rows more in a table, which may have none before."""
    path = lake.table(table.layer, table.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_deltalake(str(path), pa.Table.from_pylist(list(rows), table.schema.arrow()), mode="append")


def instant(second: float) -> datetime:
    """An instant of the world of the tests: so many seconds behind its beginning."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ms(0) + 1000 * second)


def wrote(number: int, key: str, value: str | None, at: float | None = None, /, **more: Any) -> Row:
    """A row of `silver.configuration`; written in the second of its number if nothing else is said."""
    stamp = instant(number if at is None else at)
    return {"epoch": 0, "counter": number, "key": key, "value": value, "by": "joe", "at": stamp} | more


def applied(node: str, at: float, number: int, /, **more: Any) -> Row:
    """A row of `silver.events`: a node runs that number. `start`: of its starts, which one."""
    said = {"node": node, "event": "config.applied", "at": instant(at), "number": number}
    identity = {"origin": A, "era": ERA + more.pop("start", 0), "sequence": round(at * 1000) + 100_000}
    return identity | said | more
