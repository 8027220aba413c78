"""Tables and segments for notebooks: as DataFrames of any Spark session, or as Arrow without Spark (PIP-092, PIP-011).

A table consists of the Parquet files that its log names, so Spark's own reader opens them and no jar is needed: this
module reads the log, and names only files of wanted days to Spark. Roll-ups, last values and views are small: DuckDB
computes them as in `weft sql`, with the last batch included, and they are passed on as Arrow. Segments are found by
their manifests.
"""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.base.errors import UserError
from weft.lake.layout import STREAMS, Layout
from weft.lake.reader import files_between
from weft.lake.schemas import SEGMENTS
from weft.pipeline import versions
from weft.pipeline.sql import LAYERS, Lake
from weft.pipeline.tables import ADOPTING, ALL, LATEST, VIEWS, Table
from weft.pipeline.versions import EPOCH, AsOf, instant, opened, paths_of
from weft.pipeline.views.folded import WIDTHS

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

Version = AsOf | str | None
"""Which version: its number, an instant (ISO 8601 text or a datetime), or None for the newest."""
Since = str | date | datetime | None
COMPUTED: Final = frozenset({*(table.full_name for table in WIDTHS), LATEST.full_name, *VIEWS})
"""Tables that DuckDB computes at each query."""


def table(  # tidy: options are keywords; a notebook names those that it needs
    spark: "SparkSession",
    lake: Path | str,
    name: str,
    version: Version = None,
    since: Since = None,
    *,
    fresh: bool = False,
) -> "DataFrame":
    """A table of the lake as a DataFrame, on a session with or without Delta's jars.

    `name` is `silver.samples` or `samples`, looked up as `weft sql` does, views included. `since` leaves out earlier
    UTC days without opening their files. Rows of roll-ups, `latest` and views are computed in this process and held in
    its memory once. UserError `no-lake`, `no-table`, `no-version`, `bad-time`, `no-days` (the table is not divided by
    day, so `since` cannot be used).

    `fresh` adds drained rows that are not in the table yet (PIP-102); they are typed in this process and held in its
    memory. It has no effect together with `version`.
    """
    found = _table_named(Layout(lake), name)
    if found.full_name in COMPUTED:
        return spark.createDataFrame(_computed(lake, found, _as_of(version), since, fresh=fresh))
    if not fresh or version is not None:
        return _committed(spark, lake, found, _handle(lake, found, version), since)
    with Lake(lake, fresh=True) as asked:
        pending = asked.pending(found, _day(found, since))
        rows = _committed(spark, lake, found, asked.handle(found), since)
    return (
        rows
        if pending is None
        else rows.unionByName(spark.createDataFrame(_with_schema(pending, found.schema.arrow())))
    )


def _committed(
    spark: "SparkSession", lake: Path | str, found: Table, handle: "DeltaTable | None", since: Since
) -> "DataFrame":
    """The rows of a version, through Spark's own Parquet reader."""
    files = [] if handle is None else _files(handle, found, since)
    if not files:
        return spark.createDataFrame([], found.schema.ddl())
    base = str(Layout(lake).table(found.layer, found.name).resolve())  # the real path, as the log names its files
    rows = spark.read.schema(found.schema.ddl()).option("basePath", base).parquet(*files)
    if found.layer == ADOPTING:
        from weft.pipeline.transforms.columns import batch_in_name

        rows = rows.withColumn("batch", batch_in_name())
    return rows.select(*(f"`{name}`" for name in found.schema.names))


def arrow(
    lake: Path | str, name: str, version: Version = None, since: Since = None, *, fresh: bool = False
) -> "pa.Table":
    """The same rows as `table`, as Arrow, without Spark and Java. Same errors."""
    import pyarrow.dataset as ds

    found = _table_named(Layout(lake), name)
    if found.full_name in COMPUTED or found.layer == ADOPTING or (fresh and version is None):
        return _computed(lake, found, _as_of(version), since, fresh=fresh and version is None)
    handle = _handle(lake, found, version)
    schema = found.schema.arrow()
    if handle is None:
        return schema.empty_table()
    day = _day(found, since)
    rows = handle.to_pyarrow_dataset().to_table(filter=None if day is None else ds.field(str(found.partition)) >= day)
    return _with_schema(rows, schema)


