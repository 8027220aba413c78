"""Deletes files that no version of a table needs any more (LAK-037): those of lost attempts and of old versions.

`deltalake` decides which: those that were not changed within the given time, and that neither the newest version nor any
version of that time names. So a reader that started within that time can finish, and versions of that time stay readable.
A driver writes files some seconds before it commits them. The time is at least an hour, and the caller holds the lease, so
no file is deleted that a paused driver is about to commit.

The log is made shorter, too: whoever commits to a table or opens it lists the directory of its log, and a driver's commits of
a week, one a second, are 600,000 files. So the log keeps what was committed in the last 7 days, but at most the last 10,000
commits (all of a week if there is one a minute, three hours if there is one a second), and those up to the checkpoint before
them, from which they are read (LAK-038).
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.delta import LOG_DAYS
from weft.pipeline.logdigests import version_of
from weft.pipeline.tables import LOG, Table, there
from weft.pipeline.upkeep.log import opened

LEAST_HOURS: Final = 1  # the shortest time that may be given
COMMITS_MAX: Final = 10_000
LOG_NS: Final = timedelta(days=LOG_DAYS) // timedelta(microseconds=1) * 1_000


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


def shorten(layout: Layout, table: Table, now_ns: int) -> int:
    """Delete the files of a log that no version worth keeping needs, the oldest first; returns how many they were.

    The caller holds the lease.
    """
    log = layout.table(table.layer, table.name) / LOG
    files = sorted((version, file) for file in log.iterdir() if (version := version_of(file.name)) >= 0)
    first = _first_kept(files, now_ns - LOG_NS)
    begins = max((version for version, file in files if _is_checkpoint(file) and version <= first), default=-1)
    old = [file for version, file in files if version < begins]
    for file in old:
        file.unlink(missing_ok=True)
    return len(old)


def _first_kept(files: list[tuple[int, Path]], since_ns: int) -> int:
    """The first version that stays readable."""
    commits = [(version, file) for version, file in files if not _is_checkpoint(file)][-COMMITS_MAX:]
    for version, file in commits:
        if file.stat().st_mtime_ns >= since_ns:
            return version
    return commits[-1][0] if commits else -1


def _is_checkpoint(file: Path) -> bool:
    return file.suffix == ".parquet"
