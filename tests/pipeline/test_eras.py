"""The last samples of an era may come together with the link that ends it."""

from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from tests.pipeline.ground import ERA, NET, A, Ground, era_end, lost, taken
from weft.pipeline.coverage import Coverage, Plan
from weft.pipeline.sampled import SampleBatch
from weft.pipeline.tables import EDGES, Table

pytestmark = pytest.mark.prove("whole batches in Spark")

ROWS = [(NET, 10 * number, None) for number in range(1, 7)]
ALL_PAIRS = [(number, number + 1) for number in range(1, 6)]


def live(ground: Ground) -> None:
    """The era's last samples and its end in one batch, and the first ones of the era that follows."""
    ground.take(taken(1, ROWS[:4]))
    ground.take(taken(5, ROWS[4:]), era_end(6), taken(1, ROWS[:2], era=ERA + 1))


@pytest.mark.proves("PIP-041", "PIP-043")
def test_an_era_link_in_the_batch_of_the_eras_last_samples_costs_no_pair(ground: Ground) -> None:
    live(ground)
    rows = ground.rows("silver.values", "era", "from_sequence", "sequence")
    assert [*((ERA, *pair) for pair in ALL_PAIRS), (ERA + 1, 1, 2)] == rows
    assert [(A, ERA + 1, 2)] == ground.rows("meta.edges", "origin", "era", "sequence")
    ground.take(taken(3, ROWS[2:3], era=ERA + 1))
    assert [(1, 2), (2, 3)] == [
        row[1:] for row in ground.rows("silver.values", "era", "from_sequence", "sequence")[-2:]
    ]


def test_edges_dropped_before_they_are_paired_would_be_seen(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    points = SampleBatch._points

    def forgetful(self: SampleBatch, samples: DataFrame | None, plan: Plan, coverage: Coverage) -> Any:
        read = self.tables.read

        def without(table: Table, *files: Any) -> DataFrame:
            return read(table, *files).where(lit(not (table is EDGES and plan.finished)))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.tables, "read", without)
            return points(self, samples, plan, coverage)

    monkeypatch.setattr(SampleBatch, "_points", forgetful)
    live(ground)
    assert {(4, 5)} == {*ALL_PAIRS, (1, 2)} - {*ground.pairs()}


@pytest.mark.proves("PIP-043")
def test_an_era_that_ended_with_a_hole_makes_its_pairs_when_the_hole_is_explained(ground: Ground) -> None:
    ground.take(taken(1, ROWS[:2]), taken(6, ROWS[5:]), era_end(6))
    assert [(1, 2)] == ground.pairs()
    ground.take(taken(3, ROWS[2:3]), lost(4, 5))
    assert [(1, 2), (2, 3), (3, 6)] == ground.pairs()
    assert [] == ground.rows("meta.edges")
