"""Calculated values (PIP-040..043): each pair of neighbours exactly once, in whatever order its samples arrive.

Two samples of one series are neighbours if every number between them is known (covered, or announced lost) and none of
them is a sample of that series. Samples that arrive later can only form pairs with *edges*: the first and last sample of
each series in each island of its origin. So a batch takes its fresh samples and the edges, and orders those of an island
by sequence; each sample forms a pair with the one before. A pair whose samples were in one island before was made then,
and is left out.
"""

from functools import cache

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from weft.pipeline.tables import EDGES, VALUES
from weft.pipeline.transforms.columns import columns, day_of, instant_of, is_paired, same_origin, with_others
from weft.pipeline.transforms.dedup import bucketed, in_range

_SAMPLE = tuple(name for name in EDGES.schema.names if name not in ("island", "lost"))
_POINT = ("sequence", "at_ns", "value", "value_long", "base", "base_long", "lost", "was")


def placed(samples: DataFrame, pieces: DataFrame, shift: int) -> DataFrame:
    """Samples that need a neighbour, with their island; samples that are in no piece, which are late, are left out.

    Grain: one sample. Key: (origin, era, sequence). Columns: `meta.edges`, then `was`, null because the sample is new.
    """
    where = F.broadcast(bucketed(pieces, shift)).alias("g")
    return samples.where(_is_paired()).alias("r").join(where, in_range("r", "g", shift)).select(*_placed())


def moved(edges: DataFrame, moves: DataFrame | None) -> DataFrame:
    """Edges with their current island; `was` is their former one.

    Grain: an edge. Key: (origin, era, sequence). Columns: `meta.edges`, then `was`.
    """
    if moves is None:
        return edges.select(*_unmoved())
    joined = edges.alias("e").join(
        F.broadcast(moves).alias("m"), same_origin("e", "m") & (F.col("e.island") == F.col("m.was")), "left"
    )
    return joined.select(
        *[f"e.{name}" for name in _SAMPLE],
        F.coalesce("m.island", "e.island").alias("island"),
        (F.col("e.lost") + F.coalesce("m.shift", F.lit(0))).alias("lost"),
        F.col("e.island").alias("was"),
    )


def neighbours(points: DataFrame) -> DataFrame:
    """Fresh samples and edges, each with the one before it in its island (`before`, or null), and whether it `is_last`.

    Grain and key as the input, which has the columns of `placed`. Columns: those, then `before` and `is_last`.
    """
    return points.select("*", *_beside())


def edges_of(points: DataFrame) -> DataFrame:
    """First and last sample of each series in each island.

    Grain: an edge. Key: (origin, era, sequence). Columns: `meta.edges`. The first sample of an island that begins at 1 is
    left out: no sample can come before it.
    """
    return points.where("before is null and island > 1 or is_last").select(*columns(*EDGES.schema.names))


def paired(points: DataFrame, batch: Column, **more: Column) -> DataFrame:
    """The values of all pairs that were not possible before.

    Grain: one pair. Key: id of the later sample. Columns: `silver.values`, and those of `more` that it lacks.
    """
    pairs = points.where("before is not null and not coalesce(was = before.was, false)")
    return pairs.select("*", *_judged()).select(*_paired(batch, more))


def alone(samples: DataFrame) -> DataFrame:
    """The values of samples that need no neighbour: basic ones, and types that already are calculated values.

    Grain: one sample. Key: its id. Columns: `silver.values`. Text has no value.
    """
    return samples.where(~_is_paired() & F.col("value").isNotNull()).select(*_alone())


@cache
def _is_paired() -> Column:
    return is_paired()


@cache
def _placed() -> tuple[Column, ...]:
    sample = (F.col(f"r.{name}") for name in _SAMPLE)
    return (*sample, F.col("g.island"), F.col("g.lost"), F.lit(None).cast("bigint").alias("was"))


@cache
def _unmoved() -> tuple[Column, ...]:
    return (*columns(*EDGES.schema.names), F.col("island").alias("was"))


@cache
def _beside() -> tuple[Column, ...]:
    line = Window.partitionBy("origin", "era", "series", "island").orderBy("sequence")
    before = F.lag(F.struct(*_POINT)).over(line)
    return before.alias("before"), F.lead("sequence").over(line).isNull().alias("is_last")


@cache
def _judged() -> tuple[Column, ...]:
    span = F.expr("at_ns div 1000000 - before.at_ns div 1000000")
    return span.alias("span_ms"), _refusal(span).alias("refusal")


def _paired(batch: Column, more: dict[str, Column]) -> tuple[Column, ...]:
    names = dict.fromkeys((*VALUES.schema.names, *more))
    return with_others(names, **(_made() | more), batch=batch)


@cache
def _made() -> dict[str, Column]:
    across = F.when(F.col("lost") > F.col("before.lost"), F.lit("across-lost"))
    return {
        "from_sequence": F.col("before.sequence"),
        "at": instant_of("at_ns"),
        "result": F.when(F.col("refusal").isNull(), _result()),
        "reason": F.coalesce("refusal", across),
        "day": day_of("at_ns"),
        "from_era": F.lit(None).cast("bigint"),
        "dataset": F.lit(None).cast("string"),
    }


@cache
def _alone() -> tuple[Column, ...]:
    nothing, no_text = F.lit(None).cast("bigint"), F.lit(None).cast("string")
    return with_others(
        VALUES.schema.names,
        from_sequence=nothing,
        span_ms=nothing,
        result=F.col("value"),
        reason=no_text,
        from_era=nothing,
    )


def _step(name: str) -> Column:
    """Later value minus earlier value: exact if both are integers and the result fits 64 bits, else as doubles."""
    exact = F.expr(f"try_subtract({name}_long, before.{name}_long)").cast("double")
    return F.coalesce(exact, F.col(name) - F.col(f"before.{name}"))


def _ran_backwards(name: str) -> Column:
    """Whether a counter is lower than before; exact for integers."""
    exact = F.col(f"{name}_long") < F.col(f"before.{name}_long")
    return F.coalesce(exact, F.col(name) < F.col(f"before.{name}"))


def _refusal(span_ms: Column) -> Column:
    """Why a pair has no result, null if it has one (MEA-001)."""
    needs_base = F.col("type").isin("average", "percent")
    has_no_base = F.col("base").isNull() | F.col("before.base").isNull()
    return (
        F.when(_ran_backwards("value"), F.lit("reset"))
        .when((F.col("type") == "rate") & (span_ms <= 0), F.lit("clock"))
        .when(needs_base & (has_no_base | _ran_backwards("base")), F.lit("base-reset"))
    )


def _result() -> Column:
    """The value of a pair that has one, by type (MEA-001). No branch divides by zero: in ANSI mode that is an error."""
    step, base = _step("value"), _step("base")
    average = F.when(base == 0, F.lit(0.0)).otherwise(F.try_divide(step, base))
    return (
        F.when(F.col("type") == "delta", step)
        .when(F.col("type") == "rate", F.try_divide(step * 1000.0, F.col("span_ms").cast("double")))
        .when(F.col("type") == "average", average)
        .otherwise(average * 100.0)
    )
