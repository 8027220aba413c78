"""Joins many small files into few sorted ones (LAK-038).

A driver writes about one file per table and second. Files of one partition under 32 MiB are joined to one of up to 256
MiB, as soon as there are two of them in a day that has ended, or eight in one that still grows. The rows stay the same,
and rows of adopted segments get their `batch`: readers see the same table before and after, and a driver that appends
meanwhile is not affected. Tables that a driver replaces as a whole (edges, last values, completeness) have one file and
are left alone.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from itertools import groupby
from typing import Final, NamedTuple

from weft.base.errors import OurFault
from weft.lake.layout import Layout
from weft.pipeline.delta import DataFile
from weft.pipeline.tables import COMPLETENESS, EDGES, LATEST, ROLLUP_1D, ROLLUP_1H, ROLLUP_1M, Table, there
from weft.pipeline.upkeep.log import Exchange, LiveFile, live_files, opened
from weft.pipeline.upkeep.marks import Marks, looked_up
from weft.pipeline.upkeep.rewrite import Asking, goes_on, rewritten

MIB: Final = 1 << 20
SMALL_BYTES: Final = 32 * MIB
TARGET_BYTES: Final = 192 * MIB  # of input; sorted rows compress differently, so the result has up to 256 MiB
JOINED_MIN: Final = 2  # small files that make a join worthwhile in a partition that has ended
GROWING_MIN: Final = 8  # the same in a partition that still grows: it will be examined again
LAYERS: Final = ("bronze", "silver", "quarantine", "meta")
REPLACED: Final = (EDGES, LATEST, COMPLETENESS)
FOLDED: Final = (ROLLUP_1M, ROLLUP_1H, ROLLUP_1D)
"""Tables of which folds replace single files, mostly in the current day or month: only earlier ones are joined."""

assert SMALL_BYTES < TARGET_BYTES, "else a file that was joined would be joined again"


class Bundle(NamedTuple):
    """Files of one partition to be joined into one."""

    table: Table
    files: tuple[LiveFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def is_joined(table: Table) -> bool:
    """Whether the files of a table are ever joined."""
    return table in FOLDED or (table.layer in LAYERS and table not in REPLACED)


def due(layout: Layout, today: date) -> Iterator[Bundle]:
    """What can be joined now, table by table; reads each table's log once."""
    marks = looked_up(layout)
    for table in there(layout):
        delta = opened(layout, table) if is_joined(table) else None
        if delta is not None:
            yield from bundles(table, live_files(delta, table), marks(table), today)


def bundles(table: Table, files: Iterable[LiveFile], marks: Marks | None, today: date) -> Iterator[Bundle]:
    """Which of these files to join. If `marks` is None, files are joined whatever their batches are."""
    small = [file for file in files if file.size < SMALL_BYTES and _is_done(file, marks)]
    small.sort(key=lambda file: (file.partition or "", _side(file, marks), file.first_batch or 0, file.path))
    for (partition, _), together in groupby(small, lambda file: (file.partition or "", _side(file, marks))):
        is_over = bool(partition) and partition < _current(table, today)
        if is_over or table not in FOLDED:
            yield from _packed(table, together, JOINED_MIN if is_over else GROWING_MIN)


def _is_done(file: LiveFile, marks: Marks | None) -> bool:
    """Whether the file has only batches before the last one, which could be repeated."""
    return marks is None or file.last_batch is None or file.last_batch < marks.done


def _side(file: LiveFile, marks: Marks | None) -> int:
    """How many marks are before the file. Only files with the same number are joined, so none spans a mark."""
    if marks is None or file.last_batch is None:
        return 0
    return sum(file.last_batch > mark for mark in marks.folded)


def _current(table: Table, today: date) -> str:
    """The current partition."""
    return str(today.replace(day=1) if table.partition == "month" else today)


def _packed(table: Table, files: Iterable[LiveFile], least: int) -> Iterator[Bundle]:
    """Bundles of up to `TARGET_BYTES`; the last one must have at least `least` files."""
    gathered: list[LiveFile] = []
    for file in files:
        if gathered and sum(one.size for one in gathered) + file.size > TARGET_BYTES:
            yield from _bundle_if_enough(table, gathered, JOINED_MIN)
            gathered = []
        gathered.append(file)
    yield from _bundle_if_enough(table, gathered, least)


def _bundle_if_enough(table: Table, gathered: list[LiveFile], least: int) -> Iterator[Bundle]:
    if len(gathered) >= least:
        yield Bundle(table, tuple(gathered))


def joined(layout: Layout, bundle: Bundle, is_wanted: Callable[[], bool] = goes_on) -> Exchange:
    """The new file of a bundle, and the transaction that replaces the old ones by it.

    Raises Stopped, OSError, and OurFault if a row was lost; then no file is left.
    """
    last = max((file.last_batch or 0 for file in bundle.files), default=0)
    made = rewritten(layout, bundle.table, bundle.files, f"c{last:010d}", Asking(is_wanted=is_wanted))
    if made is None or made.rows != bundle.rows:
        raise OurFault(f"{bundle.table.full_name}: {bundle.rows} rows were to be joined, {made and made.rows} were")
    return Exchange(bundle.table, bundle.files, (made,), "compact", is_rearranged=True)


class Compacted(NamedTuple):
    """The result for one bundle."""

    table: str
    files: int
    rows: int
    bytes_before: int
    bytes_after: int


def result_of(wanted: Exchange) -> Compacted:
    """The numbers of a transaction that `joined` has made."""
    before = sum(file.size for file in wanted.remove)
    after: list[DataFile] = list(wanted.add)
    return Compacted(
        wanted.table.full_name,
        len(wanted.remove),
        sum(file.rows for file in after),
        before,
        sum(f.size for f in after),
    )
