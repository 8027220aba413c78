"""Reads a Delta table with plain DuckDB: the Parquet files that a version's log names (PIP-090).

Columns have the names, types and order of the log, whatever a file has: a column missing in a file is null, and a
widened type is the wide one. Filters and projections are pushed down to the files; for days that cannot match, only the
footers are read.
"""

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.base.errors import UserError
from weft.pipeline.versions import paths_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from deltalake import DeltaTable

MISSING: Final = ("No such file", "No files found")
"""DuckDB's error text when a file named in the log does not exist."""

ADOPTED: Final = "bronze."
BATCH: Final = "coalesce({own}, try_cast(substr(parse_filename(filename), 2, 10) AS BIGINT))"
"""The batch of a bronze row; an adopted segment has it only in its file name."""
ROWS: Final = "SELECT {columns} FROM {source}"


def scan(connection: "duckdb.DuckDBPyConnection", handle: "DeltaTable") -> str:
    """The SELECT of all rows of a table. Errors: duckdb.IOException with a text of `MISSING`, UserError `bad-place`."""
    import pyarrow as pa

    schema = pa.schema(handle.schema())
    files = paths_of(handle.file_uris())
    if not files:
        nothing = dict.fromkeys(schema.names, "NULL")
        return ROWS.format(columns=typed(connection, schema, nothing), source="(SELECT 1) WHERE false")
    is_adopting = str(handle.metadata().name).startswith(ADOPTED)
    source = _source(files, handle.metadata().partition_columns, is_named=is_adopting)
    there = connection.sql(f"FROM {source}").columns
    made = {name: "NULL" for name in schema.names if name not in there}
    if is_adopting:
        made["batch"] = BATCH.format(own=made.get("batch", "batch"))
    return ROWS.format(columns=typed(connection, schema, made), source=source)


def typed(connection: "duckdb.DuckDBPyConnection", schema: "pa.Schema", made: dict[str, str]) -> str:
    """The columns of a schema in their types: an expression of `made`, else the column of that name."""
    told = connection.from_arrow(schema.empty_table())
    every = zip(told.types, told.columns, strict=True)
    return ", ".join(f'CAST({made.get(name, _column(name))} AS {kind}) AS "{name}"' for kind, name in every)


def _column(name: str) -> str:
    return f'"{name}"'


def _source(files: list[str], partitions: list[str], *, is_named: bool) -> str:
    """The files, on request with the file name in each row. The partition column is a date, from the path."""
    for name in partitions:
        if sum(part.startswith(f"{name}=") for part in Path(files[0]).parts) > 1:
            why = f"the lake lies in a folder {name}=…, whose name would be taken for the {name} of its rows"
            raise UserError("bad-place", why, "move the lake, or rename the folder")
    names = ", ".join(quoted(glob.escape(file)) for file in files)
    types = ", ".join(f"{name}: DATE" for name in partitions)
    divided = f"hive_partitioning = true, hive_types = {{{types}}}" if partitions else "hive_partitioning = false"
    return f"read_parquet([{names}], union_by_name = true, filename = {str(is_named).lower()}, {divided})"


def quoted(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
