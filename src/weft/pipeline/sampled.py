"""A batch of samples: the steps of every batch, and the values calculated from neighbours (PIP-040..043).

```
bronze       everything, as received
series       the definitions of new keys
quarantine   what silver refuses, with the reason
twins        rows of datasets that repeat a sample of another file or line
silver       samples, each number once
values       values of new pairs, and of samples that need no pair
edges        the samples with which later ones will form pairs; written last, because the steps above read them
```

So a batch that is repeated after a crash has the same inputs: the edges are those before the batch until all other steps
are done.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from weft.base.identity import Origin
from weft.lake.manifest import name_of
from weft.pipeline.batch import Batch, Counts, Outcome, counted, shift_for
from weft.pipeline.coverage import Coverage, Plan
from weft.pipeline.datasets import Datasets
from weft.pipeline.delta import Tables
from weft.pipeline.foreign import Foreign
from weft.pipeline.intake import Intake
from weft.pipeline.kinds import SAMPLES as KIND
from weft.pipeline.rewriting import UNCHANGED, Replaced
from weft.pipeline.ruleset import Rules
from weft.pipeline.steps import Steps
from weft.pipeline.tables import EDGES, SERIES, TWINS, VALUES
from weft.pipeline.transforms import dedup, imported, values
from weft.pipeline.transforms.quality import flags_of
from weft.pipeline.transforms.samples import to_samples
from weft.pipeline.transforms.series import definitions, recognised


class Known:
    """The definitions of all series, as a small data frame with which every batch is joined."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.datasets = Datasets()
        self.frame: DataFrame | None = None
        self.load()

    def load(self) -> None:
        """Load the contents of `silver.series`."""
        if self.frame is not None:
            self.frame.unpersist()
        files = self.tables.files(SERIES)
        rows = self.tables.read(SERIES, files).select("series", "definition") if files else None
        self.frame = None if rows is None else rows.dropDuplicates(["series"]).coalesce(1).persist()


