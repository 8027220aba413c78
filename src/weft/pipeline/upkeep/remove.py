"""Removes rows of a table: finds the files that have them, and rewrites or removes these (LAK-037)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from weft.base.errors import OurFault
from weft.lake.layout import Layout
from weft.pipeline.tables import Table
from weft.pipeline.upkeep.forgotten import Reason, facts, remove
from weft.pipeline.upkeep.log import Exchange, LiveFile, live_files, opened
from weft.pipeline.upkeep.rewrite import Asking, counted, rewritten

if TYPE_CHECKING:
    from pyarrow.compute import Expression


class Removed(NamedTuple):
    """What was removed from one table."""

    table: str
    rows: int
    files: int
    """How many files had such rows. They were removed, or rewritten without these rows."""


def whole(layout: Layout, table: Table, files: Sequence[LiveFile], reason: Reason, epoch: int) -> Removed:
    """Remove complete files in one transaction. The caller holds the lease."""
    found = facts(layout, table, files)
    wanted = Exchange(table, tuple(files), (), "retain", is_rearranged=False)
    return Removed(table.full_name, remove(layout, wanted, found, reason, epoch), len(files))


def some(layout: Layout, table: Table, only: "Expression", reason: Reason, epoch: int) -> Removed:
    """Remove the rows for which `only` is true, in one transaction. The caller holds the lease."""
    wanted = without(layout, table, only)
    files = wanted.remove
    if not files:
        return Removed(table.full_name, 0, 0)
    found, fewer = facts(layout, table, files, only), _fewer(wanted)
    if fewer != sum(row["rows"] for row in found):
        raise OurFault(f"{table.full_name}: {fewer} rows would be removed, {found} were found")
    return Removed(table.full_name, remove(layout, wanted, found, reason, epoch), len(files))


def without(layout: Layout, table: Table, only: "Expression") -> Exchange:
    """The transaction that removes the rows for which `only` is true: their files, and files with the other rows of these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held = holding(layout, table, only)
    others = Asking(~pc.coalesce(only, pa.scalar(False)))  # rows for which it is null stay
    rest = [
        made
        for file, gone in held
        if gone < file.rows and (made := rewritten(layout, table, [file], _prefix(file), others)) is not None
    ]
    wanted = Exchange(table, tuple(file for file, _ in held), tuple(rest), "forget", is_rearranged=False)
    if _fewer(wanted) != sum(gone for _, gone in held):
        raise OurFault(f"{table.full_name}: {_fewer(wanted)} rows would be removed, {held} were found")
    return wanted


def _fewer(wanted: Exchange) -> int:
    """How many rows a transaction removes."""
    return sum(file.rows for file in wanted.remove) - sum(file.rows for file in wanted.add)


def holding(layout: Layout, table: Table, only: "Expression") -> list[tuple[LiveFile, int]]:
    """The files with rows for which `only` is true, and how many such rows."""
    delta = opened(layout, table)
    files = [] if delta is None else sorted(live_files(delta, table), key=lambda file: file.path)
    if not files:
        return []
    counts = counted(layout, table, files, only)
    return [(file, count) for file, count in zip(files, counts, strict=True) if count]


def _prefix(file: LiveFile) -> str:
    """The beginning of a file's name, with its batch; a rewritten file keeps it."""
    return file.path.rpartition("/")[2].partition("-")[0]
