"""Finds anomalies (PIP-055): compares each series on a node with its own last 24 hours and the same hour of 7 days.

An hour is judged by roll-ups alone, without a model, so anybody can repeat the judgement. A value is usual if it lies
within 6 deviations of the median of the 24 hours before, or of the same hour of the 7 days before. The deviation is
1.4826 times the median absolute deviation (MAD); for a normal distribution that is its standard deviation. In a very
steady series a value is also usual if it differs from the median by at most 1 %, or by the smallest difference that
occurred.
"""

from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from weft.pipeline.tables import ANOMALIES

EDGE: Final = 6.0  # deviations from the median within which a value is usual
DEVIATION: Final = 1.4826  # times the MAD
FLOOR: Final = 0.01  # share of the median within which a value is usual in any case
LONG: Final = 3  # consecutive windows of a minute that make an anomaly
MINUTES_MIN: Final = 20  # windows of a minute to compare with; with fewer, nothing is judged
HOURS_MIN: Final = 3  # windows of an hour to compare with; with fewer, nothing is judged
SHARE_MIN: Final = 0.9  # share of the usual count; below it values are missing
_KEY: Final = ("node", "series", "hour")


def hours_of(touched: DataFrame, newest: DataFrame, back: str) -> DataFrame:
    """The hours to judge: those of some time stamps, and up to two hours on each side, which may share an anomaly.

    Grain and key: (node, hour). Columns: node, hour, is_over (whether the hour has ended), is_kept (false: the hour is
    two hours away; it is judged to find whole stretches, but its rows in the table stay). `touched` has node and `at`,
    `newest` the newest time stamp of each node; older hours than `back` (a SQL interval) before it are left out.
    """
    near = F.explode(F.sequence(F.lit(-2), F.lit(2))).alias("near")
    hours = touched.select("node", F.date_trunc("hour", "at").alias("hour")).distinct().select("node", "hour", near)
    moved = hours.select("node", F.expr("hour + make_interval(0, 0, 0, 0, near)").alias("hour"), "near")
    both = moved.groupBy("node", "hour").agg(F.min(F.abs("near")).alias("near")).join(F.broadcast(newest), "node")
    upto, oldest = F.col("newest"), F.col("newest") - F.expr(back)
    is_in_time = (F.col("hour") <= upto) & (F.col("hour") > oldest - F.expr("interval 2 hours"))
    is_over = F.col("hour") + F.expr("interval 1 hour") <= upto
    is_kept = (F.col("near") <= 1) & (F.col("hour") > oldest)
    return both.where(is_in_time).select("node", "hour", is_over.alias("is_over"), is_kept.alias("is_kept"))


def bands(minutes: DataFrame, judged: DataFrame) -> DataFrame:
    """The range of usual means of a minute, for each judged hour.

    Grain and key: (node, series, hour). Columns: those, then low and high; and structs with median and mad: `day` of the
    24 hours before, `same` of the same hour of 7 days, null if there are too few windows. `minutes` is `gold.rollup_1m`.
    """
    means = compared(minutes, judged).groupBy(*_KEY).agg(*[_sorted_means(name) for name in ("day", "same")])
    known = means.select(*_KEY, *[_spread(name).alias(name) for name in ("day", "same")])
    return known.where("day is not null or same is not null").select(
        *_KEY,
        F.least(F.expr("day.median - day.half"), F.expr("same.median - same.half")).alias("low"),
        F.greatest(F.expr("day.median + day.half"), F.expr("same.median + same.half")).alias("high"),
        "day",
        "same",
    )


def compared(minutes: DataFrame, judged: DataFrame) -> DataFrame:
    """The means of a minute that each judged hour is compared with: at most 30 rows, each with those of one hour.

    Grain and key: (node, series, hour, before). Columns: those, then is_day, is_same, means. `minutes` is
    `gold.rollup_1m`. A row for each minute would be 1,860 rows of a judged hour, for which a driver has no memory.
    """
    before = F.broadcast(_before(judged))
    mean = (F.col("sum") / F.col("n")).alias("mean")
    lists = (
        minutes.where("n > 0")
        .select("node", "series", F.date_trunc("hour", "window_start").alias("before"), mean)
        .join(before, ["node", "before"], "left_semi")
        .groupBy("node", "series", "before")
        .agg(F.collect_list("mean").alias("means"))
    )
    return lists.join(before, ["node", "before"]).select(*_KEY, "before", "is_day", "is_same", "means")


def _sorted_means(name: str) -> Column:
    lists = F.collect_list(F.when(F.col(f"is_{name}"), F.col("means")))
    return F.array_sort(F.flatten(lists)).alias(name)


