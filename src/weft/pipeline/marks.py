"""Reads from a table's log which jobs wrote it, under which checkpoint and up to which batch (LAK-031, LAK-035).

Each commit of a job carries an app transaction `weft/<job>/<checkpoint>/<table>` = batch. With the checkpoint's id
Delta returns that number; this module finds it without the id, so also if the checkpoint is lost: the newest commit
counts, because a new checkpoint commits after the old one. Needs no Spark.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from weft.pipeline.logdigests import HINT, commit_file, version_of
from weft.pipeline.tables import LOG

if TYPE_CHECKING:
    from deltalake import DeltaTable

REBUILD: Final = "rebuild"
AT_ONCE: Final = 100  # commits examined before the search goes further back
NEAR: Final = 8  # commits in which the version of an application is looked for, before the whole log is read


class Mark(NamedTuple):
    """How far a job has come in a table."""

    checkpoint: str
    """Id of the checkpoint that committed last."""
    batch: int


class Commit(NamedTuple):
    """What a commit says about itself."""

    version: int
    job: str | None
    """The job whose batch it is; None for other work: columns added, files joined, rows removed."""
    batch: int | None
    what: str
    """The operation: its name in upkeep, `rebuild`, or Delta's name for it."""
    changed_data: bool
    """Whether it added or removed rows, and not only files."""


def newest_mark(table: Path, job: str) -> Mark | None:
    """The mark of the job's newest commit to the table; None if there is none, or no table.

    Reads the last checkpoint of the log and the commits after it, at most a hundred, however long the log is.
    """
    log = table / LOG
    last = _last_checkpoint(log)
    for commit in reversed(_commits_after(log, last)):
        for action in _actions(commit):
            if (mark := _mark(action.get("txn"), job)) is not None:
                return mark
    return None if last < 0 else _in_checkpoint(log, last, job)


def app_version(table: "DeltaTable", app: str) -> int | None:
    """The version of an application as of a version of a table, None if it has none: mostly one of the newest commits says it.

    Commits up to the log's last checkpoint are not read: nobody needs them, so they may be damaged.
    """
    log = _log_of(table)
    end = max(table.version() - NEAR, _last_checkpoint(log))
    for version in range(table.version(), end, -1):
        try:
            transactions = [action["txn"] for action in _actions(commit_file(log, version)) if "txn" in action]
        except (OSError, ValueError):
            break
        found = next((int(txn["version"]) for txn in transactions if txn["appId"] == app), None)
        if found is not None:
            return found
    return table.transaction_version(app)


def commits_of(table: "DeltaTable") -> Iterator[Commit]:
    """The commits of a table, newest first, as far back as the log goes."""
    seen, limit = 0, AT_ONCE
    while seen < limit:
        history = table.history(limit)
        yield from (_commit(table, commit) for commit in history[seen:])
        if len(history) < limit:
            return
        seen, limit = limit, 10 * limit


def added_by(table: "DeltaTable", job: str, after: int) -> list[str] | None:
    """The files that batches of a job added after a version.

    None if such a batch also removed files, or if a file is not in the newest version any more.
    """
    added: list[str] = []
    for entry in commits_of(table):
        if entry.version <= after:
            break
        if entry.job != job or entry.batch is None:
            continue
        for action in _actions(commit_file(_log_of(table), entry.version)):
            if "remove" in action:
                return None
            added += [action["add"]["path"]] if "add" in action else []
    return added if set(added) <= set(_live(table)) else None


def _live(table: "DeltaTable") -> list[str]:
    import pyarrow as pa

    paths: list[str] = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    return paths


def _commit(table: "DeltaTable", commit: dict[str, Any]) -> Commit:
    batch, job, version = commit.get("weft.batch"), commit.get("weft.job"), int(commit["version"])
    what = commit.get("weft.upkeep") or (REBUILD if "weft.rebuilt" in commit else commit.get("operation", ""))
    return Commit(
        version,
        None if job is None or what == REBUILD else str(job),
        None if batch is None or what == REBUILD else int(batch),
        str(what),
        any(_changes(action) for action in _actions(commit_file(_log_of(table), version))),
    )


def _last_checkpoint(log: Path) -> int:
    """The version of the log's last checkpoint, as the hint says, else by the files; -1: it has none."""
    try:
        return int(json.loads((log / HINT).read_bytes())["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return max((version_of(file.name) for file in log.glob("*.checkpoint.parquet")), default=-1)


def _commits_after(log: Path, version: int) -> list[Path]:
    """The commits after a version, in order."""
    found: list[Path] = []
    while (commit := commit_file(log, version + 1 + len(found))).exists():
        found.append(commit)
    return found


def _log_of(table: "DeltaTable") -> Path:
    return Path(unquote(table.table_uri.removeprefix("file://"))) / LOG


def _actions(commit: Path) -> Iterator[dict[str, Any]]:
    yield from (json.loads(line) for line in commit.read_text("utf-8").splitlines())


def _changes(action: dict[str, Any]) -> bool:
    """Whether an action adds or removes rows, and not only files."""
    return any(action.get(kind, {}).get("dataChange", False) for kind in ("add", "remove"))


def _mark(transaction: dict[str, Any] | None, job: str) -> Mark | None:
    app = str((transaction or {}).get("appId", "")).split("/")
    if transaction is None or len(app) != 4 or app[:2] != ["weft", job]:  # weft/job/checkpoint/table
        return None
    return Mark(app[2], int(transaction["version"]))


def _in_checkpoint(log: Path, version: int, job: str) -> Mark | None:
    """The newest mark of a job in a checkpoint of the log, which has all transactions and their times."""
    import pyarrow.parquet as pq

    transactions = pq.read_table(log / f"{version:020d}.checkpoint.parquet", columns=["txn"]).column("txn").to_pylist()
    found = [(row["lastUpdated"] or 0, mark) for row in transactions if row and (mark := _mark(row, job)) is not None]
    return max(found)[1] if found else None
