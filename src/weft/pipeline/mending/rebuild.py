"""Makes a table anew from its source tables, in one commit that replaces the old rows (PIP-026).

```
silver.<stream>   from bronze, by the present program and rules; quarantine.<stream> with it
silver.values     from silver.samples, with the edges that later neighbours need
gold.rollup_*     from silver.values
gold.latest       from samples and values
```

The tables that depend on a rebuilt one are rebuilt too, in this order, so that all agree. A reader sees each table
either before or after; after a crash the rebuild is repeated. A rebuild loses no rows: if bronze (which is kept for a
month) lacks rows that silver has, it is refused before anything is written. Values and windows stay as they are if their
source is gone because of its age; so do samples and values of imported logs. `--since DAY` leaves earlier days alone.

It works between batches: all tables have the last batch, and no other. Column `batch` of a calculated value is then that
batch, which the roll-ups have already folded.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from weft import __version__
from weft.base.errors import UserError
from weft.base.vectors import VersionVector
from weft.pipeline import tables
from weft.pipeline.batch import Batch, counted, shift_for
from weft.pipeline.coverage import Coverage, Plan
from weft.pipeline.datasets import ATTRIBUTE, proven
from weft.pipeline.delta import partition_of
from weft.pipeline.fold import ROLLUPS
from weft.pipeline.job import Job
from weft.pipeline.kinds import Kind
from weft.pipeline.quarantined import CHANGED, refused_before
from weft.pipeline.sampled import SampleBatch
from weft.pipeline.tables import Table
from weft.pipeline.transforms import dedup, rebuilt, values
from weft.pipeline.transforms.columns import same_number
from weft.pipeline.transforms.latest import latest, newest
from weft.pipeline.transforms.quality import explained, judged
from weft.pipeline.transforms.rollup import counted as added_up
from weft.pipeline.transforms.rollup import file_of, merged, parts_of, windows_of
from weft.pipeline.transforms.series import recognised
from weft.pipeline.upkeep.forgotten import accounts, numbers, retired, rows_by_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from weft.pipeline.delta import Tables

DAY: Final = timedelta(days=1)
_SPLIT: Final = "_file"
IMPORTED: Final = "dataset IS NOT NULL"
"""A condition: the value belongs to an imported log."""
DEPENDENT: Final = {
    tables.VALUES.full_name: (*ROLLUPS, tables.LATEST),
    tables.SAMPLES.full_name: (tables.VALUES, *ROLLUPS, tables.LATEST),
}
"""The tables that depend on a table, in order."""
SOURCE: Final = {tables.VALUES.full_name: tables.SAMPLES} | {table.full_name: tables.VALUES for table in ROLLUPS}
"""The source of a table, for tables that may have older days than their source."""


class Wish(NamedTuple):
    """What to rebuild."""

    table: Table
    since: date | None = None
    """The first day that may change; None: all days."""
    may_lose: bool = False
    """True: rows that bronze does not have any more may be lost."""


class Rebuilt(NamedTuple):
    """The result for one table."""

    table: str
    before: int
    """How many rows were replaced."""
    after: int
    """How many rows replace them."""


class Made(NamedTuple):
    """The new rows of a table, before the commit."""

    table: Table
    rows: "DataFrame"
    split: str | None = None
    """A column by which rows are divided into files (`Tables.write`)."""


class Rebuild:
    """Rebuilds tables of one job. The job holds the lease, and none of its batches is running."""

    def __init__(self, job: Job, wish: Wish) -> None:
        self.job, self.wish, self.upto = job, wish, job.last_number
        self.tables: Tables = job.tables
        self.about = {"weft.version": __version__, "weft.rebuilt": wish.table.full_name}
        self.cut = rows_by_table(retired(accounts(job.lake)))
        """Rows that were removed for their age, by table. (Rows that were forgotten are gone from dependent tables too.)"""
        self._persisted: list[DataFrame] = []

    def run(self) -> Iterator[Rebuilt]:
        """Rebuild the table and those that depend on it; yields each when it is committed.

        UserError `no-rebuild`, `half-done`, `would-lose`; then nothing has changed.
        """
        self._refuse()
        self._fold()
        self._refuse()  # the fold has committed to tables that are replaced here
        try:
            for table in made_anew_with(self.wish.table):
                made = self._contents(table)
                before = [self._rows(part.table) for part in made]
                self._refuse_loss(table, made)
                for part, old in zip(made, before, strict=True):
                    yield Rebuilt(part.table.full_name, old, self._replace(part))
        finally:
            for frame in self._persisted:
                frame.unpersist()

    def _refuse(self) -> None:
        kind = self.job.kind
        refuse_what_has_no_source(kind, self.wish.table)
        highest = max(self.tables.committed(each) for each in kind.tables)
        if highest > self.upto or self.upto < 0:
            raise UserError("half-done", f"a batch of {kind.stream} is not in all tables yet", "weft lake run --once")

    def _fold(self) -> None:
        """Bring the gold tables up to date first, unless that needs a damaged file, which may be of the table to rebuild."""
        try:
            self.job.fold()
        except UserError as error:
            if error.code != "damaged":
                raise

    # The new contents of a table.

    def _contents(self, table: Table) -> list[Made]:
        """The new rows of a table, and of tables that are made in the same step."""
        if table == self.job.kind.silver:
            return self._silver()
        if table == tables.VALUES:
            return self._values()
        if table == tables.LATEST:
            fresh = newest(self.tables.read(tables.SAMPLES), self.tables.read(tables.VALUES))
            held = self.tables.read(table, None if self._is_cut(tables.SAMPLES) else [])
            old = held.join(fresh.select("node", "series"), ["node", "series"], "left_anti")
            return [Made(table, latest(old, fresh))]
        parts = added_up(parts_of(self.tables.read(tables.VALUES)), tables.ROLLUP_1M)
        windows = merged(windows_of(parts, table), table)
        return [Made(table, windows.withColumn(_SPLIT, file_of(table)), _SPLIT)]

    def _silver(self) -> list[Made]:
        """Silver and quarantine."""
        kind, coverage = self.job.kind, self._coverage()
        batch, imports = _batch_of(self.job, self.upto, self.about), self._imports()
        rows = self._kept(_numbered(self._judged(batch, imports)))
        fresh, copies = rows.where("copy = 1").drop("copy"), rows.where("copy > 1").drop("copy")
        accepted, refused = fresh.where("reason is null"), fresh.where("reason is not null")
        silver = batch._to_silver(accepted, _everything(coverage))
        changed = dedup.changed(copies, kind.to_silver(accepted), kind.bronze_hash(), kind.silver_hash())
        quarantined = explained(refused.unionByName(changed.withColumn("reason", F.lit("changed"))))
        made = [self._without_forgotten(silver), self._without_forgotten(quarantined)]
        if imports:
            made[0] = _beside(made[0], self.tables.read(kind.silver).where("dataset is not null"))
            made[1] = _beside(made[1], self.tables.read(kind.quarantine).where(F.col("drain").isin(imports)))
        return [Made(kind.silver, made[0]), Made(kind.quarantine, made[1])]

    def _imports(self) -> list[str]:
        """The drains of imported logs. Their rows keep the order of their import and stay as they are."""
        if self.job.kind.stream != "samples":
            return []
        claims = self.tables.read(self.job.kind.bronze).select("drain", F.col("attributes")[ATTRIBUTE].alias("name"))
        named = claims.where("name is not null").distinct().collect()
        return sorted(proven((row["drain"], row["name"]) for row in named))

    def _judged(self, batch: Batch, imports: Sequence[str]) -> "DataFrame":
        kind = self.job.kind
        bronze = self.tables.read(kind.bronze)
        own = bronze.where(~F.col("drain").isin(imports)) if imports else bronze
        rows = judged(batch._ruled(own), self.job.rules, kind.stream)
        known = getattr(self.job, "known", None)
        return rows if known is None else recognised(rows, known.frame).drop("is_new")

    def _without_forgotten(self, rows: "DataFrame") -> "DataFrame":
        """The rows without numbers that were removed on purpose."""
        pairs = [(origin, pair) for origin, ranges in numbers(self.job.lake, self.job.kind.stream) for pair in ranges]
        if not pairs:
            return rows
        batch = _batch_of(self.job, self.upto, self.about)
        return dedup.outside(rows, *batch._ranges(pairs))

    def _values(self) -> list[Made]:
        """Values, and the edges for the next batch."""
        coverage = self._coverage()
        batch = _batch_of(self.job, self.upto, self.about)
        samples = self.tables.read(tables.SAMPLES).where("dataset is null")
        pieces = list(coverage.pieces(_everything(coverage)))
        shift = shift_for([(piece.origin, (piece.first, piece.last)) for piece in pieces])
        frame = batch._frame(pieces, ("first", "last", "island", "lost"))
        on_time = samples.where(~F.array_contains("flags", "after-lost"))
        points = self._kept(values.neighbours(values.placed(on_time, frame, shift)))
        pairs = values.paired(points, batch.mark)
        assert isinstance(batch, SampleBatch)
        finished = tuple(origin for origin in coverage.ends if coverage._is_finished(origin))
        edges = batch._unfinished(values.edges_of(points), _everything(coverage)._replace(finished=finished))
        imported = self.tables.read(tables.VALUES, self.tables.files(tables.VALUES, IMPORTED)).where(IMPORTED)
        own = pairs.unionByName(values.alone(samples))
        return [Made(tables.VALUES, _beside(own, imported)), Made(tables.EDGES, edges)]

    def _coverage(self) -> Coverage:
        """What is covered, lost and refused after the last batch, according to the current quarantine."""
        coverage = self.job.checkpoint.coverage(self.upto)
        coverage.refuse(refused_before(self.tables, self.job.kind.quarantine, self.upto + 1))
        return coverage

    # Refused if rows would be lost.

    def _refuse_loss(self, table: Table, made: Sequence[Made]) -> None:
        """Raise UserError `would-lose` if numbers would be lost that bronze no longer has."""
        if self.wish.may_lose or table != self.job.kind.silver:
            return
        old = _numbers([self._old_rows(part.table) for part in made]).alias("o")
        new = _numbers([self._chosen(part.table, part.rows) for part in made]).alias("n")
        lost = old.join(new, same_number("o", "n"), "left_anti").count()
        if not lost and self._is_cut(self.job.kind.bronze):
            lost = self._newly_first(made)
        if lost:
            raise UserError(
                "would-lose",
                f"{lost:,} numbers of {table.full_name} cannot be made again: bronze does not have them any more",
                "--since DAY, a later one; or --yes, if they may be lost",
            )

    def _newly_first(self, made: Sequence[Made]) -> int:
        """Numbers for which silver would get a row that was refused as `changed`: bronze has lost the row that came first."""
        old, new = (
            part.where(F.col("reason") == CHANGED).select("origin", "era", "sequence").distinct()
            for part in (self._old_rows(made[1].table), self._chosen(made[1].table, made[1].rows))
        )
        return old.alias("o").join(new.alias("n"), same_number("o", "n"), "left_anti").count()

    def _is_cut(self, table: Table) -> bool:
        """Whether a table has lost rows because of their age."""
        return self.cut.get(table.full_name, 0) > 0

    def _since(self, table: Table) -> date | None:
        """The first day to replace; None: all. If the source is cut: the day after its first, which may be incomplete."""
        since, source = self.wish.since, SOURCE.get(table.full_name)
        if table in (tables.EDGES, tables.LATEST):
            return None
        if source is None or not self._is_cut(source):
            return since
        days = [partition_of(path)["day"] for path in self.tables.relative(source, self.tables.files(source))]
        first = min((date.fromisoformat(day) for day in days if day), default=date.max - DAY) + DAY
        return max(since or first, first)

    # The rows to replace.

    def _is_chosen(self, table: Table) -> "Column":
        """A condition: the row is one of those to replace."""
        since = self._since(table)
        if since is None:
            return F.lit(True)
        return F.col("window_start" if table in ROLLUPS else "day") >= F.lit(since)

    def _chosen(self, table: Table, rows: "DataFrame") -> "DataFrame":
        return rows.where(self._is_chosen(table))

    def _files(self, table: Table) -> list[str]:
        """The files with rows to replace, and perhaps other rows."""
        since = self._since(table)
        if since is None:
            return self.tables.files(table)
        if table.partition == "month":
            since = since.replace(day=1)
        return self.tables.files(table, [(str(table.partition), ">=", since.isoformat())])

    def _old_rows(self, table: Table) -> "DataFrame":
        """The rows of a table that are to be replaced."""
        return self._chosen(table, self.tables.read(table, self._files(table)))

    def _rows(self, table: Table) -> int:
        """How many rows are to be replaced. If all are, the log knows it, and files that are damaged are not read."""
        if self._since(table) is None:
            return sum(rows for _, rows in self.tables.statistics(table, "num_records"))
        return self._old_rows(table).count()

    def _replace(self, made: Made) -> int:
        """One commit: add the new rows, remove the files of the old ones. Returns the number of new rows."""
        table, old = made.table, self._files(made.table)
        rows = self._chosen(table, made.rows)
        has_others = self._since(table) is not None
        others = self.tables.read(table, old if has_others else []).where(~self._is_chosen(table))
        rest = others.withColumn(_SPLIT, file_of(table)) if made.split else others
        columns = [*table.schema.names, *([made.split] if made.split else [])]
        added = self.tables.write(
            table, rows.select(*columns).unionByName(rest.select(*columns)), self.upto, split=made.split
        )
        copied = others.count() if has_others else 0
        self.tables.commit(table, self.upto, added, self.about, remove=self.tables.relative(table, old))
        return sum(file.rows for file in added) - copied

    def _kept(self, frame: "DataFrame") -> "DataFrame":
        self._persisted.append(frame.persist())
        return frame


def made_anew_with(table: Table) -> tuple[Table, ...]:
    """A table and those that a rebuild of it makes anew, too."""
    return (table, *DEPENDENT.get(table.full_name, ()))


def refuse_what_has_no_source(kind: Kind, table: Table) -> None:
    """Raise UserError `no-rebuild` for a table that is not made from other tables."""
    able = (kind.silver, *DEPENDENT.get(kind.silver.full_name, ()))
    if table not in able:
        raise UserError(
            "no-rebuild",
            f"{table.full_name} cannot be rebuilt: it is not made from other tables",
            f"one of {', '.join(each.full_name for each in able)}",
        )


def _batch_of(job: Job, number: int, about: dict[str, str]) -> Batch:
    """The steps of a batch of the job, to use some of them here."""
    return job._steps_of(number, about)


def _everything(coverage: Coverage) -> Plan:
    """A plan as if everything covered had come in a single batch."""
    late = VersionVector()
    for lost in coverage.lost.values():
        for origin, ranges in lost:
            for first, last in coverage.covered[origin] & ranges:
                late.add(origin, first, last)
    return Plan(coverage.covered, VersionVector(), late, (), (), {})


def _numbered(rows: "DataFrame") -> "DataFrame":
    """Rows of bronze with `copy`, which is 1 for the row of each number that counts."""
    numbered = dedup.numbered(rows, "batch")
    return rebuilt.hidden(numbered, rebuilt.spreads(numbered)) if counted(rows).spread else numbered


def _beside(own: "DataFrame", imported: "DataFrame") -> "DataFrame":
    """New rows together with rows of imported logs, which stay as they are."""
    return own.select(*imported.columns).unionByName(imported)


def _numbers(parts: "list[DataFrame]") -> "DataFrame":
    """The numbers of some tables together."""
    (first, *others) = [part.select("origin", "era", "sequence").where("sequence is not null") for part in parts]
    for other in others:
        first = first.unionByName(other)
    return first.distinct()