def ask(lake: Path | str, question: str, as_of: Version = None, *, fresh: bool = True) -> "pa.Table":
    """The answer of `weft sql` to one SELECT, as Arrow; `as_of` asks for earlier versions.

    Raises what `Lake.query` raises. Drained rows that are not in the tables yet are included, unless `fresh` is false or
    `as_of` is given (PIP-102).
    """
    with Lake(lake, _as_of(as_of), fresh=fresh) as asked:
        return asked.query(question)


def segments(
    spark: "SparkSession", lake: Path | str, stream: str, since: Since = None, until: Since = None
) -> "DataFrame":
    """The rows of segments as they were received, duplicates included, through Spark's own Parquet reader.

    Only rows with `since <= received < until`, to the microsecond. About twice as fast as the source `weft`, but it reads
    only segments that exist now. UserError `no-lake`, `no-stream`, `bad-time`; SegmentFault if a segment is gone.
    """
    from pyspark.sql import functions as F

    layout = _layout(lake)
    if stream not in STREAMS:
        raise UserError("no-stream", f"there is no stream {stream!r}", f"one of {', '.join(STREAMS)}")
    low = 0 if since is None else _ns(since)
    high = None if until is None else _ns(until)
    files = [str(Path(piece.path).absolute()) for piece in files_between(layout, stream, low, high)]
    ddl = SEGMENTS[stream].ddl()
    rows = spark.read.schema(ddl).parquet(*files) if files else spark.createDataFrame([], ddl)
    if since is not None:
        rows = rows.where(F.col("received_ns") >= low)
    return rows if high is None else rows.where(F.col("received_ns") < high)


def _layout(lake: Path | str) -> Layout:
    layout = Layout(Path(lake).absolute())
    if not layout.lake_json.exists():
        raise UserError("no-lake", f"there is no lake in {lake}", "give the directory that a root drains into")
    return layout


def _table_named(layout: Layout, name: str) -> Table:
    """The table or view of that name; a bare one is looked up layer by layer. UserError `no-table`."""
    known = ALL | {full_name: view.table for full_name, view in VIEWS.items()}
    for full_name in (name, *(f"{layer}.{name}" for layer in LAYERS)):
        if full_name in known:
            return known[full_name]
    _layout(layout.root)
    raise UserError("no-table", f"there is no table {name!r}", f"one of {', '.join(sorted(known))}")


def _handle(lake: Path | str, found: Table, version: Version) -> "DeltaTable | None":
    layout = _layout(lake)
    return opened(layout.table(found.layer, found.name), found.full_name, _as_of(version))


def _as_of(version: Version) -> AsOf | None:
    return versions.as_of(version) if isinstance(version, str) else version


def _files(handle: "DeltaTable", found: Table, since: Since) -> list[str]:
    day = _day(found, since)
    if day is None:
        return paths_of(handle.file_uris())
    return paths_of(handle.file_uris(file_pruning_predicate=f"{found.partition} >= '{day.isoformat()}'"))


def _day(found: Table, since: Since) -> date | None:
    """The first UTC day that is wanted; None: all. UserError `no-days` for a table that is not divided by day."""
    if since is None:
        return None
    if found.partition is None:
        raise UserError("no-days", f"{found.full_name} is not divided by day", "leave out `since`, and filter its rows")
    return instant(since).astimezone(UTC).date()


def _computed(lake: Path | str, found: Table, wish: AsOf | None, since: Since, *, fresh: bool = False) -> "pa.Table":
    """The rows of a table as `weft sql` computes them."""
    where = ""
    if since is not None:
        column = next((name for name in ("window_start", "day") if name in found.schema.names), None)
        if column is None:
            raise UserError(
                "no-days", f"{found.full_name} is not divided by day", "leave out `since`, and filter its rows"
            )
        where = f" WHERE {column} >= DATE '{instant(since).astimezone(UTC).date()}'"
    with Lake(lake, wish, fresh=fresh) as asked:
        if found not in asked.known():
            return found.schema.arrow().empty_table()
        rows = asked.query(f"SELECT * FROM {found.full_name}{where}")  # noqa: S608  # made of our own names and a date
    return _with_schema(rows, found.schema.arrow())


def _with_schema(rows: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    """The rows with all columns of `schema` in its types; a column that they lack is null."""
    import pyarrow as pa

    arrays = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _ns(moment: str | date | datetime) -> int:
    """Nanoseconds since 1970, computed from whole microseconds without floats."""
    return (instant(moment) - EPOCH) // timedelta(microseconds=1) * 1_000
