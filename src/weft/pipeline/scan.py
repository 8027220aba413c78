"""Makes a SELECT by which DuckDB reads a version of a Delta table: the Parquet files that its log names (PIP-090).

Columns have the names, types and order of the log, whatever a file has: a column that a file lacks is null, and a narrow
type is widened. DuckDB pushes filters and projections down to the files; of days that cannot match it reads only the
footers.
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
"""Parts of DuckDB's error text when a file that the log names does not exist."""

WHOLE: Final = "weft.whole"
"""A table's property: of how many columns it was made. While it has no more, each of its files has all of them, and none is
opened only to see which it has."""
ADOPTED: Final = "bronze."
BATCH: Final = "coalesce({own}, try_cast(substr(parse_filename(filename), 2, 10) AS BIGINT))"
"""The batch of a row of bronze: an adopted segment has it only in its file name."""
ROWS: Final = "SELECT {columns} FROM {source}"


def scan(connection: "duckdb.DuckDBPyConnection", handle: "DeltaTable") -> str:
    """The SELECT of all rows of a table. Raises UserError `bad-place`; duckdb.IOException with `MISSING` if a file is gone."""
    import pyarrow as pa

    schema = pa.schema(handle.schema())
    files = paths_of(handle.file_uris())
    if not files:
        nothing = dict.fromkeys(schema.names, "NULL")
        return ROWS.format(columns=typed(connection, schema, nothing), source="(SELECT 1) WHERE false")
    about = handle.metadata()
    is_adopting, partitions = str(about.name).startswith(ADOPTED), about.partition_columns
    is_whole = about.configuration.get(WHOLE) == str(len(schema.names))
    source = _source(files, partitions, is_named=is_adopting, is_whole=is_whole)
    newest = _source([max(files, key=_name)], partitions, is_named=is_adopting, is_whole=is_whole)
    made = dict.fromkeys(_absent(connection, schema.names, newest, source), "NULL")
    if is_adopting:
        made["batch"] = BATCH.format(own=made.get("batch", "batch"))
    return ROWS.format(columns=typed(connection, schema, made), source=source)


def _absent(connection: "duckdb.DuckDBPyConnection", names: list[str], newest: str, every: str) -> list[str]:
    """The columns that no file has. All files are opened for this only if the newest one lacks a column."""
    absent = names
    for source in (newest, every):
        if absent:
            there = connection.sql(f"FROM {source}").columns
            absent = [name for name in absent if name not in there]
    return absent


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def typed(connection: "duckdb.DuckDBPyConnection", schema: "pa.Schema", made: dict[str, str]) -> str:
    """The columns of a schema as SQL, cast to their types. `made`: expressions for columns that the files lack."""
    empty = connection.from_arrow(schema.empty_table())
    every = zip(empty.types, empty.columns, strict=True)
    return ", ".join(f'CAST({made.get(name, _column(name))} AS {kind}) AS "{name}"' for kind, name in every)


def _column(name: str) -> str:
    return f'"{name}"'


def _source(files: list[str], partitions: list[str], *, is_named: bool, is_whole: bool) -> str:
    """The files as a source of rows. `is_named`: each row has its file name. Partition columns are dates, from the path.

    `is_whole`: a file without one of the columns is an error; else all are opened before the first row is read.
    """
    for name in partitions:
        if sum(part.startswith(f"{name}=") for part in Path(files[0]).parts) > 1:
            why = f"the lake is in a folder {name}=…, and that would be read as the {name} of all its rows"
            raise UserError("bad-place", why, "move the lake, or rename the folder")
    names = ", ".join(quoted(glob.escape(file)) for file in files)
    types = ", ".join(f"{name}: DATE" for name in partitions)
    divided = f"hive_partitioning = true, hive_types = {{{types}}}" if partitions else "hive_partitioning = false"
    union = "false" if is_whole else "true"
    return f"read_parquet([{names}], union_by_name = {union}, filename = {str(is_named).lower()}, {divided})"


def quoted(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
