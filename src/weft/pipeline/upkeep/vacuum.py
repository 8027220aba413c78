"""Deletes files that no version of a table needs any more (LAK-037): those of lost attempts and of old versions.

A file is deleted if the newest version does not name it, if nothing has written to it for the given time, and if no
version younger than that time names it. So a reader that started within that time can finish, and versions of that time
stay readable. A driver writes files some seconds before it commits them. The minimum time is an hour, and the caller
holds the lease, so no file is taken from a driver that was paused before its commit.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.tables import Table
from weft.pipeline.upkeep.log import live_files, opened, there, tombstones

LEAST_HOURS: Final = 1
HOUR_NS: Final = 3_600_000_000_000


class Stale(NamedTuple):
    """A file that can be deleted."""

    table: str
    path: Path
    size: int


def refuse_young(hours: int) -> None:
    """Raise UserError `too-young` if files would be deleted that a reader or a driver may still need."""
    if hours < LEAST_HOURS:
        raise UserError("too-young", f"files younger than {LEAST_HOURS} h may still be read", f"--hours {LEAST_HOURS}")


def stale(layout: Layout, hours: int, wall_ns: int) -> Iterator[Stale]:
    """Files that can be deleted: unnamed and unchanged for so many hours. Deletes nothing. UserError `too-young`."""
    refuse_young(hours)
    for table in there(layout):
        yield from _of_table(layout, table, wall_ns - hours * HOUR_NS)


def delete(layout: Layout, files: Iterator[Stale]) -> Iterator[Stale]:
    """Delete them, one by one, and leftovers of sorting. The caller holds the lease."""
    shutil.rmtree(layout.spill(), ignore_errors=True)
    for file in files:
        file.path.unlink(missing_ok=True)
        yield file


def _of_table(layout: Layout, table: Table, before_ns: int) -> Iterator[Stale]:
    found = list(_untouched(layout.table(table.layer, table.name), before_ns))
    delta = opened(layout, table) if found else None
    if delta is None:
        return
    root = layout.table(table.layer, table.name)
    named = {file.path for file in live_files(delta, table)}
    named |= {path for path, gone_ms in tombstones(delta, root).items() if gone_ms * 1_000_000 >= before_ns}
    for path, size in found:
        if path.relative_to(root).as_posix() not in named:
            yield Stale(table.full_name, path, size)


def _untouched(root: Path, before_ns: int) -> Iterator[tuple[Path, int]]:
    """Data files of a table that were not written to since; names that begin with an underscore are left alone."""
    for directory in (root, *(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("_"))):
        for path in directory.glob("*.parquet"):
            told = path.stat(follow_symlinks=False)
            if told.st_mtime_ns < before_ns:
                yield path, told.st_size