def stretches(minutes: DataFrame, usual: DataFrame) -> DataFrame:
    """Runs of at least three consecutive minutes whose means are outside the usual range on the same side.

    Grain and key: (node, series, hour, start). Columns: `gold.anomalies` but batch and day. `usual` is `bands`.
    """
    hour = F.date_trunc("hour", "window_start").alias("hour")
    means = minutes.where("n > 0").select(
        "node", "group", "series", hour, "window_start", (F.col("sum") / F.col("n")).alias("mean")
    )
    sided = means.join(usual, list(_KEY)).withColumn("side", F.expr("int(mean > high) - int(mean < low)"))
    line = Window.partitionBy("node", "series").orderBy("window_start")
    changes = sided.withColumn("change", F.coalesce(F.col("side") != F.lag("side").over(line), F.lit(True)).cast("int"))
    runs = changes.withColumn("run", F.sum("change").over(line))
    whole = runs.withColumn("length", F.count("side").over(Window.partitionBy("node", "series", "run")))
    return (
        whole.where((F.col("side") != 0) & (F.col("length") >= LONG))
        .groupBy(*_KEY, "run")
        .agg(*_stretch())
        .select(*_COLUMNS)
    )


def usual_hours(hours: DataFrame, judged: DataFrame) -> DataFrame:
    """The usual contents of an hour: number of values, number of resets, spread.

    Grain and key: (node, series, hour). Columns: those, then group, is_over, n_usual, resets_usual, spread_usual.
    `hours` is `gold.rollup_1h`.
    """
    return (
        hours.withColumnRenamed("window_start", "before")
        .join(F.broadcast(_before(judged)), ["node", "before"])
        .groupBy(*_KEY)
        .agg(
            F.max("group").alias("group"),
            F.max("is_over").alias("is_over"),
            F.median("n").alias("n_usual"),
            F.median("resets").alias("resets_usual"),
            F.median(F.col("max") - F.col("min")).alias("spread_usual"),
            F.count(F.lit(1)).alias("seen"),
        )
        .where(F.col("seen") >= HOURS_MIN)
        .select(*_KEY, "group", "is_over", "n_usual", "resets_usual", "spread_usual")
    )


def odd_hours(hours: DataFrame, usual: DataFrame) -> DataFrame:
    """Hours that are flat, that have ended and lack values, or that have more resets than usual.

    An hour without any data from the node is not reported per series: `gold.completeness` has it. Grain and key: (node,
    series, hour, kind). Columns: `gold.anomalies` but batch and day. `usual` is `usual_hours`.
    """
    now = hours.select("node", "series", F.col("window_start").alias("hour"), "n", "resets", "min", "max")
    here = now.select("node", "hour").distinct()
    known = usual.join(here, ["node", "hour"]).join(now, list(_KEY), "left")
    both = known.withColumn("n", F.coalesce("n", F.lit(0).cast("bigint")))
    kinds = both.withColumn("odd", F.explode(F.array_compact(F.array(_flat(), _missing(), _resets()))))
    return kinds.select("*", "odd.*").select(
        "node", "group", "series", "hour", "kind",
        F.col("hour").alias("start"),
        (F.col("hour") + F.expr("interval 1 hour")).alias("until"),
        F.lit(60).cast("bigint").alias("windows"),
        "observed", "expected_low", "expected_high", "score", "because",
    ).select(*_COLUMNS)  # fmt: skip


def anomalies(found: DataFrame, judged: DataFrame, batch: int) -> DataFrame:
    """All anomalies in the judged hours, as rows of the table.

    Grain and key: (node, series, hour, kind, start). Columns: `gold.anomalies`.
    """
    rows = found.join(F.broadcast(judged.where("is_kept").select("node", "hour")), ["node", "hour"])
    marked = rows.withColumn("batch", F.lit(batch).cast("bigint")).withColumn("day", F.to_date("hour"))
    return marked.select(*ANOMALIES.schema.names)


def unmuted(found: DataFrame, definitions: DataFrame, is_muted: Column) -> DataFrame:
    """The anomalies that are not muted. `is_muted` may use columns of `gold.anomalies`, config_name and labels.

    Grain, key and columns: as `found`.
    """
    named = definitions.dropDuplicates(["series"]).select("series", "config_name", "labels")
    both = found.join(F.broadcast(named), "series", "left")
    return both.where(~F.coalesce(is_muted, F.lit(False))).select(*found.columns)


_COLUMNS: Final = tuple(name for name in ANOMALIES.schema.names if name not in ("batch", "day"))


def _before(judged: DataFrame) -> DataFrame:
    """The hours that each judged hour is compared with: the 24 before it, and the same one of the 7 days before.

    Grain and key: (node, hour, before). Columns: those, then is_over, is_day, is_same.
    """
    hours = F.explode(F.array(*map(F.lit, (*range(1, 25), *range(48, 169, 24)))))
    back = judged.select("node", "hour", "is_over", hours.alias("back"))
    return back.select(
        "node", "hour", F.expr("hour - make_interval(0, 0, 0, 0, back)").alias("before"),
        "is_over", (F.col("back") <= 24).alias("is_day"), (F.col("back") % 24 == 0).alias("is_same"),
    )  # fmt: skip


