"""Makes, merges and queries sketches in Spark with column expressions only (PIP-047).

`weft.pipeline.views.sketch` says what a sketch is. While values are counted, a bucket is one integer, so that Spark can
group by it: 0 for zero, index + `OFFSET` for positive values, -(index + `OFFSET`) for negative ones. These integers sort
in the order of the values.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from weft.pipeline.schemas.table import SKETCH
from weft.pipeline.views.sketch import BUCKETS_MAX, GAMMA, LN_GAMMA, SHARE, VALUE_MAX, ZERO_BELOW

OFFSET: Final = 2_000  # makes every index positive: that of 1e-9, the smallest magnitude that is not zero, is -1036


def bucket_of(value: Column) -> Column:
    """The bucket of a value as one integer; null for null."""
    size = F.least(F.abs(value), F.lit(VALUE_MAX))
    index = F.ceil(F.ln(size) / F.lit(LN_GAMMA)).cast("int") + F.lit(OFFSET)
    is_zero = F.abs(value) < F.lit(ZERO_BELOW)
    return F.when(is_zero, F.lit(0)).when(value < 0, -index).when(value.isNotNull(), index)


def sketch_of(counts: Column) -> Column:
    """A sketch from counted buckets: an array of struct<bucket, count>, each bucket once, in any order."""
    return _let(F.array_sort(counts), lambda sorted_: _united(*_sides(sorted_), F.lit(False)))


def sketches_of(sketch: Column) -> Column:
    """All sketches of a group as an array, for `sketch_merge`. Unlike with `collect_list` alone, nulls stay in it."""
    return F.collect_list(F.struct(sketch.alias("sketch")))["sketch"]


def sketch_merge(sketches: Column) -> Column:
    """All sketches of an array merged; null for an empty array, or if one of them is null (unknown)."""
    zero = F.aggregate(sketches, F.lit(0).cast("bigint"), lambda total, sketch: total + sketch["zero"])
    positive, negative = (_added(sketches, side) for side in ("positive", "negative"))
    merged = _united(zero, positive, negative, F.exists(sketches, lambda sketch: sketch["collapsed"]))
    is_known = (F.size(sketches) > 0) & ~F.exists(sketches, lambda sketch: sketch.isNull())
    return F.when(is_known, merged)


def sketch_quantile(sketch: Column, q: Column | float) -> Column:
    """The value at rank `q * (n - 1)` of n values, counted from 0; at most 1 % off. Null without values, or if q is not in 0..1."""
    share = q if isinstance(q, Column) else F.lit(float(q))
    return F.when(share.between(0.0, 1.0), _let(_points(sketch), lambda points: _ranked(points, share)))


def _let(value: Column, then: Callable[[Column], Column]) -> Column:
    """The expression `then` of a value, which is computed once however often `then` uses it."""
    return F.get(F.transform(F.array(value), then), F.lit(0))


def _sides(buckets: Column) -> tuple[Column, Column, Column]:
    """The zero, positive and negative parts of counted buckets that are sorted."""
    zero = F.filter(buckets, lambda one: one["bucket"] == 0)
    above = F.filter(buckets, lambda one: one["bucket"] > 0)
    below = F.reverse(F.filter(buckets, lambda one: one["bucket"] < 0))
    return (
        F.coalesce(F.get(zero, F.lit(0))["count"], F.lit(0).cast("bigint")),
        F.transform(above, lambda one: _bucket(one["bucket"] - OFFSET, one["count"])),
        F.transform(below, lambda one: _bucket(-one["bucket"] - OFFSET, one["count"])),
    )


def _bucket(index: Column, count: Column) -> Column:
    return F.struct(index.alias("index"), count.alias("count"))


def _added(sketches: Column, side: str) -> Column:
    """One side of several sketches: the counts of equal buckets added, sorted."""
    both = F.array_sort(F.flatten(F.transform(sketches, lambda sketch: sketch[side])))
    return _let(both, lambda buckets: _let(_starts(buckets), lambda starts: _grouped(buckets, starts)))


def _starts(buckets: Column) -> Column:
    """The positions at which the index changes in sorted buckets, from 1; at the end one past the last."""
    places = F.sequence(F.lit(1), F.size(buckets) + 1)
    starts = F.filter(
        places,
        lambda at: (
            (at == 1) | (at > F.size(buckets)) | (F.get(buckets, at - 1)["index"] != F.get(buckets, at - 2)["index"])
        ),
    )
    return F.when(F.size(buckets) > 0, starts).otherwise(F.array().cast("array<int>"))


def _grouped(buckets: Column, starts: Column) -> Column:
    """Sorted buckets with equal ones added up; `starts` are those of `_starts`."""

    def one(at: Column, place: Column) -> Column:
        equal = F.slice(buckets, at, F.get(starts, place + 1) - at)
        return _bucket(F.get(buckets, at - 1)["index"], _total(equal))

    firsts = F.slice(starts, F.lit(1), F.greatest(F.size(starts) - 1, F.lit(0)))
    return F.transform(firsts, one)


def _total(buckets: Column) -> Column:
    return F.aggregate(buckets, F.lit(0).cast("bigint"), lambda total, bucket: total + bucket["count"])


def _united(zero: Column, positive: Column, negative: Column, collapsed: Column) -> Column:
    """A sketch from its parts; a side with too many buckets is cut, and `collapsed` says so."""
    sides = F.struct(positive.alias("positive"), negative.alias("negative"))

    def cut(both: Column) -> Column:
        over = [F.size(both[side]) > BUCKETS_MAX for side in ("positive", "negative")]
        return F.struct(
            zero.alias("zero"),
            _cut(both["positive"]).alias("positive"),
            _cut(both["negative"]).alias("negative"),
            (collapsed | over[0] | over[1]).alias("collapsed"),
        ).cast(SKETCH)

    return _let(sides, cut)


def _cut(buckets: Column) -> Column:
    """At most `BUCKETS_MAX` buckets: those of smallest magnitude are merged into one."""
    joined = F.size(buckets) - (BUCKETS_MAX - 1)
    least = _bucket(F.get(buckets, joined - 1)["index"], _total(F.slice(buckets, F.lit(1), joined)))
    kept = F.concat(F.array(least), F.slice(buckets, joined + 1, F.lit(BUCKETS_MAX - 1)))
    return F.when(F.size(buckets) <= BUCKETS_MAX, buckets).otherwise(kept)


def _points(sketch: Column) -> Column:
    """The buckets of a sketch as estimated values and counts, in the order of values."""
    zero = F.struct(F.lit(0.0).alias("v"), sketch["zero"].alias("n"))
    below = F.transform(F.reverse(sketch["negative"]), lambda one: _point(-_estimate(one), one))
    return F.concat(below, F.array(zero), F.transform(sketch["positive"], lambda one: _point(_estimate(one), one)))


def _point(value: Column, bucket: Column) -> Column:
    return F.struct(value.alias("v"), bucket["count"].alias("n"))


def _estimate(bucket: Column) -> Column:
    return F.pow(F.lit(GAMMA), bucket["index"]) * F.lit(SHARE)


def _ranked(points: Column, share: Column) -> Column:
    """The value of the first point up to which, itself included, there are more than `share * (n - 1)` values."""
    nothing = F.struct(F.lit(None).cast("double").alias("v"), F.lit(0).cast("bigint").alias("n"))
    total = F.aggregate(points, F.lit(0).cast("bigint"), lambda sum_, point: sum_ + point["n"])

    def found(rank: Column) -> Column:
        def step(so_far: Column, point: Column) -> Column:
            is_over = so_far["n"] > rank
            value = F.when(is_over, so_far["v"]).otherwise(point["v"])
            count = so_far["n"] + F.when(is_over, F.lit(0).cast("bigint")).otherwise(point["n"])
            return F.struct(value.alias("v"), count.alias("n"))

        return F.aggregate(points, nothing, step)["v"]

    return _let(total, lambda n: F.when(n > 0, found(share * (n - 1).cast("double"))))
