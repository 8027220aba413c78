"""Each number once (PIP-030), told by ranges; and the plans by which it is done (PIP-071)."""

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.pipeline.ground import ERA, MEM, OTHER_DRAIN, A, Ground, taken
from weft.base.chance import Chance
from weft.base.identity import Origin
from weft.base.ranges import RangeSet
from weft.pipeline.batch import shift_for
from weft.pipeline.transforms.dedup import outside, within

pytestmark = pytest.mark.prove("whole batches in Spark")

NODE = Origin(bytes.fromhex(A), ERA)


def frames(spark: SparkSession, numbers: list[int | None], ranges: RangeSet) -> tuple[DataFrame, DataFrame, int]:
    era = pa.array([ERA] * len(numbers), pa.int64())
    rows = pa.table({"origin": [A] * len(numbers), "era": era, "sequence": pa.array(numbers, pa.int64())})
    first, last = [r[0] for r in ranges], [r[1] for r in ranges]
    eras = pa.array([ERA] * len(first), pa.int64())
    some = pa.table({"origin": [A] * len(first), "era": eras, "first": first, "last": last})
    shift = shift_for([(NODE, pair) for pair in ranges])
    return spark.createDataFrame(rows), spark.createDataFrame(some), shift


@pytest.mark.proves("PIP-030")
@pytest.mark.parametrize("many", [3, 400])
def test_a_row_is_in_a_range_or_in_none(spark: SparkSession, many: int) -> None:
    chance = Chance(f"ranges {many}")
    ranges = RangeSet((n, n + chance.randint(0, 3)) for n in (chance.randint(1, 9 * many) for _ in range(many)))
    numbers: list[int | None] = [*range(1, 9 * many, 7), None, 0, (1 << 63) - 1]
    rows, some, shift = frames(spark, numbers, ranges)
    inside = {row["sequence"] for row in within(rows, some, shift).collect()}
    others = {row["sequence"] for row in outside(rows, some, shift).collect()}
    wanted = {n for n in numbers if n and n in ranges}
    assert (wanted, set(numbers) - wanted) == (inside, others)


def test_buckets_are_as_wide_as_few_ranges_allow() -> None:
    def pairs(count: int, step: int) -> list[tuple[Origin, tuple[int, int]]]:
        return [(NODE, (1 + step * i, 1 + step * i)) for i in range(count)]

    assert 62 == shift_for([(NODE, (1, (1 << 63) - 1))])
    assert 62 == shift_for(pairs(16, 10))
    assert 8 == shift_for(pairs(1000, 100))
    assert 12 == shift_for(pairs(1000, 1000))
    assert 40 == shift_for([*pairs(1000, 2), (NODE, (1 << 40, 1 << 50))])


@pytest.mark.proves("PIP-030", "PIP-031", "PIP-032")
def test_a_repeated_number_with_other_content_is_quarantined_as_changed(ground: Ground) -> None:
    ground.take(taken(1, [(MEM, n, None) for n in range(1, 6)]))
    ground.write(taken(2, [(MEM, 2, None), (MEM, 33, None), (MEM, 4, None)]), taken(7, [(MEM, 7, None)]))
    ground.write(taken(7, [(MEM, 77, None)]), taken(6, [(MEM, 6.5, None)]), drain=OTHER_DRAIN)
    done = ground.take()
    assert (6, 2, 2, 2) == done.outcome[:4]
    quarantined = ground.rows("quarantine.samples", "sequence", "value_long", "reason")
    assert [(3, 33, "changed"), (7, 77, "changed")] == quarantined
    kept = [(n, float(n)) for n in range(1, 6)] + [(6, 6.5), (7, 7.0)]
    assert kept == ground.rows("silver.samples", "sequence", "value")
    ground.job.fold()
    row = ground.rows("gold.completeness")[0]
    counts = [row[name] for name in ("expected", "received", "duplicates", "quarantined", "missing")]
    assert [7, 7, 2, 2, 0] == counts


@pytest.mark.proves("PIP-071")
def test_no_step_calls_python_or_joins_everything_with_everything(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []
    real = type(ground.job.tables).write

    def write(self: object, table: object, frame: DataFrame, *args: object, **named: object) -> object:
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        return real(self, table, frame, *args, **named)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(type(ground.job.tables), "write", write)
    ground.take(taken(1, [(MEM, n, None) for n in range(1, 6)]))
    ground.take(taken(3, [(MEM, n, None) for n in range(3, 9)]), taken(20, [(MEM, 1, None)]))
    ground.job.fold()
    assert len(plans) > 10
    for plan in plans:
        assert [] == [step for step in ("Python", "UDF", "CartesianProduct", "NestedLoop") if step in plan], plan