class SampleBatch(Batch):
    """The steps of one batch of samples. Its new series are added to `known`."""

    def __init__(self, known: Known, number: int, about: Mapping[str, str], rules: Rules) -> None:
        super().__init__(KIND, known.tables, number, about, rules)
        self.known = known
        self.drains: dict[str, str] = {}
        """The drains of this batch that are datasets, with their names."""
        self.foreign: Foreign | None = None

    def run(self, intake: Intake, plan: Plan, coverage: Coverage, steps: Steps) -> Outcome:
        """Do all steps of the batch. Rows of datasets are compared and calculated separately (PIP-097, PIP-099)."""
        self.drains = self.known.datasets.among(intake.slices)
        self.is_plain = not self.drains
        return super().run(intake, plan, coverage, steps)

    def _received(self, intake: Intake, plan: Plan, steps: Steps) -> tuple[DataFrame, Counts]:
        rows, counts = super()._received(intake, plan, steps)
        with steps("series"):
            if counts.new:
                is_unambiguous = self._define(rows)
                self.known.load()
                rows = self._rows(intake)
                if is_unambiguous:
                    counts = counts._replace(new=0)
                else:
                    self._silver_files, counts = None, counted(rows)
        return rows, counts

    def _define(self, rows: DataFrame) -> bool:
        """Store the definitions of new keys; returns True if it is certain that each key has one definition."""
        if self._is_done(SERIES):
            return False
        seen = Observation()
        self._append(SERIES, definitions(rows.where("is_new")).observe(seen, F.expr("bool_and(is_one) as is_one")))
        return bool(seen.get["is_one"])

    def _judged(self, intake: Intake) -> DataFrame:
        rows = recognised(super()._judged(intake), self.known.frame)
        return imported.marked(rows, sorted(self.drains)) if self.drains else rows

    def _changed(self, duplicates: DataFrame, accepted: DataFrame, plan: Plan) -> DataFrame:
        changed = super()._changed(duplicates, accepted, plan)
        if not (self.drains and plan.repeated):
            return changed
        known = self.tables.read(TWINS).where(F.col("batch") < self.number)
        others = dedup.changed(duplicates, known, self.kind.bronze_hash(), F.col("said"))
        return changed.unionByName(others.withColumn("reason", F.lit("changed")))

    def _without_twins(self, accepted: DataFrame, steps: Steps) -> tuple[DataFrame, int]:
        """The rows without those datasets' rows that repeat a sample from another file or line."""
        if not self.drains:
            return accepted, 0
        with steps("twins"):
            foreign = Foreign(self.tables, self.number, accepted)
            if not foreign.origins:
                return accepted, 0
            self.foreign = foreign
            twins = foreign.twins = self._keep(foreign.compared())
            count = self._append(TWINS, imported.duplicates_of(twins, self.mark))
            own = accepted.where("dataset is null").withColumn("is_ambiguous", F.lit(False))
            return own.unionByName(imported.samples_of(twins)), count

    def _corrected(self) -> Replaced:
        return UNCHANGED if self.foreign is None else self.foreign.doubted()

    def _to_silver(self, accepted: DataFrame, plan: Plan) -> DataFrame:
        """The samples; those that had been announced lost get a flag."""
        flags = flags_of(self.rules)
        if self.foreign is not None:
            flags += (F.when(F.col("is_ambiguous"), F.lit(imported.AMBIGUOUS)),)
        if not plan.late:
            return to_samples(accepted, flags)
        ranges, shift = self._ranges([(origin, pair) for origin, pairs in plan.late for pair in pairs])
        on_time = to_samples(dedup.outside(accepted, ranges, shift), flags)
        return on_time.unionByName(to_samples(dedup.within(accepted, ranges, shift), flags, is_late=True))

    def _after_silver(self, samples: DataFrame | None, plan: Plan, coverage: Coverage, steps: Steps) -> int:
        """Write the values of the batch, then the edges after it; returns how many values."""
        if self._is_done(EDGES):
            return self.tables.rows_of_batch(VALUES, self.number)
        with steps("values"):
            points = self._points(samples, plan, coverage)
            made = [] if points is None else [values.paired(points, self.mark)]
            made += [] if samples is None else [values.alone(samples)]
            count = self._values(made, samples)
        with steps("edges"):
            if points is not None:
                old = self.tables.relative(EDGES, self.tables.files(EDGES))
                files = self._write(EDGES, self._unfinished(values.edges_of(points), plan))
                self.tables.commit(EDGES, self.number, files, self.about, remove=old)
        return count

    def _values(self, made: list[DataFrame], samples: DataFrame | None) -> int:
        """Commit the values; for datasets also new pairs, and without the old pairs that a new sample divides."""
        foreign = self.foreign
        if foreign is None or samples is None:
            return self._append(VALUES, reduce(_both, made)) if made else 0
        pairs = self._keep(foreign.pairs(samples.where("dataset is not null"), self.mark))
        rows = reduce(_both, made, pairs.drop("is_new"))
        return self._append(VALUES, rows, lambda: foreign.divided(pairs))

    def _unfinished(self, edges: DataFrame, plan: Plan) -> DataFrame:
        """The edges without those of eras that are closed and complete: no more neighbours can arrive."""
        if not plan.finished:
            return edges
        return edges.join(F.broadcast(self._origins(plan.finished)), ["origin", "era"], "left_anti").select(
            *EDGES.schema.names
        )

    def _points(self, samples: DataFrame | None, plan: Plan, coverage: Coverage) -> DataFrame | None:
        """Fresh samples and edges, each with its neighbour; None if there can be no new pair and no changed edge."""
        foreign = frozenset() if self.foreign is None else self.foreign.origins
        pieces = [piece for piece in coverage.pieces(plan) if name_of(piece.origin.node) not in foreign]
        moves = list(coverage.moves(plan))
        if not (pieces or moves or plan.finished):
            return None
        edges = self.tables.read(EDGES)
        points = values.moved(edges, self._frame(moves, ("was", "island", "shift")) if moves else None)
        if pieces and samples is not None:
            samples = samples if self.foreign is None else samples.where("dataset is null")
            shift = shift_for([(piece.origin, (piece.first, piece.last)) for piece in pieces])
            frame = self._frame(pieces, ("first", "last", "island", "lost"))
            points = values.placed(samples, frame, shift).unionByName(points)
        return self._keep(values.neighbours(points.coalesce(1) if self.tasks == 1 else points))

    def _origins(self, origins: Sequence[Origin]) -> DataFrame:
        return self._frame([(origin,) for origin in origins], ())


def _both(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other)
