"""Delta tables without jars: Spark writes Parquet, the driver commits it with `deltalake` (LAK-031).

```
<table>/_staging/b0000000007-<attempt>/day=2026-11-21/part-….parquet   what a Spark job writes; nobody reads it
<table>/day=2026-11-21/b0000000007-<attempt>-0000.<digest>.parquet     moved here; still nobody reads it
<table>/_delta_log/….json                                              one transaction names it: now it is in the table
```

The transaction also says which batch of which job it was (`weft/<job>/<checkpoint>/<table>` = batch) and under which
lease (`weft.lease/<job>` = epoch). So a batch repeated after a crash skips the tables that already have it, and a
driver that was paused while another took over cannot commit. Files of a lost attempt are never referenced. Tables stay
at reader version 1, writer version 2, which every Delta reader opens (LAK-032). Most commits list no log (`tablelog`).
"""

import json
import os
import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft import __version__
from weft.base.errors import OurFault, UserError
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.pipeline.digests import Proved, refuse_damaged, with_digest
from weft.pipeline.lease import LeaseLost
from weft.pipeline.logdigests import note_commits, note_missed, refuse_changed
from weft.pipeline.scan import WHOLE
from weft.pipeline.tablelog import CHECKPOINT_COMMITS, TableLog, sync_names, unfinished
from weft.pipeline.tables import ADOPTING, Table
from weft.pipeline.transforms.columns import batch_in_name, columns
from weft.pipeline.versions import paths_of
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable
    from pyarrow.dataset import Dataset
    from pyspark.sql import DataFrame, SparkSession

RETRIES: Final = 10  # attempts of a commit that conflicts with another
LOG_DAYS: Final = 7  # how long the log keeps a commit, if there are not too many (`upkeep/vacuum.py`)
REMOVALS_KEPT: Final = "interval 1 hours"
"""How long checkpoints of the log name files that were removed.

Each checkpoint has all of them: at one batch a second they would be 600,000 after a week. Vacuum needs none of them for
longer, because a file that is removed gets the date of its removal (`date_removed`).
"""
TEXT_STATISTICS_MAX: Final = 256  # characters; the log keeps no range of longer texts
NO_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
PARQUET: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 1,
    "store_schema": False,
    "write_page_checksum": True,
}
"""How the driver itself writes files."""
STAGING: Final = "_staging"
SKIPPING: Final = "delta.dataSkippingStatsColumns"
"""Columns with statistics, by which readers skip files.

A number of leading columns would not include `batch`, and every search for new rows would read all files of the table.
"""
REMOVALS: Final = "delta.deletedFileRetentionDuration"
RANGED: Final = ("string", "bigint", "double", "timestamp", "date")
"""Types of which the log states minimum and maximum."""
CONFLICT: Final = "Concurrent transaction failed"
"""The text of deltalake's error when another process committed under our app id."""


class DataFile(NamedTuple):
    """A file that a transaction can name."""

    path: str
    """Relative to the table."""
    size: int
    partition: dict[str, str | None]
    rows: int
    statistics: str
    """Statistics as JSON, in the form of the Delta log."""


