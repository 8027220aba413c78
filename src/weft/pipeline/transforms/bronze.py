"""From segments to bronze: as received, and where it came from."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.lake.schemas import BRONZE, SEGMENTS
from weft.pipeline.transforms.columns import columns, day_of


def located(files: DataFrame, stream: str) -> DataFrame:
    """The rows of segment files with the drain, segment and row that the file's place says.

    Grain: one row of a segment. Key: (drain, segment, row). Columns: those of the segment, then these three.
    A path ends in `<drain>/<block>/<number, 16 hex>.parquet` (LAK-008).
    """
    return files.select(*_located(stream))


def to_bronze(rows: DataFrame, stream: str, batch: Column) -> DataFrame:
    """Everything as it was received, with the batch that took it and the UTC day of its arrival.

    Grain and key as `located`. Columns: `bronze.<stream>`.
    """
    *kept, _, _ = BRONZE[stream].names
    return rows.select(*columns(*kept), batch.alias("batch"), _day())


@cache
def _located(stream: str) -> tuple[Column, ...]:
    path = F.col("_metadata.file_path")
    number = F.substring(F.substring_index(path, "/", -1), 1, 16)
    return (
        *columns(*SEGMENTS[stream].names),
        F.substring_index(F.substring_index(path, "/", -3), "/", 1).alias("drain"),
        F.conv(number, 16, 10).cast("bigint").alias("segment"),
        F.col("_metadata.row_index").alias("row"),
    )


@cache
def _day() -> Column:
    return day_of("received_ns").alias("day")
