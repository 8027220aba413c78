"""How the rows of a batch are read (PIP-012)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.lake.reader import Slice
from weft.lake.schemas import SEGMENTS
from weft.pipeline.transforms.bronze import located

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows_of(spark: "SparkSession", stream: str, slices: Sequence[Slice]) -> "DataFrame":
    """The rows of segment slices, with drain, segment and row, through Spark's own Parquet reader.

    The stream `weft` gives the offsets and its rows go unread: this reader is faster and knows where a row stood.
    """
    reader = spark.read.schema(SEGMENTS[stream].ddl())
    rows = located(reader.parquet(*[Path(piece.path).as_uri() for piece in slices]), stream)
    for piece in slices:
        if not piece.is_whole:
            is_other = (F.col("drain") != piece.drain) | (F.col("segment") != piece.number)
            rows = rows.where(is_other | F.col("row").between(piece.first, piece.last - 1))
    return rows
