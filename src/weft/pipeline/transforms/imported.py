"""Imported logs: several files may have the same sample (PIP-097), and samples are ordered by time (PIP-099).

An origin of an import is a dataset and a source, so (origin, config_name, detail, param, labels, at) identifies a
sample, whichever files and lines it is in. Of several such lines the first one imported counts. A series is identified
by the same columns without the time, whatever type a line states.
"""

from collections.abc import Sequence
from functools import cache

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from weft.pipeline.tables import TWINS, VALUES
from weft.pipeline.transforms import values
from weft.pipeline.transforms.columns import columns, content_hash, is_paired, same_number, value_of, with_others
from weft.pipeline.transforms.samples import CONTENT, silver_columns

AMBIGUOUS = "ambiguous"
EXACT_MAX = 1 << 53  # below it a double holds every integer exactly
_BEFORE = ("era", "sequence", "at_ns", "value", "value_long", "base", "base_long", "lost", "was", "is_new")
_ID = ("origin", "era", "sequence")


def marked(rows: DataFrame, drains: Sequence[str]) -> DataFrame:
    """Rows of bronze with `dataset`, null for rows of nodes. `drains` are those of datasets.

    Grain and key unchanged. Columns: those of the input, then `dataset`.
    """
    return rows.select("*", F.when(F.col("drain").isin(*drains), F.col("attributes")["dataset"]).alias("dataset"))


def held(samples: DataFrame) -> DataFrame:
    """Samples with their `file` and `place`, as `twins` compares them with later rows.

    Grain and key: one sample. Columns: id, identity, content, flags, file and place.
    """
    return samples.select(*_held())


