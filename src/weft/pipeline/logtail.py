"""Removes what a power cut has left at the end of a table's log (FLD-042).

`deltalake` makes some commits: the first one of a table, a new column, each hundredth one with a checkpoint of the log, and
one that met another writer's. It does not sync what it writes; that is done right afterwards (`logdigests.note_commits`), and
nothing else before. So after a power cut the newest commit may be empty or torn, but then nobody has gone on from it: without
it the table is as it was before, and its batch is repeated. A checkpoint of the log, and the hint that names it, only repeat
what commits say.

A file with a digest in the lists was synced. If such a one is torn, the disk has lost it, and it is not removed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from weft.lake.layout import Layout
from weft.pipeline.logdigests import HINT, listed, version_of
from weft.pipeline.tables import LOG, Table, there

COMMIT: Final = ".json"
CHECKPOINT: Final = ".checkpoint.parquet"
LEASE: Final = "weft.lease"
"""A property of commits that have app transactions."""


def remove_torn(layout: Layout) -> dict[str, list[str]]:
    """Remove it from the logs of all tables; returns the names of the files by table.

    Only the holder of the lease may call it, before it opens a table.
    """
    found = {table.full_name: list(_remove(layout, table)) for table in there(layout)}
    return {name: files for name, files in found.items() if files}


def _remove(layout: Layout, table: Table) -> Iterator[str]:
    log = layout.table(table.layer, table.name) / LOG
    torn = _torn(log)
    known = listed(layout, table) if torn else {}
    for name in torn:
        if name not in known:
            (log / name).unlink()
            yield name
    if not _leads_to_a_checkpoint(log / HINT):
        (log / HINT).unlink()
        yield HINT


def _torn(log: Path) -> list[str]:
    """Of the newest commit and the newest checkpoint those that are torn; also a checkpoint whose commit is not there."""
    names = sorted(file.name for file in log.iterdir() if version_of(file.name) >= 0)
    commits = [name for name in names if name.endswith(COMMIT)]
    if not commits:
        return []
    torn = [name for name in commits[-1:] if not _is_whole_commit(log / name)]
    last = version_of(commits[-1]) - len(torn)
    for name in [name for name in names if name.endswith(CHECKPOINT)][-1:]:
        has_commit = name.replace(CHECKPOINT, COMMIT) in commits
        if version_of(name) == last + 1 or (has_commit and not _is_whole_checkpoint(log / name)):
            torn.append(name)
    return torn


def _is_whole_commit(file: Path) -> bool:
    try:
        lines = [json.loads(line) for line in file.read_bytes().splitlines()]
        fields: dict[str, Any] = {name: what for line in lines for name, what in line.items()}
    except (ValueError, AttributeError):
        return False
    is_first = version_of(file.name) == 0
    return (
        bool(fields)
        and ("metaData" in fields or not is_first)
        and ("txn" in fields or LEASE not in fields.get("commitInfo", ()))
    )


def _is_whole_checkpoint(file: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return bool(pq.read_table(file).num_rows)
    except (OSError, pa.ArrowException):
        return False


def _leads_to_a_checkpoint(hint: Path) -> bool:
    """Whether the hint is as it should be; a log need not have one."""
    try:
        version = int(json.loads(hint.read_bytes())["version"])
    except FileNotFoundError:
        return True
    except (ValueError, KeyError, TypeError):
        return False
    return any(hint.parent.glob(f"{version:020d}.checkpoint.*"))
