"""From segments to bronze: as received, and where it came from."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.lake.schemas import BRONZE, SEGMENTS
from weft.pipeline.transforms.columns import day_of


def located(files: DataFrame, stream: str) -> DataFrame:
    """The rows of segment files with the drain, segment and row that the file's place says.

    Grain: one row of a segment. Key: (drain, segment, row). Columns: those of the segment, then these three.
    A path ends in `<drain>/<block>/<number, 16 hex>.parquet` (LAK-008).
    """
    parts = F.split(F.col("_metadata.file_path"), "/")
    number = F.substring(F.element_at(parts, -1), 1, 16)
    return files.select(
        *SEGMENTS[stream].names,
        F.element_at(parts, -3).alias("drain"),
        F.conv(number, 16, 10).cast("bigint").alias("segment"),
        F.col("_metadata.row_index").alias("row"),
    )


def to_bronze(rows: DataFrame, stream: str, batch: Column) -> DataFrame:
    """Everything as it was received, with the batch that took it and the UTC day of its arrival.

    Grain and key as `located`. Columns: `bronze.<stream>`.
    """
    return rows.withColumns({"batch": batch, "day": day_of("received_ns")}).select(*BRONZE[stream].names)