def twins(rows: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Compares good rows of datasets with silver's rows of the same origins and days: which are the same sample?

    Grain and key: a row of either, its id. `before` is made by `held`; rows that are not from there have null in `file`.
    Columns: those of `rows`, flags, file, place, `twin` (1: this row counts), `of` (id of the row that counts),
    `is_ambiguous` (true: another row of the sample has another value or base).
    """
    none = {"flags": "array<string>", "file": "string", "place": "bigint"}
    fresh = rows.select("*", *[F.lit(None).cast(kind).alias(name) for name, kind in none.items()])
    both = fresh if before is None else fresh.unionByName(before, allowMissingColumns=True)
    return both.select("*", *_twins())


def duplicates_of(rows: DataFrame, batch: Column) -> DataFrame:
    """The new rows of `twins` that are duplicates. Grain and key: one row, its id. Columns: `meta.twins`."""
    of_era, of_sequence = F.col("of.era").alias("of_era"), F.col("of.sequence").alias("of_sequence")
    content = content_hash(CONTENT, silver_columns()).alias("said")
    again = rows.where("file is null and twin > 1")
    return again.select(*columns(*_ID), of_era, of_sequence, content, batch.alias("batch")).select(*TWINS.schema.names)


def samples_of(rows: DataFrame) -> DataFrame:
    """The new rows of `twins` that count. Grain and key: one row, its id. Columns: those of `rows` and `is_ambiguous`."""
    names = [name for name in rows.columns if name not in ("flags", "file", "place", "twin", "of")]
    return rows.where("file is null and twin = 1").select(*names)


def doubted(rows: DataFrame) -> DataFrame:
    """The samples of silver that a row of `twins` contradicts for the first time.

    Grain and key: one sample. Columns: its file and place.
    """
    is_flagged = F.array_contains("flags", AMBIGUOUS)
    return rows.where(F.col("file").isNotNull() & F.col("is_ambiguous") & ~is_flagged).select("file", "place")


def lines(samples: DataFrame) -> DataFrame:
    """The series of some samples. Grain and key: (origin, line). Columns: those, and the dataset.

    `line` is a hash of the series. Two series may have the same; then more samples are read than needed.
    """
    return samples.select("origin", _line().alias("line"), "dataset").distinct().select("origin", "line", "dataset")


def in_time_order(samples: DataFrame, series: DataFrame, batch: Column, since: int = -1) -> DataFrame:
    """Pairs of samples of imported series, in the order of time and across files, as far as batches after `since` change them.

    Grain: one pair. Key: id of the later sample. Columns: `silver.values`, then `is_new`: the later sample itself came
    after `since`, so it had no value before. `samples` are all samples of the series in `series` (`lines`).
    """
    named = samples.drop("dataset").withColumn("line", _line()).alias("s")
    same = (F.col("s.origin") == F.col("l.origin")) & (F.col("s.line") == F.col("l.line"))
    chosen = named.where(is_paired()).join(F.broadcast(series).alias("l"), same).select("s.*", "l.dataset")
    points = chosen.select("*", (F.col("batch") > since).alias("is_new"), *_no_island())
    pairs = points.select("*", _before()).where("before is not null and (is_new or before.is_new)")
    more = {"from_era": F.col("before.era"), "dataset": F.col("dataset"), "is_new": F.col("is_new")}
    return values.paired(pairs, batch, **more).select(*columns(*VALUES.schema.names, "is_new"))


def among(rows: DataFrame, ids: DataFrame) -> DataFrame:
    """The rows whose id is one of these. Grain, key and columns of `rows`."""
    return rows.alias("r").join(ids.alias("i"), same_number("r", "i"), "left_semi").select(*rows.columns)


def days_of(values: DataFrame) -> DataFrame:
    """The series and days of some values of datasets. Grain and key: (node, series, day). Columns: those."""
    return (
        values.where("dataset is not null").select("node", "series", "day").distinct().select("node", "series", "day")
    )


def of_days(values: DataFrame, days: DataFrame) -> DataFrame:
    """The values of some series and days. Grain, key and columns of `values`."""
    return values.alias("r").join(days.alias("d"), _same_day(F.col("r.day")), "left_semi").select(*values.columns)


def outside_days(rows: DataFrame, days: DataFrame, day: Column) -> DataFrame:
    """The rows that belong to none of these series and days; `day` is an expression over the rows (`r`).

    Grain, key and columns of `rows`.
    """
    return rows.alias("r").join(days.alias("d"), _same_day(day), "left_anti").select(*rows.columns)


def _same_day(day: Column) -> Column:
    same = (F.col("r.node") == F.col("d.node")) & (F.col("r.series") == F.col("d.series"))
    return same & (day == F.col("d.day"))


def _key() -> tuple[Column | str, ...]:
    return ("origin", "config_name", "detail", "param", _entries(), "at_ns")


def _entries() -> Column:
    """Labels in a form that can be compared."""
    return F.array_sort(F.map_entries("labels"))


def _line() -> Column:
    return F.xxhash64("config_name", "detail", "param", _entries())


@cache
def _held() -> tuple[Column, ...]:
    as_bronze = {"value_double": F.col("value"), "base_double": F.col("base"), "lsn": F.lit(-1).cast("bigint")}
    names = (
        *_ID, "at_ns", "config_name", "detail", "type", "param", "labels", "value_long", "base_long", "text", "flags",
        "file", "place", *as_bronze,
    )  # fmt: skip
    return with_others(names, **as_bronze)


def _number(name: str) -> Column:
    """A number as text, in which 5 and 5.0 are equal."""
    real = value_of(name)
    is_whole = (F.abs(real) < EXACT_MAX) & (F.floor(real) == real)
    whole = F.coalesce(f"{name}_long", F.when(is_whole, real.cast("bigint")))
    return F.coalesce(whole.cast("string"), real.cast("string"))


@cache
def _twins() -> tuple[Column, ...]:
    content = F.xxhash64(_number("value"), _number("base"), "text")
    sample = Window.partitionBy(*_key())
    equal = Window.partitionBy(*_key(), content).orderBy("lsn", "era", "sequence")
    return (
        F.row_number().over(equal).alias("twin"),
        F.first(F.struct("era", "sequence")).over(equal).alias("of"),
        (F.min(content).over(sample) != F.max(content).over(sample)).alias("is_ambiguous"),
    )


@cache
def _no_island() -> tuple[Column, ...]:
    """Columns of `values.paired` about islands, which imported samples do not have."""
    return F.lit(0).cast("bigint").alias("lost"), F.lit(None).cast("bigint").alias("was")


@cache
def _before() -> Column:
    *series, at_ns = _key()
    line = Window.partitionBy(*series).orderBy(at_ns, "era", "sequence")
    return F.lag(F.struct(*_BEFORE)).over(line).alias("before")
