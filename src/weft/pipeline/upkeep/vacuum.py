"""Deletes files that no version of a table needs any more (LAK-037): those of lost attempts and of old versions.

`deltalake` decides which: those that were not changed within the given time, and that neither the newest version nor any
version of that time names. So a reader that started within that time can finish, and versions of that time stay readable.
A driver writes files some seconds before it commits them. The time is at least an hour, and the caller holds the lease, so
no file is deleted that a paused driver is about to commit.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.tables import there
from weft.pipeline.upkeep.log import opened

LEAST_HOURS: Final = 1  # the shortest time that may be given


class Stale(NamedTuple):
    """A file that can be deleted."""

    table: str
    path: Path
    size: int


def refuse_young(hours: int) -> None:
    """Raise UserError `too-young` if files would be deleted that a reader or a driver may still need."""
    if hours < LEAST_HOURS:
        raise UserError("too-young", f"files younger than {LEAST_HOURS} h may still be read", f"--hours {LEAST_HOURS}")


def stale(layout: Layout, hours: int) -> Iterator[Stale]:
    """The files that can be deleted if the time is that many hours. Deletes nothing. UserError `too-young`."""
    refuse_young(hours)
    for table in there(layout):
        delta, root = opened(layout, table), layout.table(table.layer, table.name)
        assert delta is not None, table.full_name
        for path in delta.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True):
            with suppress(FileNotFoundError):
                yield Stale(table.full_name, root / path, (root / path).stat(follow_symlinks=False).st_size)


def delete(layout: Layout, files: Iterator[Stale]) -> Iterator[Stale]:
    """Delete these files, one by one, and temporary files of sorts; yields each. The caller holds the lease."""
    shutil.rmtree(layout.spill(), ignore_errors=True)
    for file in files:
        file.path.unlink(missing_ok=True)
        yield file
