"""Makes a new checkpoint for the tables (PIP-025), if the old one is lost, incomplete or an older copy.

All that is needed is in the lake. `meta.progress` says which batches are in all tables, and at which offset each ended.
Tables that are ahead of the last of these, because a driver was killed between two steps, go back to it, as a new
version. The job's state after that batch follows from manifests and tables (`recall`). The new checkpoint has a new id:
under the old id tables keep the old batch numbers for ever, and would treat the next batch as done.

```
every table      goes back to the batch if it is ahead, and gets its mark under the new id: one commit
<job>            the old checkpoint is renamed to <job>.before-<new id>
weft/coverage    what is covered, lost and missing after the batch
weft/id          last: from here on there is a checkpoint
```

If it is interrupted, it starts again from the tables as they are, with the same result. It needs no Spark.
"""

import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import RemoveAction

from weft import __version__
from weft.base.errors import UserError
from weft.lake.consumers import commit
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault
from weft.lake.offsets import At, parse
from weft.lake.reader import Source
from weft.pipeline.checkpoint import Carried, Checkpoint, Record, read_record
from weft.pipeline.delta import date_removed, partition_of, transact
from weft.pipeline.kinds import Kind
from weft.pipeline.logdigests import note_commits
from weft.pipeline.marks import Mark, added_by, commits_of, newest_mark
from weft.pipeline.mending.recall import recalled
from weft.pipeline.sql import Lake
from weft.pipeline.tables import COMPLETENESS, PROGRESS, Table, there
from weft.pipeline.upkeep.log import APP, actions_of, opened
from weft.pipeline.upkeep.remove import without
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    from weft.pipeline.coverage import Coverage

COUNTED_AGAIN: Final = frozenset({COMPLETENESS})
"""Folded tables that several jobs write. They get no mark, so the job counts from the beginning."""
DONE_AGAIN: Final = frozenset({"retain", "compact"})
"""Operations that upkeep repeats by itself if going back has undone them."""
BATCHES: Final = """
SELECT batch, "offset", vec, rows_in, rows_silver, rows_quarantine, rows_values
FROM meta.progress WHERE job = '{job}' ORDER BY batch
"""


class Common(NamedTuple):
    """The last batch that all tables of a job have."""

    number: int
    """-1 if there is none."""
    offset: str
    """The offset after it; empty without a batch."""
    vec: str
    """Digest of the coverage after it."""

    @property
    def at(self) -> At:
        return parse(self.offset).at if self.offset else {}


class Repaired(NamedTuple):
    """The result for one job."""

    job: str
    why: str
    """What was wrong."""
    batch: int
    """The last batch that all tables have; the job continues after it. -1: from the beginning."""
    taken_back: dict[str, int]
    """Tables that were ahead, and their last batch."""
    missing: int
    """Numbers that are missing after that batch."""