class Tables:
    """The tables of one lake, opened once and updated. All writes go through this class.

    Without a `writer` it only reads. Not safe for threads.
    """

    def __init__(self, lake: Layout, spark: "SparkSession", writer: Writer | None = None) -> None:
        # The real path, without symbolic links, because the log has it: else a commit would not find files to replace.
        self.lake, self.spark, self.writer = Layout(lake.root.resolve()), spark, writer
        self._logs: dict[str, TableLog] = {}
        self._marks: dict[str, int | None] = {}
        """By table: the last batch that it had when this writer asked, until its next commit."""
        self._proved: defaultdict[str, Proved] = defaultdict(Proved)
        """By table."""
        self.commit_s = 0.0
        """Seconds spent in transactions so far."""

    def beside(self, spark: "SparkSession") -> "Tables":
        """The same tables by the same writer, for another thread."""
        other = Tables(self.lake, spark, self.writer)
        other._proved = self._proved  # what two threads add at once is, at worst, forgotten, and verified again
        return other

    def path(self, table: Table) -> Path:
        return self.lake.table(table.layer, table.name)

    def handle(self, table: Table) -> "DeltaTable":
        """The table at its newest version. If it does not exist, it is created."""
        return self._log(table).handle()

    def _log(self, table: Table) -> TableLog:
        """The log of a table, with what others have committed. A table that does not exist is created."""
        known = self._logs.get(table.full_name)
        if known is None:
            handle = self._open_or_create(table)
            known = self._logs[table.full_name] = TableLog(handle, self.path(table), configuration_of(table).keys())
        known.look()
        return known

    def committed(self, table: Table) -> int:
        """The last batch of this writer that the table has, -1 before the first."""
        assert self.writer is not None
        version = self._marks[table.full_name] = self._log(table).app_version(self.writer.app(table))
        return -1 if version is None else version

    def write(
        self, table: Table, frame: "DataFrame", batch: int, *, split: str | None = None, is_small: bool = False
    ) -> list[DataFile]:
        """Write rows as files in the table's directory, which belong to no version until `commit` names them.

        `split` names one more column: rows with different values of it get different files, and it is not written.
        `is_small`: at most some ten thousand rows. They are collected and written by the driver, because that costs
        less than a write job in Spark.
        """
        attempt = f"b{batch:010d}-{uuid.uuid4().hex}"
        partitions = [name for name in (table.partition, split) if name]
        chosen = frame.select(*(columns(*table.schema.names, split) if split else columns(*table.schema.names)))
        if is_small:
            return self._write_here(table, chosen.toArrow(), partitions, attempt)
        staging = self.path(table) / STAGING / attempt
        with _all_or_none(self.path(table), attempt):
            chosen.write.partitionBy(*partitions).parquet(str(staging))
            return [
                moved
                for number, file in enumerate(sorted(staging.rglob("*.parquet")))
                if (moved := _moved(self.path(table), table, file, f"{attempt}-{number:04d}.parquet")) is not None
            ]

    def write_rows(self, table: Table, rows: "pa.Table", batch: int) -> list[DataFile]:
        """Like `write`, for rows that the driver itself has made."""
        return self._write_here(
            table, rows.select(table.schema.names), table.partitions, f"b{batch:010d}-{uuid.uuid4().hex}"
        )

    def _write_here(self, table: Table, rows: "pa.Table", partitions: list[str], attempt: str) -> list[DataFile]:
        """Write collected rows, one file per partition."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        written: list[DataFile] = []
        with _all_or_none(self.path(table), attempt):
            for number, (value, part) in enumerate(_partitioned(rows, partitions)):
                place = self.path(table)
                if table.partition:
                    place /= f"{table.partition}={NO_PARTITION if value is None else value}"
                    LocalFiles().make_directories(place)
                target = place / f"{attempt}-{number:04d}.parquet"
                sink = pa.BufferOutputStream()
                pq.write_table(part, sink, **PARQUET)
                target.write_bytes(sink.getvalue())
                footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
                written.append(data_file(self.path(table), table, target, footer))
        return written

    def commit(
        self, table: Table, batch: int, add: Sequence[DataFile], about: Mapping[str, str], remove: Iterable[str] = ()
    ) -> None:
        """One transaction: add these files, remove those, record that the table has this batch (LAK-031, LAK-035).

        `about`: more properties of the commit. Without files to add or remove, no commit is made. Raises LeaseLost if another driver holds the lease, or has
        committed since.
        """
        from deltalake.transaction import AddAction, RemoveAction

        now_ms = round(datetime.now(UTC).timestamp() * 1000)
        written = [str(self.path(table) / file.path) for file in add]
        self._proved[table.full_name].add(written, lambda: self.files(table))
        gone = list(remove)
        date_removed(self.path(table), gone)
        actions: list[Any] = [
            AddAction(file.path, file.size, file.partition, now_ms, data_change=True, stats=file.statistics)
            for file in add
        ]
        actions += [RemoveAction(path, True, now_ms, None, partition_of(path)) for path in gone]
        if not actions:
            self._check_lease(self._log(table))
        else:
            self._transact(table, actions, self._properties(table, batch, about))

    def mark(self, table: Table, batch: int, about: Mapping[str, str]) -> None:
        """Record that this batch is done although it changes nothing here, with a commit without files."""
        self._transact(table, [], self._properties(table, batch, about))

    def _transact(self, table: Table, actions: list[Any], properties: "CommitProperties") -> None:
        """One transaction. Lease and last batch are checked in the same version of the table from which it starts."""
        from deltalake.exceptions import CommitFailedError

        log = self._log(table)
        self._check_lease(log)
        assert self.writer is not None
        seen = log.app_version(self.writer.app(table))
        if seen != self._marks.pop(table.full_name, seen):  # a driver of any epoch, since this one asked
            raise LeaseLost(f"another driver of {self.writer.job} has committed batch {seen} to {table.full_name}")
        began, before = time.perf_counter(), log.version
        try:
            if log.append(actions, properties, table.partitions):
                note_commits(self.lake, table, before)
            else:
                transact(self.lake, table, handle := log.handle_as_known(), actions, properties)
                log.restart(handle)
        except CommitFailedError as error:
            if CONFLICT in str(error):
                raise LeaseLost(f"another driver has committed to {table.full_name}") from error
            raise
        finally:
            self.commit_s += time.perf_counter() - began

    def append_rows(
        self, table: Table, batch: int, rows: Sequence[Mapping[str, Any]], about: Mapping[str, str]
    ) -> None:
        """Append a few rows made by the driver itself, in one transaction."""
        import pyarrow as pa

        data = pa.Table.from_pylist([dict(row) for row in rows], table.schema.arrow())
        self.commit(table, batch, self.write_rows(table, data, batch), about)

    def files(self, table: Table, predicate: str | Sequence[tuple[str, str, object]] | None = None) -> list[str]:
        """Absolute paths of the files that may hold rows for which the predicate (SQL, or comparisons) is true."""
        if predicate is None:
            return self._log(table).files()
        chosen = predicate if isinstance(predicate, str) else list(predicate)
        return paths_of(self.handle(table).file_uris(file_pruning_predicate=chosen))

    def rows_of_batch(self, table: Table, batch: int) -> int:
        """How many rows a batch wrote, according to the log.

        Only for a recent batch: its files are found by their names, which have the batch until they are compacted.
        """
        files = self.statistics(table, "num_records")
        return sum(rows for path, rows in files if path.rpartition("/")[2].startswith(f"b{batch:010d}-"))

    def statistics(self, table: Table, *names: str) -> Iterator[tuple[Any, ...]]:
        """For each file of a table its path in the log, then the data_file statistics (like `max.batch`), None if absent."""
        import pyarrow as pa

        actions = pa.table(self.handle(table).get_add_actions(flatten=True))
        nothing = [None] * actions.num_rows
        columns = [actions.column(n).to_pylist() if n in actions.column_names else nothing for n in ("path", *names)]
        return zip(*columns, strict=True)

    def _prove(self, table: Table, files: Sequence[str]) -> None:
        """Verify files of a table that this process has not verified yet (FLD-030); UserError `damaged` names the first bad one."""
        proved = self._proved[table.full_name]
        fresh = [file for file in files if file not in proved.files]
        refuse_damaged(self.path(table), table, self.relative(table, fresh))
        proved.add(fresh, lambda: self.files(table))

    def dataset(self, table: Table, files: Sequence[str]) -> "Dataset":
        """The rows of some files of a table, for the driver itself; verified as those of `read` are."""
        import pyarrow.dataset as ds

        self._prove(table, files)
        return ds.dataset(list(files), schema=table.schema.arrow())

    def read(self, table: Table, files: Sequence[str] | None = None) -> "DataFrame":
        """The rows of a table, or of some of its files, through Spark's own Parquet reader (PIP-092).

        When this process reads a file for the first time, it verifies the whole file (FLD-030): UserError `damaged`.
        Spark verifies the checksums of pages each time.
        """
        chosen = self.files(table) if files is None else list(files)
        if not chosen:
            return self.spark.createDataFrame([], table.spark())
        self._prove(table, chosen)
        reader = self.spark.read.schema(table.spark()).option("basePath", str(self.path(table)))
        rows = reader.parquet(*chosen)
        return rows.withColumn("batch", batch_in_name()) if table.layer == ADOPTING else rows

    def relative(self, table: Table, files: Iterable[str]) -> list[str]:
        """Paths as in the log."""
        root = str(self.path(table))
        return [file.removeprefix(root).lstrip("/") for file in files]

    def is_empty(self, table: Table) -> bool:
        """Whether the table has no rows or does not exist."""
        from deltalake import DeltaTable

        path = self.path(table)
        return not (DeltaTable.is_deltatable(str(path)) and DeltaTable(path).file_uris())

    def sweep(self, table: Table) -> None:
        """Delete what lost attempts left in the staging directory and the log. Only the holder of the lease may call it."""
        shutil.rmtree(self.path(table) / STAGING, ignore_errors=True)
        for file in unfinished(self.path(table)):
            file.unlink(missing_ok=True)

    def _open_or_create(self, table: Table) -> "DeltaTable":
        from deltalake import DeltaTable

        path = self.path(table)
        if not DeltaTable.is_deltatable(str(path)):
            assert self.writer is not None, table.full_name
            return created(self.lake, table)
        if self.writer is None:
            return DeltaTable(path)
        note_missed(self.lake, table)
        refuse_changed(self.lake, table)
        handle = DeltaTable(path)
        before = handle.version()
        _evolve(handle, table)
        note_commits(self.lake, table, before)
        return handle

    def _check_lease(self, log: TableLog) -> None:
        assert self.writer is not None
        seen = log.app_version(self.writer.lease_app)
        if seen is not None and seen > self.writer.epoch:
            raise LeaseLost(
                f"another driver holds the lease of {self.writer.job}: its epoch is {seen}, ours is {self.writer.epoch}"
            )

    def _properties(self, table: Table, batch: int, about: Mapping[str, str]) -> "CommitProperties":
        from deltalake import CommitProperties, Transaction

        assert self.writer is not None
        now_ms = round(datetime.now(UTC).timestamp() * 1000)
        who = {"weft.job": self.writer.job, "weft.lease": str(self.writer.epoch)}
        metadata = {"weft.batch": str(batch), **who, **about}
        return CommitProperties(
            custom_metadata=metadata,
            max_commit_retries=RETRIES,
            app_transactions=[
                Transaction(self.writer.app(table), batch, now_ms),
                Transaction(self.writer.lease_app, self.writer.epoch, now_ms),
            ],
        )


@contextmanager
def _all_or_none(root: Path, attempt: str) -> Iterator[None]:
    """Deletes the files of an attempt that fails. On a full disk they would take the room that the next one needs."""
    try:
        yield
    except BaseException:
        for file in root.rglob(f"{attempt}-*"):
            file.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(root / STAGING / attempt, ignore_errors=True)


def _moved(root: Path, table: Table, file: Path, name: str) -> DataFile | None:
    """Move a file written by Spark to its place in the table below `root`; None if it has no rows."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(file)
    if footer.num_rows == 0:
        return None
    place = root
    if table.partition:
        place = root / file.relative_to(root / STAGING).parts[1]
        LocalFiles().make_directories(place)
    target = place / name
    file.rename(target)
    return data_file(root, table, target, footer)


