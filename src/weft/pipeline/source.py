"""Reads the rows of a batch (PIP-012): through Spark's own Parquet reader, or through the source `weft`.

`rows_of` is the one that the jobs use.
"""
# tidy: this is the only place where the reader is chosen

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.lake.reader import Slice
from weft.lake.schemas import SEGMENTS
from weft.pipeline.transforms.bronze import located

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def by_files(spark: "SparkSession", stream: str, slices: Sequence[Slice]) -> "DataFrame":
    """The rows of segment slices, with drain, segment and row, through Spark's own Parquet reader."""
    reader = spark.read.schema(SEGMENTS[stream].ddl())
    drains = {piece.drain for piece in slices}
    files = reader.parquet(*[str(Path(piece.path).absolute()) for piece in slices])
    rows = located(files, stream, drains.pop() if len(drains) == 1 else None)
    for piece in slices:
        if not piece.is_whole:
            is_other = (F.col("drain") != piece.drain) | (F.col("segment") != piece.number)
            rows = rows.where(is_other | F.col("row").between(piece.first, piece.last - 1))
    return rows


def by_source(spark: "SparkSession", stream: str, slices: Sequence[Slice]) -> "DataFrame":
    """The same rows as `by_files`, through the source `weft`, whose readers are Python processes."""
    from pyspark_weft.options import slices_option

    root = Path(slices[0].path).parents[4]  # <lake>/drain/<stream>/<drain>/<block>/<number>.parquet (LAK-008)
    reader = spark.read.format("weft").options(lake=str(root), stream=stream, places="true")
    return reader.option("slices", slices_option(slices)).load()


rows_of = by_files
"""The reader of the jobs: the faster one, as `bench/pipeline_source.py` measures; bench/README.md has the figures."""
