"""Deletes the beginning of a table's log, so that a commit costs the same after a week as in the first minute (LAK-038).

Whoever commits lists the directory of the log, and so does who opens the table. A driver makes a commit a second, which are
600,000 files in a week. So the log keeps what was committed in the last 7 days, but at most the last 10,000 commits (all of a
week if there is one a minute, three hours if there is one a second) and those up to the checkpoint before them, from
which they are read.
"""

from datetime import timedelta
from pathlib import Path
from typing import Final

from weft.lake.layout import Layout
from weft.pipeline.logdigests import version_of
from weft.pipeline.tables import LOG, Table

COMMITS_MAX: Final = 10_000
WEEK_NS: Final = timedelta(days=7) // timedelta(microseconds=1) * 1_000


def shorten(layout: Layout, table: Table, now_ns: int) -> int:
    """Delete the files of a log that no version worth keeping needs, the oldest first; returns how many they were.

    The caller holds the lease.
    """
    log = layout.table(table.layer, table.name) / LOG
    files = sorted((version, file) for file in log.iterdir() if (version := version_of(file.name)) >= 0)
    first = _first_kept(files, now_ns - WEEK_NS)
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
