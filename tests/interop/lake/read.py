"""Opens every table of a lake with one reader and says what it sees: rows, the sum of each whole-number column, names.

    python read.py polars|pandas|deltalake LAKE

A line of JSON per table. Runs in an environment of its own, which knows nothing of Weft.
"""

import json
import sys
from pathlib import Path

Seen = tuple[list[str], int, dict[str, int]]
"""Columns, rows, sums."""


def by_polars(path: str) -> Seen:
    import polars as pl

    frame = pl.scan_delta(path).collect()
    whole = [name for name, kind in frame.schema.items() if kind == pl.Int64]
    return frame.columns, frame.height, {name: int(frame[name].cast(pl.Int128).sum()) for name in whole}


def by_pandas(path: str) -> Seen:
    from deltalake import DeltaTable

    table = DeltaTable(path)
    frame = table.to_pandas()
    whole = [field.name for field in table.schema().fields if str(field.type) == 'PrimitiveType("long")']
    sums = {name: sum(int(value) for value in frame[name].dropna()) for name in whole}
    return list(frame.columns), len(frame), sums


def by_deltalake(path: str) -> Seen:
    from deltalake import DeltaTable

    rows = DeltaTable(path).to_pyarrow_table()
    whole = [field.name for field in rows.schema if str(field.type) == "int64"]
    sums = {name: sum(value for value in rows.column(name).to_pylist() if value is not None) for name in whole}
    return rows.column_names, rows.num_rows, sums


def main(reader: str, lake: str) -> None:
    for path in sorted(Path(lake, "tables").glob("*/*")):
        names, count, sums = {"polars": by_polars, "pandas": by_pandas, "deltalake": by_deltalake}[reader](str(path))
        said = {"table": ".".join(path.parts[-2:]), "columns": sorted(names), "rows": count, "sums": sums}
        sys.stdout.write(json.dumps(said) + "\n")


main(*sys.argv[1:])
