"""Reads the files of a table from its log, and exchanges some of them in one transaction (LAK-037, LAK-038).

A transaction of upkeep has no batch: it is not progress of a job, and searches for the last batch of a table skip it. It
has the name of its operation (property `weft.upkeep`) and the epoch of the lease (app transaction `weft.upkeep`); so a
process whose lease was taken over cannot commit. Files to remove are looked up in the same version on which the commit
is based: the log accepts the removal of a file that is already removed, and its rows would then exist twice. If another
commit removes one of these files meanwhile, this one fails; if it only appends, this one succeeds. Files that were written
for a failed commit stay until they are vacuumed, because the commit may have succeeded in spite of the error.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft import __version__
from weft.lake.layout import Layout
from weft.pipeline.delta import RETRIES, DataFile, date_removed, partition_of, transact
from weft.pipeline.lease import LeaseLost
from weft.pipeline.tables import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

APP: Final = "weft.upkeep"
"""App id whose version is the epoch of the lease; also the property with the name of a commit's operation."""


class Overtaken(Exception):
    """Files to remove are not in the table any more. Nothing was committed; the caller starts again."""


class LiveFile(NamedTuple):
    """A file of the newest version of a table."""

    path: str
    """Relative to the table."""
    size: int
    rows: int
    partition: str | None
    """Value of the partition column; None for tables without one."""
    first_batch: int | None
    """Lowest batch of its rows; None if its rows have no batch."""
    last_batch: int | None
    """Highest batch of its rows."""


class Exchange(NamedTuple):
    """What one transaction changes in a table."""

    table: Table
    remove: tuple[LiveFile, ...]
    add: tuple[DataFile, ...]
    what: str
    """`compact`, `retain` or `forget`."""
    is_rearranged: bool
    """True: the rows stay the same, so readers that follow the table's changes can skip the commit."""
    apps: Mapping[str, int] = {}
    """Additional app transactions."""


def opened(layout: Layout, table: Table) -> "DeltaTable | None":
    """The newest version of a table; None if the table does not exist."""
    from deltalake import DeltaTable

    path = str(layout.table(table.layer, table.name))
    return DeltaTable(path) if DeltaTable.is_deltatable(path) else None


def live_files(delta: "DeltaTable", table: Table) -> list[LiveFile]:
    """The files of a version, with what the log says about them."""
    import pyarrow as pa

    actions = pa.table(delta.get_add_actions(flatten=True)).to_pydict()
    nothing = [None] * len(actions["path"])
    columns = [actions.get(name, nothing) for name in ("path", "size_bytes", "num_records", "min.batch", "max.batch")]
    return [
        LiveFile(path, size, rows or 0, partition_of(path).get(table.partition or ""), first, last)
        for path, size, rows, first, last in zip(*columns, strict=True)
    ]


def exchange(layout: Layout, wanted: Exchange, epoch: int) -> int:
    """Commit the exchange; returns the new version.

    The new files must already be in their place. Raises Overtaken if a file to remove is not in the table or is removed
    concurrently; LeaseLost if another process has the lease now.
    """
    from deltalake import CommitProperties, Transaction
    from deltalake.exceptions import CommitFailedError

    delta = opened(layout, wanted.table)
    assert delta is not None, wanted.table.full_name
    _refuse_if_overtaken(delta, wanted, epoch)
    now_ms = round(datetime.now(UTC).timestamp() * 1000)
    apps = {APP: epoch, **wanted.apps}
    about = {APP: wanted.what, "weft.version": __version__, "weft.lease": str(epoch)}
    properties = CommitProperties(
        custom_metadata=about,
        max_commit_retries=RETRIES,
        app_transactions=[Transaction(app, version, now_ms) for app, version in apps.items()],
    )
    date_removed(layout.table(wanted.table.layer, wanted.table.name), [file.path for file in wanted.remove])
    try:
        transact(layout, wanted.table, delta, actions_of(wanted, now_ms), properties)
    except CommitFailedError as error:
        raise Overtaken(f"{wanted.table.full_name}: {error}") from error
    delta.update_incremental()
    return delta.version()


def _refuse_if_overtaken(delta: "DeltaTable", wanted: Exchange, epoch: int) -> None:
    held = delta.transaction_version(APP)
    if held is not None and held > epoch:
        raise LeaseLost(f"another process holds the lease: its epoch is {held}, ours is {epoch}")
    live = {file.path for file in live_files(delta, wanted.table)}
    gone = [file.path for file in wanted.remove if file.path not in live]
    if gone:
        raise Overtaken(f"{wanted.table.full_name} no longer has {gone[0]}")


def actions_of(wanted: Exchange, now_ms: int) -> list[Any]:
    """What the log says of an exchange."""
    from deltalake.transaction import AddAction, RemoveAction

    is_change = not wanted.is_rearranged
    add = [
        AddAction(file.path, file.size, file.partition, now_ms, data_change=is_change, stats=file.statistics)
        for file in wanted.add
    ]
    remove = [RemoveAction(file.path, is_change, now_ms, None, partition_of(file.path)) for file in wanted.remove]
    return [*add, *remove]


def absolute(layout: Layout, table: Table, files: Sequence[LiveFile]) -> list[str]:
    """Absolute paths of files of a table."""
    root = layout.table(table.layer, table.name)
    return [str(root / file.path) for file in files]
