"""Turns segments into bronze: rows as received, with the place of each in its segment."""

from functools import cache, lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.lake.schemas import BRONZE, SEGMENTS
from weft.pipeline.transforms.columns import columns, day_of


def located(files: DataFrame, stream: str, drain: str | None = None) -> DataFrame:
    """The rows of segment files with drain, segment and row, read from the file's path.

    Grain: one row of a segment. Key: (drain, segment, row). Columns: those of the segment, then these three. A path
    ends in `<drain>/<block>/<number, 16 hex>.parquet` (LAK-008). `drain`: the drain of all files, if known; then it is
    not parsed from each row's path.
    """
    return files.select(*_located(stream, drain))


def to_bronze(rows: DataFrame, stream: str, batch: Column) -> DataFrame:
    """Rows as received, with the batch that took them and the UTC day of arrival.

    Grain and key as `located`. Columns: `bronze.<stream>`.
    """
    *others, _, _ = BRONZE[stream].names
    return rows.select(*columns(*others), batch.alias("batch"), _day())


@lru_cache
def _located(stream: str, drain: str | None) -> tuple[Column, ...]:
    path = F.col("_metadata.file_path")
    from_path = F.substring_index(F.substring_index(path, "/", -3), "/", 1)
    return (
        *columns(*SEGMENTS[stream].names),
        (from_path if drain is None else F.lit(drain)).alias("drain"),
        F.conv("_metadata.file_name", 16, 10)
        .cast("bigint")
        .alias("segment"),  # `conv` reads up to the first character that is not a digit
        F.col("_metadata.row_index").alias("row"),
    )


@cache
def _day() -> Column:
    return day_of("received_ns").alias("day")
