"""Adopts segments as files of bronze without copying a byte (LAK-040, PIP-101).

A segment has all columns of bronze except two: the day, which is part of the table's path, and the batch, which was
unknown when it was drained. The file gets a second name (a hard link) in the table, with batch and digest, and a
transaction adds it like any other file. When retention deletes the segment, the table's name stays.

`batch` is null in the rows of such a file; the statistics in the log state it all the same. Readers in this package take
it from the file's name (`batch_in_name`), until compaction writes it into the rows. Spark copies what cannot be adopted: a
segment of an earlier version, one that is taken only in part, one whose rows arrived on several days, and every segment
if the lake's file system has no hard links.
"""

import json
import os
import uuid
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from weft.lake.files import LocalFiles
from weft.lake.reader import Slice
from weft.lake.schemas import PLACES
from weft.pipeline.delta import DataFile, Tables, statistics_of
from weft.pipeline.digests import DIGITS
from weft.pipeline.tables import Table
from weft.pipeline.transforms.columns import DAY_NS

EPOCH: Final = date(1970, 1, 1)
ARRIVED: Final = "received_ns"


def adopted(tables: Tables, table: Table, slices: Sequence[Slice], batch: int) -> tuple[list[DataFile], list[Slice]]:
    """The adopted segments as files that are not committed yet, and the slices that must be copied. Raises OSError."""
    attempt = f"b{batch:010d}-{uuid.uuid4().hex}"
    files: list[DataFile] = []
    to_copy: list[Slice] = []
    for number, piece in enumerate(slices):
        file = _adopt(tables.path(table), table, piece, batch, f"{attempt}-{number:04d}") if piece.is_whole else None
        if file is None:
            to_copy.append(piece)
        else:
            files.append(file)
    return files, to_copy


def _adopt(root: Path, table: Table, piece: Slice, batch: int, name: str) -> DataFile | None:
    """Link one segment into the table; None if that is impossible."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(piece.path)
    day = _day_of(footer)
    if day is None:
        return None
    path = f"{table.partition}={day}/{name}.{piece.sha256[:DIGITS]}.parquet"
    LocalFiles().make_directories((root / path).parent)
    try:
        # Until the commit no version names the file, and vacuum deletes such files if they are old: make it new.
        os.utime(piece.path)
        os.link(piece.path, root / path)
    except OSError:
        return None
    statistics = statistics_of(footer, table.statistics())
    statistics["minValues"]["batch"] = statistics["maxValues"]["batch"] = batch
    return DataFile(path, piece.bytes, {str(table.partition): str(day)}, footer.num_rows, json.dumps(statistics))


def _day_of(footer: Any) -> date | None:
    """The UTC day on which all rows of a segment arrived; None if there are several days.

    None, too, if the segment lacks columns of bronze: then it cannot be adopted.
    """
    columns = [footer.schema.column(place).name for place in range(footer.num_columns)]
    if not {column.name for column in PLACES} <= set(columns):
        return None
    days: set[int] = set()
    for group in range(footer.num_row_groups):
        found = footer.row_group(group).column(columns.index(ARRIVED)).statistics
        if found is None or not found.has_min_max or found.null_count:
            return None
        days.update((found.min // DAY_NS, found.max // DAY_NS))
    return EPOCH + timedelta(days=days.pop()) if len(days) == 1 and min(days) >= 0 else None
