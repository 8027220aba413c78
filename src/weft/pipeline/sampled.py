"""A batch of samples: what every batch is, and the values that neighbours make (PIP-040..043).

```
bronze       everything, as received
series       what new keys stand for
quarantine   what silver refuses, with the reason
silver       samples, each number once
values       pairs that have become possible, and values that need no pair
edges        what later neighbours will need: the state, so it comes after all that was computed with it
```

A repetition finds its inputs as they were: edges are those before the batch as long as any step is undone.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.base.identity import Origin
from weft.pipeline.batch import Batch, Counts, counted, shift_for
from weft.pipeline.coverage import Coverage, Plan
from weft.pipeline.delta import Tables
from weft.pipeline.intake import Intake
from weft.pipeline.kinds import SAMPLES as KIND
from weft.pipeline.ruleset import Rules
from weft.pipeline.steps import Steps
from weft.pipeline.tables import EDGES, SERIES, VALUES
from weft.pipeline.transforms import dedup, values
from weft.pipeline.transforms.quality import flags_of
from weft.pipeline.transforms.samples import to_samples
from weft.pipeline.transforms.series import definitions, recognised

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Known:
    """The definitions that series keys stand for, as a small frame that every batch is joined with."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.frame: DataFrame | None = None
        self.load()

    def load(self) -> None:
        """What `silver.series` says now."""
        if self.frame is not None:
            self.frame.unpersist()
        files = self.tables.files(SERIES)
        rows = self.tables.read(SERIES, files).select("series", "definition") if files else None
        self.frame = None if rows is None else rows.dropDuplicates(["series"]).coalesce(1).persist()


class SampleBatch(Batch):
    """The steps of one batch of samples; `known` learns the series that it brings."""

    def __init__(self, known: Known, number: int, about: Mapping[str, str], rules: Rules) -> None:
        super().__init__(KIND, known.tables, number, about, rules)
        self.known = known

    def _received(self, intake: Intake, steps: Steps) -> "tuple[DataFrame, Counts]":
        rows, counts = super()._received(intake, steps)
        with steps("series"):
            if counts.new:
                self._append(SERIES, definitions(rows.where("is_new")))
                self.known.load()
                rows = self._keep(self._judged(intake))
                counts = counted(rows)
        return rows, counts

    def _judged(self, intake: Intake) -> "DataFrame":
        return recognised(super()._judged(intake), self.known.frame)

    def _made(self, accepted: "DataFrame", plan: Plan) -> "DataFrame":
        """Samples, those among them that had been announced lost with a flag."""
        flags = flags_of(self.rules)
        if not plan.late:
            return to_samples(accepted, flags)
        ranges, shift = self._ranges([(origin, pair) for origin, pairs in plan.late for pair in pairs])
        on_time = to_samples(dedup.outside(accepted, ranges, shift), flags)
        return on_time.unionByName(to_samples(dedup.within(accepted, ranges, shift), flags, is_late=True))

    def _beyond(self, samples: "DataFrame | None", plan: Plan, coverage: Coverage, steps: Steps) -> int:
        """Values of the batch, then the edges behind it; returns how many values."""
        if self._is_done(EDGES):
            return self.tables.rows_of_batch(VALUES, self.number)
        with steps("values"):
            points = self._points(samples, plan, coverage)
            made = [] if points is None else [values.paired(points, self.mark)]
            made += [] if samples is None else [values.alone(samples)]
            count = self._append(VALUES, made[0] if len(made) == 1 else made[0].unionByName(made[1])) if made else 0
        with steps("edges"):
            if points is not None:
                old = self.tables.relative(EDGES, self.tables.files(EDGES))
                files = self._write(EDGES, self._unfinished(values.edges_of(points), plan))
                self.tables.commit(EDGES, self.number, files, self.about, remove=old)
        return count

    def _unfinished(self, edges: "DataFrame", plan: Plan) -> "DataFrame":
        """Without those of eras that are over: they have made their last pair in this very batch."""
        if not plan.finished:
            return edges
        return edges.join(F.broadcast(self._origins(plan.finished)), ["origin", "era"], "left_anti").select(
            *EDGES.schema.names
        )

    def _points(self, samples: "DataFrame | None", plan: Plan, coverage: Coverage) -> "DataFrame | None":
        """Fresh samples and edges, each beside its neighbour; None if no pair can arise and no edge can change."""
        pieces, moves = list(coverage.pieces(plan)), list(coverage.moves(plan))
        if not (pieces or moves or plan.finished):
            return None
        edges = self.tables.read(EDGES)
        points = values.moved(edges, self._frame(moves, ("was", "island", "shift")) if moves else None)
        if pieces and samples is not None:
            shift = shift_for([(piece.origin, (piece.first, piece.last)) for piece in pieces])
            frame = self._frame(pieces, ("first", "last", "island", "lost"))
            points = values.placed(samples, frame, shift).unionByName(points)
        return self._keep(values.neighbours(points.coalesce(1) if self.tasks == 1 else points))

    def _origins(self, origins: Sequence[Origin]) -> "DataFrame":
        return self._frame([(origin,) for origin in origins], ())
