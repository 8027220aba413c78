"""Changes committed rows: their files are replaced, in the commit of the caller.

A new file has the rows of the old one, in their order and with their batches, and its name except for the attempt. So
queries for the rows of a batch, or of later batches, have the same answer as before.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.pipeline.delta import PARQUET, DataFile, Tables, named
from weft.pipeline.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

Change = Callable[["pa.Table", "pa.Array"], "pa.Table"]
"""Takes the rows of a file and which of them to change; returns the rows as they shall be."""


class Replaced(NamedTuple):
    """Files that replace others."""

    add: Sequence[DataFile] = ()
    remove: Sequence[str] = ()
    """Their paths as in the log."""


UNCHANGED: Final = Replaced()


def rewritten(tables: Tables, table: Table, places: Mapping[str, Sequence[int]], change: Change) -> Replaced:
    """The files of these names with the rows of these numbers changed; the new files belong to no version yet."""
    if not places:
        return UNCHANGED
    files = {Path(file).name: Path(file) for file in tables.files(table)}
    old = [files[name] for name in places]
    fresh = [_rewrite(file, places[file.name], change) for file in old]
    root = tables.path(table)
    add = [named(root, table, file) for file in fresh if file is not None]
    return Replaced(add, tables.relative(table, map(str, old)))


def _rewrite(file: Path, places: Sequence[int], change: Change) -> Path | None:
    """Write the new file beside the old one; None if no row is left."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(file, partitioning=None)
    mask = [False] * rows.num_rows
    for place in places:
        mask[place] = True
    changed = change(rows, pa.array(mask))
    if not changed.num_rows:
        return None
    batch, _, _ = file.name.partition("-")
    target = file.with_name(f"{batch}-{uuid.uuid4().hex}-0000.parquet")
    pq.write_table(changed, target, **PARQUET)
    return target
