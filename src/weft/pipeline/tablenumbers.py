"""Finds out which numbers a table holds, in one pass over three columns (PIP-063).

Numbers of an origin are mostly dense, so they are not sorted but marked in bitmaps of 1,024 numbers each: 100 million
rows need as many bits. Only bitmaps with holes are examined number by number.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from weft.base.vectors import VersionVector
from weft.lake.manifest import origin_of, vector_of
from weft.pipeline.intake import SPREAD
from weft.pipeline.sql import Lake
from weft.pipeline.tables import TWINS, Table

SHIFT: Final = 10  # 2^10 numbers in a bitmap
MASK: Final = (1 << SHIFT) - 1
BUCKETS: Final = """
WITH ids AS (
    SELECT origin, era, CASE WHEN origin IS NOT NULL AND sequence >= 1 THEN sequence END AS number
    FROM {table} WHERE batch <= {upto}
), buckets AS (
    SELECT
        origin, era, number >> {shift} AS bucket, count(*) AS rows, min(number) AS first, max(number) AS last,
        bitstring_agg((number & {mask})::INTEGER, 0, {mask}) AS ticks
    FROM ids GROUP BY ALL
)
SELECT
    origin, era, bucket, rows, first, last, bit_count(ticks) AS numbers,
    CASE WHEN bit_count(ticks) < last - first + 1 THEN ticks::VARCHAR END AS holed
FROM buckets ORDER BY origin, era, bucket
"""
"""Marks the numbers of each bucket of 2^SHIFT in a bitmap. Rows without a valid number are counted without a bucket."""
SPREAD_ROWS: Final = """
SELECT origin, era, sequence AS first, sequence + attributes['{spread}']::BIGINT - 1 AS last FROM {table}
WHERE error IS NOT NULL AND attributes['{spread}'] IS NOT NULL
    AND sequence >= 1 AND origin IS NOT NULL AND batch <= {upto}
"""
RUNS: Final = re.compile("1+")
TWINS_OF: Final = {"samples": (TWINS,)}
"""The table with the numbers of rows that silver has under another number, by stream."""


class TableNumbers(NamedTuple):
    """The numbers in a table."""

    rows: int
    repeated: int
    """Rows whose number an earlier row has too."""
    numbers: VersionVector


def numbers_in(asked: Lake, table: Table, upto: int) -> TableNumbers:
    """The numbers in a table up to a batch; empty if there is no such table. An error row may stand for several numbers."""
    vector, rows, repeated = VersionVector(), 0, 0
    words = {"table": table.full_name, "upto": upto, "shift": SHIFT, "mask": MASK, "spread": SPREAD}
    if table not in asked.tables():
        return TableNumbers(rows, repeated, vector)
    for bucket in asked.query(BUCKETS.format_map(words)).to_pylist():
        rows += bucket["rows"]
        if bucket["bucket"] is not None:
            repeated += bucket["rows"] - bucket["numbers"]
            _add(vector, bucket)
    if "error" in table.schema.names:
        vector.update(ranges_in(asked, SPREAD_ROWS.format_map(words)))
    return TableNumbers(rows, repeated, vector)


def ranges_in(asked: Lake, sql: str) -> VersionVector:
    """The union of the ranges that a query returns: origin, era, first and last."""
    return vector_of(asked.query(sql).to_pylist())


def union(parts: Iterable[TableNumbers]) -> VersionVector:
    """The numbers that are in any of them."""
    numbers = VersionVector()
    for part in parts:
        numbers.update(part.numbers)
    return numbers


def _add(vector: VersionVector, bucket: dict[str, Any]) -> None:
    origin = origin_of(bucket["origin"], bucket["era"])
    if bucket["holed"] is None:
        vector.add(origin, bucket["first"], bucket["last"])
        return
    begin = bucket["bucket"] << SHIFT
    for run in RUNS.finditer(bucket["holed"]):
        vector.add(origin, begin + run.start(), begin + run.end() - 1)
