"""Writes rows to a file, batch by batch, as Parquet or Arrow's IPC format.

The file appears only when it is complete.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.base.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

UNFINISHED: Final = ".tmp"


def refuse_inside(lake: Path, out: Path) -> None:
    """Raise UserError `bad-place` for a file inside the lake, where it could replace one of the lake's files."""
    if out.resolve().is_relative_to(lake.resolve()):
        raise UserError(
            "bad-place", f"{out} is inside the lake, where it could replace a file", "name a file elsewhere"
        )


def file_rows(batches: "Iterator[pa.RecordBatch | pa.Schema]", *, parquet: Path | None, arrow: Path | None) -> int:
    """Write a schema and its rows to the one of the two files that is named; returns how many rows.

    A file that exists is replaced; on OSError it is unchanged.
    """
    target = parquet or arrow
    assert target is not None
    fresh = target.with_name(target.name + UNFINISHED)
    try:
        rows = _written(batches, fresh, is_parquet=parquet is not None)
        os.replace(fresh, target)  # noqa: PTH105  # the name says that it replaces
    finally:
        fresh.unlink(missing_ok=True)
    return rows


def _written(batches: "Iterator[pa.RecordBatch | pa.Schema]", path: Path, *, is_parquet: bool) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = next(batches)
    assert isinstance(schema, pa.Schema)
    opened = pq.ParquetWriter(path, schema, compression="zstd") if is_parquet else pa.ipc.new_file(path, schema)
    rows = 0
    with opened as writer:
        for batch in batches:
            assert isinstance(batch, pa.RecordBatch)
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
