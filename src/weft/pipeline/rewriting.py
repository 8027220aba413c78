"""Changes committed rows: writes new files in place of the old ones, which the caller then replaces in a commit.

A new file has the rows of the old one in the same order, with their batches, and a name that begins with the same batch.
So the rows of a batch are found as before.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.pipeline.delta import PARQUET, DataFile, Tables, data_file
from weft.pipeline.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

Change = Callable[["pa.Table", "pa.Array"], "pa.Table"]
"""A function of the rows of a file, and a mask of those to change; returns the new rows."""


class Replaced(NamedTuple):
    """New files, and the files that they replace."""

    add: Sequence[DataFile] = ()
    remove: Sequence[str] = ()
    """Their paths as in the log."""


UNCHANGED: Final = Replaced()


def rewritten(tables: Tables, table: Table, places: Mapping[str, Sequence[int]], change: Change) -> Replaced:
    """Change rows of a table. `places`: row numbers by file name. The new files belong to no version yet."""
    if not places:
        return UNCHANGED
    files = {Path(file).name: Path(file) for file in tables.files(table)}
    add: list[DataFile] = []
    for name, chosen in places.items():
        changed = _changed(files[name], chosen, change)
        if changed.num_rows:
            add.append(written(tables.path(table), table, changed, files[name]))
    return Replaced(add, tables.relative(table, (str(files[name]) for name in places)))


def _changed(file: Path, places: Sequence[int], change: Change) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(file, partitioning=None)
    mask = [False] * rows.num_rows
    for place in places:
        mask[place] = True
    return change(rows, pa.array(mask))


def written(root: Path, table: Table, rows: "pa.Table", like: Path) -> DataFile:
    """Write rows as a file beside `like`, with a name that begins as its name does, up to the first hyphen."""
    import pyarrow.parquet as pq

    target = like.with_name(f"{like.name.partition('-')[0]}-{uuid.uuid4().hex}-0000.parquet")
    pq.write_table(rows, target, **PARQUET)
    return data_file(root, table, target)