def transact(
    lake: Layout, table: Table, handle: "DeltaTable", actions: list[Any], properties: "CommitProperties"
) -> None:
    """One transaction that starts from the version of `handle`; its file of the log gets a digest (FLD-030).

    It does not look for old commits, for which it would examine every file of the log: upkeep does that once in a round
    (`vacuum.shorten`). Raises CommitFailedError.
    """
    from deltalake import PostCommitHookProperties

    before = handle.version()
    sync_names(lake.table(table.layer, table.name), actions)
    try:
        handle.create_write_transaction(
            actions,
            "append",
            handle.schema(),
            table.partitions,
            commit_properties=properties,
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )
    finally:  # a commit whose checkpoint could not be written is made all the same
        note_commits(lake, table, before)


def created(lake: Layout, table: Table) -> "DeltaTable":
    """A new table, or the one that another process has just made."""
    from deltalake import DeltaTable

    path = lake.table(table.layer, table.name)
    files = LocalFiles()
    files.make_directories(path)
    made = DeltaTable.create(
        path,
        table.schema.arrow(),
        mode="ignore",
        partition_by=table.partitions,
        name=table.full_name,
        description=table.grain,
        configuration=configuration_of(table),
        raise_if_key_not_exists=False,
        commit_properties=made_by_us(),
    )
    note_commits(lake, table, -1)
    files.sync_directory(path)
    return made


