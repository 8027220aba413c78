"""Calculated values (PIP-040..043): each pair of neighbours exactly once, in whatever order its samples arrive.

Two samples of one series are neighbours when every number between them is known (covered, or announced lost). What a
later arrival can still need of the past are the *edges*: the first and last sample of each series in each island of
its origin. So a batch unites its fresh samples with the edges, and one window in sequence order per island yields all
pairs; a pair whose ends stood in one island before was made before, and is left out.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from weft.pipeline.tables import EDGES, VALUES
from weft.pipeline.transforms.columns import day_of, instant_of, is_paired, same_origin
from weft.pipeline.transforms.dedup import bucketed, in_range

_POINT = ("sequence", "at_ns", "value", "value_long", "base", "base_long", "lost", "was")


def placed(samples: DataFrame, pieces: DataFrame, shift: int) -> DataFrame:
    """Samples that need a neighbour, with the island they lie in; those in no piece (late ones) are left out.

    Grain: one sample. Key: (origin, era, sequence). Columns: `meta.edges`, then `was`, null: it was nowhere before.
    """
    where = F.broadcast(bucketed(pieces, shift)).alias("g")
    named = [name for name in EDGES.schema.names if name not in ("island", "lost")]
    return (
        samples.where(is_paired())
        .alias("r")
        .join(where, in_range("r", "g", shift))
        .select(*[f"r.{name}" for name in named], "g.island", "g.lost", F.lit(None).cast("bigint").alias("was"))
    )


def moved(edges: DataFrame, moves: DataFrame | None) -> DataFrame:
    """Edges in the islands of now; `was` keeps that of before. Columns: `meta.edges`, then `was`."""
    if moves is None:
        return edges.withColumn("was", F.col("island"))
    joined = edges.alias("e").join(
        F.broadcast(moves).alias("m"), same_origin("e", "m") & (F.col("e.island") == F.col("m.was")), "left"
    )
    kept = [name for name in EDGES.schema.names if name not in ("island", "lost")]
    return joined.select(
        *[f"e.{name}" for name in kept],
        F.coalesce("m.island", "e.island").alias("island"),
        (F.col("e.lost") + F.coalesce("m.shift", F.lit(0))).alias("lost"),
        F.col("e.island").alias("was"),
    )


def neighbours(points: DataFrame) -> DataFrame:
    """Fresh samples and edges, each with the one `before` it in its island, if any, and whether it `is_last`.

    Grain and key as the input, which has the columns of `placed`. Columns: those, then these two.
    """
    line = Window.partitionBy("origin", "era", "series", "island").orderBy("sequence")
    return points.withColumns(
        {
            "before": F.lag(F.struct(*_POINT)).over(line),
            "is_last": F.lead("sequence").over(line).isNull(),
        }
    )


def edges_of(points: DataFrame) -> DataFrame:
    """First and last of each series in each island, as far as a neighbour may still come.

    Grain: an edge. Key: (origin, era, sequence). Columns: `meta.edges`. Nothing comes before an island that begins at 1.
    """
    is_first = F.col("before").isNull() & (F.col("island") > 1)
    return points.where(is_first | F.col("is_last")).select(*EDGES.schema.names)


def paired(points: DataFrame, batch: Column) -> DataFrame:
    """The values of all pairs that were not possible before.

    Grain: one pair. Key: id of the later sample. Columns: `silver.values`.
    """
    was_made = F.coalesce(F.col("was") == F.col("before.was"), F.lit(False))
    pairs = points.where(F.col("before").isNotNull() & ~was_made)
    across = F.when(F.col("lost") > F.col("before.lost"), F.lit("across-lost"))
    return (
        pairs.withColumns({"span_ms": _span_ms(), "refusal": _refusal()})
        .withColumns(
            {
                "from_sequence": F.col("before.sequence"),
                "at": instant_of("at_ns"),
                "result": F.when(F.col("refusal").isNull(), _result()),
                "reason": F.coalesce("refusal", across),
                "batch": batch,
                "day": day_of("at_ns"),
            }
        )
        .select(*VALUES.schema.names)
    )


def alone(samples: DataFrame) -> DataFrame:
    """The values of samples that need no neighbour: basic ones, and all types that are calculated already.

    Grain: one sample. Key: its id. Columns: `silver.values`. Text has no value.
    """
    return (
        samples.where(~is_paired() & F.col("value").isNotNull())
        .withColumns(
            {
                "from_sequence": F.lit(None).cast("bigint"),
                "span_ms": F.lit(None).cast("bigint"),
                "result": F.col("value"),
                "reason": F.lit(None).cast("string"),
            }
        )
        .select(*VALUES.schema.names)
    )


def _span_ms() -> Column:
    return F.expr("at_ns div 1000000 - before.at_ns div 1000000")


def _step(name: str) -> Column:
    """Later minus earlier: as integers if both are and it fits, else as doubles."""
    exact = F.expr(f"try_subtract({name}_long, before.{name}_long)").cast("double")
    return F.coalesce(exact, F.col(name) - F.col(f"before.{name}"))


def _ran_backwards(name: str) -> Column:
    """Whether a counter is lower than before; exact for integers."""
    exact = F.col(f"{name}_long") < F.col(f"before.{name}_long")
    return F.coalesce(exact, F.col(name) < F.col(f"before.{name}"))


def _refusal() -> Column:
    """Why a pair has no result, null if it has one (MEA-001)."""
    needs_base = F.col("type").isin("average", "percent")
    has_no_base = F.col("base").isNull() | F.col("before.base").isNull()
    return (
        F.when(_ran_backwards("value"), F.lit("reset"))
        .when((F.col("type") == "rate") & (F.col("span_ms") <= 0), F.lit("clock"))
        .when(needs_base & (has_no_base | _ran_backwards("base")), F.lit("base-reset"))
    )


def _result() -> Column:
    """The value of a pair that has one, by type (MEA-001). No branch divides by zero, which ANSI would refuse."""
    step, base = _step("value"), _step("base")
    average = F.when(base == 0, F.lit(0.0)).otherwise(F.try_divide(step, base))
    return (
        F.when(F.col("type") == "delta", step)
        .when(F.col("type") == "rate", F.try_divide(step * 1000.0, F.col("span_ms").cast("double")))
        .when(F.col("type") == "average", average)
        .otherwise(average * 100.0)
    )