class Repair:
    """The repair of one job. The caller holds the lease of `epoch`."""

    def __init__(self, lake: Layout, kind: Kind, epoch: int, now: int) -> None:
        self.lake, self.kind, self.epoch, self.now = lake, kind, epoch, now
        self.checkpoint = Checkpoint(lake, kind.stream, is_dense=kind.is_dense, runs_on=kind.runs_on)
        self.tables = [table for table in kind.tables if DeltaTable.is_deltatable(str(self._path(table)))]
        self.marks = {
            table: mark
            for table in self.tables
            if (mark := newest_mark(self._path(table), kind.stream)) is not None and table not in COUNTED_AGAIN
        }

    def fault(self) -> str | None:
        """What is wrong, as a sentence; None if the job can continue, or has never committed anything."""
        if not self.marks:
            return None
        path = self.lake.checkpoint_id(self.kind.stream)
        if not path.exists():
            return f"the checkpoint of the job {self.kind.stream!r} is gone"
        if self._is_overtaken():
            return f"the lease file of the job {self.kind.stream!r} was lost, and its epochs have begun anew"
        last = self.marks.get(PROGRESS, Mark("", -1)).batch
        highest = max(mark.batch for mark in self.marks.values())
        record = read_record(path)
        others = [mark.checkpoint for mark in self.marks.values() if mark.checkpoint != record.id]
        return self.checkpoint.fault(record, Carried(last, highest, next(iter(others), None), self._lacking(last)))

    def _lacking(self, last: int) -> tuple[str, ...]:
        """The tables that lack rows of a batch up to the last one."""
        with Lake(self.lake.root) as asked:
            batches = asked.query(BATCHES.format(job=self.kind.stream)).to_pylist() if last >= 0 else []
        counted = self.kind.counted
        return tuple(t.full_name for t, column in counted if self._complete_upto(t, column, batches) < last)

    def _is_overtaken(self) -> bool:
        """Whether tables have a higher epoch than the current lease: they would refuse every commit."""
        app = Writer(self.kind.stream, "", self.epoch).lease_app
        seen = [DeltaTable(self._path(table)).transaction_version(app) or 0 for table in self.tables]
        return max(seen, default=0) > self.epoch

    def run(self, why: str) -> Repaired:
        """Make a new checkpoint; `why` is what was wrong, for the result.

        UserError `segment-gone`, `repair-undoes`: nothing has changed. UserError `version-gone`: some tables may already
        have gone back.
        """
        with Lake(self.lake.root) as asked:
            common = self._last_common(asked)
            self._refuse_gaps(common)
            backward = {table: self._version_before(table, common) for table in self._ahead(common)}
            record = self._record(common)
        for table in self.marks:
            self._mark(table, record, common, backward.get(table))
        for table in COUNTED_AGAIN.intersection(self.tables):
            transact(self.lake, table, DeltaTable(self._path(table)), [], self._properties(record, None, table))
        coverage = self._recalled(common)
        self._begin(record, common, coverage)
        ahead = {table.full_name: self.marks[table].batch for table in backward}
        return Repaired(self.kind.stream, why, common.number, ahead, coverage.missing)

    # How far the tables have come.

    def _last_common(self, asked: Lake) -> Common:
        """The last batch of `meta.progress` that is complete in all tables."""
        if PROGRESS not in self.marks:
            return Common(-1, "", "")
        batches = asked.query(BATCHES.format(job=self.kind.stream)).to_pylist()
        upto = min([self._complete_upto(table, column, batches) for table, column in self.kind.counted])
        complete = [row for row in batches if row["batch"] <= upto]
        if not complete:
            return Common(-1, "", "")
        last = complete[-1]
        return Common(last["batch"], last["offset"], last["vec"])

    def _complete_upto(self, table: Table, column: str, batches: list[dict[str, Any]]) -> int:
        """The batch up to which a table is complete; a batch without rows leaves no mark in it."""
        mark = self.marks[table].batch if table in self.marks else -1
        lacking = [row["batch"] for row in batches if row["batch"] > mark and row[column] > 0]
        return min(lacking, default=batches[-1]["batch"] + 1 if batches else 0) - 1

    def _refuse_gaps(self, common: Common) -> None:
        """Check that the segments after the batch still exist: if tables are an older copy, they may be deleted. UserError."""
        source = Source(self.lake, self.kind.stream)
        try:
            source.slices(common.at or self._first(source), source.latest())
        except SegmentFault as fault:
            raise UserError(
                fault.code,
                f"the tables would go back to batch {common.number}, and what came after it is gone: {fault}",
                "put the table that is too old, or that segment, back from a copy",
            ) from fault

    def _first(self, source: Source) -> At:
        """The position from which everything is taken again."""
        if max(mark.batch for mark in self.marks.values()) < 1:
            return source.earliest()
        return dict.fromkeys(source.drains(), (1, 0))  # what retention has deleted cannot be taken again

    def _ahead(self, common: Common) -> Iterator[Table]:
        return (table for table, mark in self.marks.items() if mark.batch > common.number)

    def _version_before(self, table: Table, common: Common) -> int:
        """The last version of a table before the first commit that the job made after the batch.

        UserError `repair-undoes` if rows were removed or rebuilt since: going back would undo that.
        """
        first, others = -1, []
        for entry in commits_of(DeltaTable(self._path(table))):
            is_batch = entry.job == self.kind.stream and entry.batch is not None
            if is_batch and entry.batch is not None and entry.batch <= common.number:
                break
            first = entry.version if is_batch else first
            is_undone = entry.changed_data and not is_batch and entry.what not in DONE_AGAIN
            others += [entry] if is_undone else []
        if table != PROGRESS and (undone := [entry for entry in others if entry.version > first]):
            raise UserError(
                "repair-undoes",
                f"{table.full_name} was changed after batch {common.number + 1} had begun: "
                f"{undone[0].what} in version {undone[0].version}",
                f"weft lake history {table.full_name}; put the checkpoint back from a copy",
            )
        assert first > 0, table.full_name
        return first - 1

    # Writing.

    def _record(self, common: Common) -> Record:
        old = Record(id=uuid.uuid4().hex)
        partitions = self.checkpoint.partitions() or old.partitions
        start = common.offset or old.start
        return msgspec.structs.replace(old, base=common.number + 1, start=start, partitions=partitions)

    def _mark(self, table: Table, record: Record, common: Common, version: int | None) -> None:
        """One commit: go back to a version, if one is given, and set the table's mark under the new id."""
        batch = min(self.marks[table].batch, common.number)
        handle = DeltaTable(self._path(table))
        properties = self._properties(record, batch, table)
        if version is None:
            transact(self.lake, table, handle, [], properties)
        elif table == PROGRESS:
            self._delete(table, handle, batch, properties)
        else:
            self._go_back(table, handle, version, properties)

    def _delete(self, table: Table, handle: DeltaTable, upto: int, properties: CommitProperties) -> None:
        """Delete the rows of this job's batches after `upto`, in one commit."""
        import pyarrow.compute as pc

        wanted = without(self.lake, table, (pc.field("job") == self.kind.stream) & (pc.field("batch") > upto))
        date_removed(self._path(table), [file.path for file in wanted.remove])
        transact(self.lake, table, handle, actions_of(wanted, self.now // 1_000_000), properties)

    def _go_back(self, table: Table, handle: DeltaTable, version: int, properties: CommitProperties) -> None:
        """Undo what batches have done since a version.

        If they only added files, these are removed; then no older file is needed, and days that were removed since stay
        removed. Otherwise the old version is restored: UserError `version-gone` if that needs files that were vacuumed.
        """
        added = added_by(handle, self.kind.stream, version)
        if added is not None:
            now_ms = self.now // 1_000_000
            removals: list[Any] = [RemoveAction(path, True, now_ms, None, partition_of(path)) for path in added]
            date_removed(self._path(table), added)
            transact(self.lake, table, handle, removals, properties)
            return
        before = handle.version()
        try:
            handle.restore(version, commit_properties=properties)
        except DeltaError as error:
            raise UserError(
                "version-gone",
                f"{table.full_name} must go back to version {version}, whose files were vacuumed: {error}",
                "put that table back from a copy",
            ) from error
        note_commits(self.lake, table, before)

    def _properties(self, record: Record, batch: int | None, table: Table) -> CommitProperties:
        """The properties of a commit: the job, its lease, and the last batch of the table, if it has one."""
        writer = Writer(self.kind.stream, record.id, self.epoch)
        now_ms = self.now // 1_000_000
        metadata = {
            "weft.job": self.kind.stream,
            "weft.lease": str(self.epoch),
            "weft.version": __version__,
            "weft.repaired": record.id,
        }
        marks = [Transaction(writer.lease_app, self.epoch, now_ms)]
        if batch is not None:
            metadata["weft.batch"] = str(batch)
            marks.append(Transaction(writer.app(table), batch, now_ms))
        return CommitProperties(custom_metadata=metadata, app_transactions=marks)

    def _recalled(self, common: Common) -> "Coverage":
        with Lake(self.lake.root) as asked:  # the tables as they are now
            return recalled(asked, self.lake, self.kind, common, self.now)

    def _begin(self, record: Record, common: Common, coverage: "Coverage") -> None:
        """Write the new checkpoint, its record last."""
        old = self.checkpoint.directory
        if old.exists():
            old.rename(old.with_name(f"{old.name}.before-{record.id[:8]}"))
        if common.number >= 0:
            self.checkpoint.save(common.number, coverage)
            offset = parse(common.offset)
            commit(self.lake, self.kind.stream, self.kind.stream, offset, self.now)
        self.checkpoint.begin(record)

    def _path(self, table: Table) -> Path:
        return self.lake.table(table.layer, table.name)


def repair(lake: Layout, kinds: Iterable[Kind], epoch: int, *, is_forced: bool = False) -> Iterator[Repaired]:
    """Make a new checkpoint for each job that needs one, or if `is_forced` for all that have committed something.

    The caller holds the lease of `epoch`. UserError as in `Repair.run`.
    """
    for table in there(lake):
        _lower_epoch(lake, table, epoch)
    for kind in kinds:
        now = int(datetime.now(UTC).timestamp() * 1_000_000) * 1_000
        work = Repair(lake, kind, epoch, now)
        why = work.fault() or ("it was asked for" if is_forced and work.marks else None)
        if why is not None:
            yield work.run(why)


def _lower_epoch(lake: Layout, table: Table, epoch: int) -> None:
    """Set upkeep's epoch in a table to the current one if it is higher: else upkeep could not commit there."""
    delta = opened(lake, table)
    if delta is None or (delta.transaction_version(APP) or 0) <= epoch:
        return
    properties = CommitProperties(
        custom_metadata={"weft.lease": str(epoch), "weft.version": __version__},
        app_transactions=[Transaction(APP, epoch, int(datetime.now(UTC).timestamp() * 1000))],
    )
    transact(lake, table, delta, [], properties)