def _middle(sorted_: Column) -> Column:
    """The median of a sorted array."""
    half = F.floor(F.size(sorted_) / 2).cast("int")
    is_odd = F.size(sorted_) % 2 == 1
    return F.when(is_odd, F.get(sorted_, half)).otherwise((F.get(sorted_, half - 1) + F.get(sorted_, half)) / 2)


@cache
def _spread(name: str) -> Column:
    """A struct for a sorted array of means: median, MAD and half the width of the usual range; null if there are too few."""

    def of(median: Column) -> Column:
        distances = F.array_sort(F.transform(F.col(name), lambda mean: F.abs(mean - median)))
        return F.get(F.transform(F.array(distances), lambda sorted_: _band(median, sorted_)), F.lit(0))

    known = F.get(F.transform(F.array(_middle(F.col(name))), of), F.lit(0))
    return F.when(F.size(name) >= MINUTES_MIN, known)


def _band(median: Column, distances: Column) -> Column:
    """The struct of `_spread`, from the sorted distances of all means to their median."""
    mad = _middle(distances)
    step = F.coalesce(F.get(F.filter(distances, lambda one: one > 0), F.lit(0)), F.lit(0.0))
    half = F.greatest(mad * (EDGE * DEVIATION), F.abs(median) * FLOOR, step)
    return F.struct(median.alias("median"), mad.alias("mad"), half.alias("half"))


@cache
def _stretch() -> tuple[Column, ...]:
    """One row of the minutes of a run that lie in one hour."""
    beyond = F.greatest(F.col("mean") - F.col("high"), F.col("low") - F.col("mean"))
    worst, length = F.max_by("mean", beyond), F.count(F.lit(1))
    kind = F.when(F.max("side") > 0, F.lit("high")).otherwise(F.lit("low"))
    low, high = F.max("low"), F.max("high")
    return (
        F.max("group").alias("group"),
        kind.alias("kind"),
        F.min("window_start").alias("start"),
        (F.max("window_start") + F.expr("interval 1 minute")).alias("until"),
        length.alias("windows"),
        worst.alias("observed"),
        low.alias("expected_low"),
        high.alias("expected_high"),
        _score(worst, low, high).alias("score"),
        F.concat(
            F.format_string("mean %.4g in %d windows, where %.4g to %.4g is usual", worst, length, low, high),
            F.coalesce(_with_numbers("day", "; the 24 hours before: median %.4g, MAD %.4g"), F.lit("")),
            F.coalesce(_with_numbers("same", "; this hour of 7 days: median %.4g, MAD %.4g"), F.lit("")),
        ).alias("because"),
    )


def _with_numbers(name: str, words: str) -> Column:
    """A text with median and MAD of a struct; null if that is null."""
    known = F.first(name)
    return F.when(known.isNotNull(), F.format_string(words, known["median"], known["mad"]))


def _score(observed: Column, low: Column, high: Column) -> Column:
    """The distance from the median, scaled so that the usual range ends at 6; null if only one value is usual."""
    return F.try_divide(F.abs(observed - (low + high) / 2) * (2 * EDGE), high - low)


def _odd(kind: str, when: Column, because: Column, **numbers: Column) -> Column:
    """A struct for an hour if the condition `when` holds, else null; numbers that are not given are null."""
    named = ("observed", "expected_low", "expected_high", "score")
    doubles = [numbers.get(name, F.lit(None)).cast("double").alias(name) for name in named]
    return F.when(when, F.struct(F.lit(kind).alias("kind"), *doubles, because.alias("because")))


@cache
def _flat() -> Column:
    is_flat = (F.col("n") >= MINUTES_MIN) & (F.col("min") == F.col("max")) & (F.col("spread_usual") > 0)
    words = F.format_string("%.4g in all of %d values; they usually spread over %.4g", "min", "n", "spread_usual")
    return _odd("flat", is_flat, words, observed=F.col("min"))


@cache
def _missing() -> Column:
    """Hours that lack values, at least two: one sample can fall into the hour beside it."""
    n, usual = F.col("n"), F.col("n_usual")
    is_missing = F.col("is_over") & (n < usual * SHARE_MIN) & (usual - n >= 2)
    words = F.format_string("%d values, where %.0f are usual", n, usual)
    score = F.try_divide((usual - n) * EDGE, usual * (1 - SHARE_MIN))
    return _odd("missing", is_missing, words, observed=n, expected_low=usual, expected_high=usual, score=score)


@cache
def _resets() -> Column:
    resets, usual = F.col("resets"), F.col("resets_usual")
    words = F.format_string("%d times a counter ran backwards, where %.0f are usual", resets, usual)
    return _odd("resets", resets > usual, words, observed=resets, expected_low=usual, expected_high=usual)
