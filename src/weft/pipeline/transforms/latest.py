"""`gold.latest` (PIP-050): the newest sample of each series on each node, and the newest calculated value."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.pipeline.tables import LATEST
from weft.pipeline.transforms.columns import hashed

_SAMPLE = ("at", "era", "sequence", "origin", "received", "value", "base", "text")
_RESULT = ("at", "era", "sequence", "turn", "result")
"""The order of results. `turn` decides between two of one sample: in a dataset the fresh one replaces the old one."""


def newest(samples: DataFrame, values: DataFrame) -> DataFrame:
    """The newest sample and the newest value by (at, era, sequence), for each series in them.

    Grain: a series on a node, once with `sample` and once with `outcome`. Key: (node, series, which of the two is null). Columns: node, group, series, sample, outcome (each a struct, or null).
    """
    nothing = F.lit(None)
    sample = F.struct(*_SAMPLE).alias("sample")
    value = F.struct(*_RESULT[:3], F.lit(1).alias("turn"), "result")
    outcome = F.when(F.col("result").isNotNull(), value).alias("outcome")
    sampled = _greatest(samples.select("node", "group", "series", sample, nothing.alias("outcome")))
    calculated = _greatest(values.select("node", "group", "series", nothing.alias("sample"), outcome))
    return sampled.unionByName(calculated).select("node", "group", "series", "sample", "outcome")


def latest(old: DataFrame, fresh: DataFrame) -> DataFrame:
    """`gold.latest` updated with newer rows. Applying the same `fresh` twice changes nothing.

    Grain and key: (node, series). Columns: `gold.latest`.
    """
    sample = F.when(F.col("sequence").isNotNull(), F.struct(*_SAMPLE)).alias("sample")
    named = [F.col(f"result_{name}").alias(name) for name in _RESULT[:3]]
    outcome = F.when(F.col("result").isNotNull(), F.struct(*named, F.lit(0).alias("turn"), "result")).alias("outcome")
    before = old.select("node", "group", "series", sample, outcome)
    both = _greatest(before.unionByName(fresh))
    result = [F.col(f"outcome.{name}").alias(f"result_{name}") for name in _RESULT[:3]]
    return both.select("node", "group", "series", "sample.*", "outcome.result", *result).select(*LATEST.schema.names)


def _greatest(rows: DataFrame) -> DataFrame:
    greatest = [F.max(name).alias(name) for name in ("group", "sample", "outcome")]
    return hashed(rows, ("node", "series"), greatest)