def made_by_us() -> "CommitProperties":
    """Properties of a commit without a batch. They mark it as ours, so that its log file gets a digest (FLD-030)."""
    from deltalake import CommitProperties

    return CommitProperties(custom_metadata={"weft.version": __version__})


def configuration_of(table: Table) -> dict[str, str | None]:
    """The Delta properties with which a table is created."""
    ranged = [
        column.name for column in table.schema.columns if column.type in RANGED and column.name in table.statistics()
    ]
    return {
        "delta.checkpointInterval": str(CHECKPOINT_COMMITS),
        "delta.logRetentionDuration": f"interval {LOG_DAYS} days",
        REMOVALS: REMOVALS_KEPT,
        SKIPPING: ",".join(f"`{name}`" for name in ranged),
        **({} if table.layer == ADOPTING else {WHOLE: str(len(table.schema.names))}),
    }


def data_file(root: Path, table: Table, file: Path, footer: Any = None) -> DataFile:
    """Add the digest of a finished Parquet file to its name, and describe it for a transaction.

    `footer` can be given if it was already read.
    """
    import pyarrow.parquet as pq

    footer = footer or pq.read_metadata(file)
    file = with_digest(file)
    path = file.relative_to(root).as_posix()
    statistics = json.dumps(statistics_of(footer, table.statistics()))
    return DataFile(path, file.stat().st_size, partition_of(path), footer.num_rows, statistics)


