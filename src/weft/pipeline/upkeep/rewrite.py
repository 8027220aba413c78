"""Writes new files from old rows: joined and sorted, or without the rows to remove (LAK-034, LAK-038).

DuckDB sorts in one thread with limited memory, and uses the disk if that is not enough. The result has exactly the types
of the table; columns that old files lack are null. So large days and files of an old schema need no special care.
"""

import ctypes
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft.lake.layout import Layout
from weft.pipeline.delta import NO_PARTITION, PARQUET, DataFile, data_file
from weft.pipeline.digests import adopted, refuse_damaged
from weft.pipeline.tables import ADOPTING, Table
from weft.pipeline.upkeep.log import LiveFile, absolute, opened

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from pyarrow.compute import Expression
    from pyarrow.dataset import Dataset

MEMORY: Final = "256MB"  # of DuckDB, while it sorts
BATCH_ROWS: Final = 65_536  # also the size of a row group, by whose ranges of series and time readers skip rows
IN_PIECES: Final[dict[str, Any]] = {
    "use_threads": False,
    "batch_size": BATCH_ROWS,
    "batch_readahead": 1,
    "fragment_readahead": 1,
}
SORT_COLUMNS: Final = (
    ("series", "origin", "job", "node"),
    ("at", "at_ns", "window_start"),
    ("era", "sequence", "batch"),
)
"""The sort order in files (LAK-034): of the first two groups the first column that a table has, of the last group all."""
RUNNING: Final = (
    "sequence", "from_sequence", "lsn", "row",
    "at", "at_ns", "received", "received_ns", "window_start", "delay_ms", "span_ms",
)  # fmt: skip
"""Columns of which a row is near the row before: they are stored as differences.

Most of their values are different ones. A dictionary would have them all once more, and then an index for each row.
"""


class Stopped(Exception):
    """The caller has cancelled the work; unfinished files were deleted."""


def goes_on() -> bool:
    """The default for callers that never cancel."""
    return True


def order_of(names: Sequence[str]) -> list[str]:
    """The columns by which a table's rows are sorted.

    >>> order_of(["origin", "era", "sequence", "series", "at"])
    ['series', 'at', 'era', 'sequence']
    """
    who, when, number = SORT_COLUMNS
    first = [next((name for name in group if name in names), None) for group in (who, when)]
    return [name for name in first if name] + [name for name in number if name in names]


def quoted(name: str) -> str:
    return f'"{name}"'


def file_schema(layout: Layout, table: Table) -> "pa.Schema":
    """The columns in the files of a table, from its own log: all but the partition column."""
    import pyarrow as pa

    delta = opened(layout, table)
    assert delta is not None, table.full_name
    schema = pa.schema(delta.schema().to_arrow())
    return pa.schema([field for field in schema if field.name != table.partition])


