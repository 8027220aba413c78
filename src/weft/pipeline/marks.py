"""What a table's own log says of the jobs that wrote it: under which checkpoint, and up to which batch (LAK-031, LAK-035).

Each commit of a job carries an app transaction `weft/<job>/<checkpoint>/<table>` = batch. Whoever knows the checkpoint
can ask Delta for that number; this module finds it without: the newest commit wins, since a checkpoint that was begun
anew commits behind those of the one before. Needs no Spark, and works where nothing is left of a checkpoint.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from deltalake import DeltaTable

LAST: str = "_last_checkpoint"


class Mark(NamedTuple):
    """How far a job has come in a table."""

    checkpoint: str
    """Id of the checkpoint that committed last."""
    batch: int


class Said(NamedTuple):
    """What a commit says of itself."""

    version: int
    job: str | None
    """Which job's batch it was; None for other work: columns added, files joined, rows erased."""
    batch: int | None
    what: str
    """Delta's word for the operation, or upkeep's own."""
    changed_data: bool


def newest_mark(table: Path, job: str) -> Mark | None:
    """The mark of the job's newest commit to the table; None if it has none, or there is no table."""
    log = table / "_delta_log"
    for commit in sorted(log.glob("[0-9]*.json"), reverse=True):
        for action in _actions(commit):
            if (mark := _mark(action.get("txn"), job)) is not None:
                return mark
    return _in_checkpoint(log, job)


def said(table: "DeltaTable") -> Iterator[Said]:
    """The commits of a table, newest first, as far back as its log is kept."""
    for commit in table.history():
        batch, job = commit.get("weft.batch"), commit.get("weft.job")
        version = int(commit["version"])
        yield Said(
            version,
            None if job is None else str(job),
            None if batch is None else int(batch),
            str(commit.get("weft.upkeep") or commit.get("operation", "")),
            any(_changes(action) for action in _actions(_file(table, version))),
        )


def _file(table: "DeltaTable", version: int) -> Path:
    return Path(table.table_uri.removeprefix("file://")) / "_delta_log" / f"{version:020d}.json"


def _actions(commit: Path) -> Iterator[dict[str, Any]]:
    yield from (json.loads(line) for line in commit.read_text("utf-8").splitlines())


def _changes(action: dict[str, Any]) -> bool:
    """Whether an action adds or removes rows, rather than files."""
    return any(action.get(kind, {}).get("dataChange", False) for kind in ("add", "remove"))


def _mark(transaction: dict[str, Any] | None, job: str) -> Mark | None:
    app = str((transaction or {}).get("appId", "")).split("/")
    if transaction is None or len(app) != 4 or app[:2] != ["weft", job]:  # weft/job/checkpoint/table
        return None
    return Mark(app[2], int(transaction["version"]))


def _in_checkpoint(log: Path, job: str) -> Mark | None:
    """From the last checkpoint of the log itself, which holds all transactions and knows their times."""
    import pyarrow.parquet as pq

    if not (log / LAST).exists():
        return None
    version = int(json.loads((log / LAST).read_bytes())["version"])
    told = pq.read_table(log / f"{version:020d}.checkpoint.parquet", columns=["txn"]).column("txn").to_pylist()
    found = [(row["lastUpdated"] or 0, mark) for row in told if row and (mark := _mark(row, job)) is not None]
    return max(found)[1] if found else None