def date_removed(root: Path, paths: Iterable[str]) -> None:
    """Date files that are about to be removed from a table now, so that vacuum counts their age from here."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.utime(root / path)


def _partitioned(rows: "pa.Table", partitions: list[str]) -> "Iterator[tuple[Any, pa.Table]]":
    """For each combination of values of the columns `partitions`: the value of the first, and the rows without them."""
    import pyarrow.compute as pc

    if not partitions:
        if rows.num_rows:
            yield None, rows
        return
    keys = rows.select(partitions).group_by(partitions).aggregate([]).to_pylist()
    data = rows.drop_columns(partitions)
    for key in keys:
        mask = None
        for name in partitions:
            same = pc.is_null(rows.column(name)) if key[name] is None else pc.equal(rows.column(name), key[name])
            mask = same if mask is None else pc.and_(mask, same)
        yield key[partitions[0]], data if len(keys) == 1 else data.filter(pc.fill_null(mask, False))


def partition_of(path: str) -> dict[str, str | None]:
    """The partition values in a relative path.

    >>> partition_of("day=2026-11-21/b0000000007-0a-0000.parquet")
    {'day': '2026-11-21'}
    >>> partition_of("b0000000007-0a-0000.parquet")
    {}
    """
    parts = [part.partition("=") for part in path.split("/")[:-1]]
    return {name: None if value == NO_PARTITION else value for name, _, value in parts}


def statistics_of(footer: "Any", columns: frozenset[str]) -> dict[str, Any]:
    """The statistics of a Parquet file in the form of the Delta log: numRecords, minValues, maxValues, nullCount."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            name = column.path_in_schema
            if name not in columns or column.statistics is None:
                continue
            found = column.statistics
            nulls[name] = nulls.get(name, 0) + (found.null_count or 0)
            if found.has_min_max:
                low[name] = min(low.get(name, found.min), found.min)
                high[name] = max(high.get(name, found.max), found.max)
    minimums = {name: bound for name, value in low.items() if (bound := _bound(value, is_max=False)) is not None}
    maximums = {name: bound for name, value in high.items() if (bound := _bound(value, is_max=True)) is not None}
    return {"numRecords": footer.num_rows, "minValues": minimums, "maxValues": maximums, "nullCount": nulls}


def _bound(value: object, *, is_max: bool) -> object:
    """A minimum or maximum in the form of the log; None if the log cannot have it.

    The log has instants in milliseconds: a minimum is rounded down and a maximum up, so that they stay bounds.
    """
    if isinstance(value, datetime):
        cut = value.replace(microsecond=value.microsecond // 1000 * 1000)
        if is_max and cut < value:
            cut += timedelta(milliseconds=1)
        return cut.strftime("%Y-%m-%dT%H:%M:%S.") + f"{cut.microsecond // 1000:03d}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str) and len(value) > TEXT_STATISTICS_MAX:
        return None
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else None


def _writer_of(handle: "DeltaTable") -> str:
    """Who wrote the table last, as text: the version of Weft in the newest commit that states one."""
    versions = (commit.get("weft.version") for commit in handle.history())
    return next((f"version {version}" for version in versions if version), "another program")


def _evolve(handle: "DeltaTable", table: Table) -> None:
    """Add the columns that this program knows and the table lacks; refuse a table of a newer program (LAK-036)."""
    from deltalake import Schema

    have = {field.name: field for field in handle.schema().fields}
    want = {field.name: field for field in Schema.from_arrow(table.schema.arrow()).fields}
    if unknown := have.keys() - want.keys():
        raise UserError(
            "newer-lake",
            f"{table.full_name} has columns that this version does not know: {', '.join(sorted(unknown))}",
            f"upgrade weft on this machine; {_writer_of(handle)} wrote it last",
        )
    if changed := [name for name, field in have.items() if field.type != want[name].type]:
        raise OurFault(f"{table.full_name}: {', '.join(changed)} changed its type")
    if fresh := [field for name, field in want.items() if name not in have]:
        handle.alter.add_columns(fresh, commit_properties=made_by_us())
        handle.update_incremental()
    wanted_properties = configuration_of(table)
    have_properties = handle.metadata().configuration
    changed_properties = [name for name in (SKIPPING, REMOVALS) if have_properties.get(name) != wanted_properties[name]]
    if changed_properties:
        properties = {name: wanted_properties[name] or "" for name in changed_properties}
        handle.alter.set_table_properties(properties, commit_properties=made_by_us())
        handle.update_incremental()