def held_by(layout: Layout, table: Table, files: Sequence[LiveFile]) -> "Dataset":
    """The rows of some files, with all columns of the table; UserError `damaged` if a file changed (FLD-030)."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    root = layout.table(table.layer, table.name)
    refuse_damaged(root, table, [file.path for file in files], adopted(layout, table))
    schema, paths = file_schema(layout, table), absolute(layout, table, files)
    if table.layer != ADOPTING:
        return ds.dataset(paths, schema=schema, format="parquet")
    form, disk = ds.ParquetFileFormat(), LocalFileSystem()
    pieces = [form.make_fragment(path, disk, _guarantee(file)) for path, file in zip(paths, files, strict=True)]
    return ds.FileSystemDataset(pieces, schema, form, disk)


def _guarantee(file: LiveFile) -> "Expression":
    """A condition that is true for all rows of a file of bronze: their batch, which rows of an adopted segment lack."""
    import pyarrow.compute as pc

    has_one_batch = file.path.rpartition("/")[2].startswith("b") and file.first_batch == file.last_batch
    return pc.field("batch") == file.first_batch if has_one_batch and file.first_batch is not None else pc.scalar(True)


def counted(layout: Layout, table: Table, files: Sequence[LiveFile], only: "Expression") -> list[int]:
    """For each file, how many of its rows match `only`."""
    rows = held_by(layout, table, files)
    return [part.scanner(rows.schema, filter=only, **IN_PIECES).count_rows() for part in rows.get_fragments()]


@contextmanager
def asked(
    layout: Layout,
    table: Table,
    files: Sequence[LiveFile],
    columns: Sequence[str] | None = None,
    only: "Expression | None" = None,
) -> "Iterator[duckdb.DuckDBPyConnection]":
    """A DuckDB connection in which table `held` has the rows of some files; it can be read once.

    Data that exceeds the memory goes to disk. `columns`: only these; `only`: only rows that match.
    """
    import duckdb

    spill = layout.spill() / uuid.uuid4().hex
    spill.mkdir(parents=True)
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": MEMORY,
        "temp_directory": str(spill),
    }
    connection = duckdb.connect(":memory:", config=config)
    try:
        connection.execute("SET TimeZone = 'UTC'")
        wanted = None if columns is None else list(dict.fromkeys(columns))
        held = held_by(layout, table, files).scanner(columns=wanted, filter=only, **IN_PIECES)
        connection.register("held", held)
        yield connection
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)
        _give_back()


def _give_back() -> None:
    """Return freed memory to the system; otherwise the allocators keep 100 MB and more after a sort."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim(0)


class Asking(NamedTuple):
    """Options for rewriting files."""

    only: "Expression | None" = None
    """A condition for the rows to keep; None: all."""
    is_wanted: Callable[[], bool] = goes_on
    """Called repeatedly; if it returns false, the work is cancelled: Stopped."""


ALL_ROWS: Final = Asking()


def rewritten(
    layout: Layout, table: Table, files: Sequence[LiveFile], name: str, asking: Asking = ALL_ROWS
) -> DataFile | None:
    """Write one new file with the rows of these files, which are of one partition; None if no row is left.

    It is in the same directory as `<name>-<uuid>-0000.parquet` and belongs to no version yet. Raises Stopped, OSError.
    """
    schema = file_schema(layout, table)
    columns = ", ".join(map(quoted, schema.names))
    order = ", ".join(map(quoted, order_of(schema.names)))
    root = layout.table(table.layer, table.name)
    target = directory_of(root, table, files[0].partition) / f"{name}-{uuid.uuid4().hex}-0000.parquet"
    with asked(layout, table, files, only=asking.only) as connection:
        rows = connection.sql(f"SELECT {columns} FROM held ORDER BY {order}")  # noqa: S608  # our own text
        try:
            count = _write(rows.to_arrow_reader(BATCH_ROWS), schema, target, asking.is_wanted)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    if count:
        return data_file(root, table, target)
    target.unlink()
    return None


def directory_of(root: Path, table: Table, partition: str | None) -> Path:
    """The directory of the files of a partition."""
    if table.partition is None:
        return root
    return root / f"{table.partition}={NO_PARTITION if partition is None else partition}"


def encodings_of(schema: "pa.Schema") -> dict[str, Any]:
    """Options for a writer of Parquet: which columns are stored as differences, and which with a dictionary."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    running = [name for name in RUNNING if name in schema.names]
    nothing = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), nothing)
    leaves = pq.read_metadata(pa.BufferReader(nothing.getvalue())).schema
    paths = [leaves.column(place).path for place in range(len(leaves))]  # text within maps and lists, too
    return {
        "use_dictionary": [path for path in paths if path not in running],
        "column_encoding": dict.fromkeys(running, "DELTA_BINARY_PACKED"),
    }


def _write(rows: "pa.RecordBatchReader", schema: "pa.Schema", target: Path, is_wanted: Callable[[], bool]) -> int:
    """Write the rows as one file; returns how many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    with pq.ParquetWriter(target, schema, **PARQUET, **encodings_of(schema)) as writer:
        for batch in rows:
            if not is_wanted():
                raise Stopped
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            count += batch.num_rows
    return count
