"""Finds old days to remove (LAK-037): whole partitions, in one transaction per table, which is recorded.

`[lake.keep]` in lake.toml says for how many days each layer is kept. The age of rows in bronze is that of their arrival,
in silver and quarantine that of their time stamp; roll-ups of hours and days are removed by month. However old a file is,
it stays until the gold tables have folded its rows and its batch cannot be repeated any more.
"""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Final, NamedTuple

from weft.lake.layout import Layout
from weft.pipeline.delta import NO_PARTITION
from weft.pipeline.settings import KeepTable
from weft.pipeline.tables import Table, there
from weft.pipeline.upkeep.forgotten import KEEP, Reason, whoever
from weft.pipeline.upkeep.log import LiveFile, live_files, opened
from weft.pipeline.upkeep.marks import Marks, looked_up

LAYERS: Final = ("bronze", "silver", "gold", "quarantine")


class Old(NamedTuple):
    """Files of a table that are old enough to be removed."""

    table: Table
    files: tuple[LiveFile, ...]
    days: int
    """For how many days the layer is kept."""
    waiting: int
    """Files that are old enough but must wait for a fold."""

    @property
    def reason(self) -> Reason:
        """The reason for the record of removals."""
        return Reason(f"{KEEP} {self.table.layer} = {self.days}", f"older than {self.days} days", whoever())


def due(layout: Layout, keep: KeepTable, today: date) -> Iterator[Old]:
    """The files that are too old now, table by table; reads each log once."""
    marks = looked_up(layout)
    for table in there(layout):
        days = _days_kept(keep, table)
        delta = opened(layout, table) if days else None
        if delta is None:
            continue
        before = _first_kept(table, today - timedelta(days=days))
        old = [file for file in live_files(delta, table) if _is_before(file, before)]
        ready = list(_ready(old, marks(table)))
        if old:
            yield Old(table, tuple(ready), days, len(old) - len(ready))


def _days_kept(keep: KeepTable, table: Table) -> int:
    """For how many days rows of a table are kept; 0: for ever."""
    is_by_day = table.layer in LAYERS and table.partition is not None
    return int(getattr(keep, table.layer)) if is_by_day else 0


def _first_kept(table: Table, day: date) -> str:
    """The first partition that stays. A month stays while one of its days does."""
    return str(day.replace(day=1) if table.partition == "month" else day)


def _is_before(file: LiveFile, partition: str) -> bool:
    return file.partition is not None and file.partition != NO_PARTITION and file.partition < partition


def _ready(files: Iterable[LiveFile], marks: Marks | None) -> Iterator[LiveFile]:
    """The files that need not wait for a fold."""
    for file in files:
        if marks is None or file.last_batch is None or file.last_batch <= marks.settled:
            yield file
