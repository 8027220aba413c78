"""Removes data on request (LAK-037): of an origin, a series, a time, or a combination.

Each table that has the columns of the choice loses its rows in its own transaction, with an entry in `meta.forgotten`. If
a removal is interrupted, repeating it finishes it: tables that are done have no such rows any more. Roll-ups have nodes
but no origins, so rows of the origin's nodes are removed; if two origins used one name, a rebuild restores the rows of
the other from its values. The numbers stay covered: if the data arrives again, it is not accepted. Segments have the rows
until retention deletes them, and older versions of the tables until `weft lake vacuum` does.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.tables import COMPLETENESS, FORGOTTEN, LATEST, PROGRESS, SAMPLES, STAGES, TWINS, Table, there
from weft.pipeline.upkeep.forgotten import Reason, settle, stream_of, whoever
from weft.pipeline.upkeep.log import opened
from weft.pipeline.upkeep.marks import unfinished, unfolded
from weft.pipeline.upkeep.remove import Removed, holding, some
from weft.pipeline.upkeep.tally import subtract_removals

if TYPE_CHECKING:
    from pyarrow.compute import Expression

ACCOUNTS: Final = (COMPLETENESS, FORGOTTEN, PROGRESS, TWINS)
"""Tables that only say which numbers existed; they keep their rows."""
TIMES: Final = ("at", "at_ns", "window_start", "start")
"""Columns with a time, in the order in which they are tried."""
LATE: Final = {stages.bronze: 2 for stages in STAGES.values()} | {stages.silver: 1 for stages in STAGES.values()}
"""Tables from which an interrupted removal learns the nodes of an origin: they lose their rows last."""


class Choice(NamedTuple):
    """The data to remove. At least one field is set; a row is removed if it matches all fields that are set."""

    origin: str | None = None
    """The origin: node UUID as 32 hex, or a name."""
    series: int | None = None
    """Key of a series."""
    before: date | None = None
    """Only rows with a time stamp before this UTC day."""
    stream: str | None = None
    """Only data of this stream."""

    @property
    def words(self) -> str:
        """The choice as options of the command."""
        given = {name: value for name, value in self._asdict().items() if value is not None}
        return " ".join(f"--{name} {value}" for name, value in given.items())


class Wanted(NamedTuple):
    """What to remove from one table."""

    table: Table
    only: "Expression"


def wanted(layout: Layout, choice: Choice) -> list[Wanted]:
    """The rows to remove, by table; reads no row yet. UserError `nothing-chosen`."""
    if (choice.origin, choice.series, choice.before) == (None, None, None):
        raise UserError("nothing-chosen", "no rows were chosen", "--origin, --series or --before")
    nodes = _nodes(layout, choice.origin) if choice.origin else []
    chosen = [
        Wanted(table, only)
        for table in there(layout)
        if _is_asked(table, choice) and (only := _only(table, choice, nodes)) is not None
    ]
    return sorted(chosen, key=lambda entry: LATE.get(entry.table, 0))


def found(layout: Layout, choice: Choice) -> list[Removed]:
    """What would be removed. Changes nothing."""
    counts = [(entry.table, holding(layout, entry.table, entry.only)) for entry in wanted(layout, choice)]
    return [Removed(table.full_name, sum(rows for _, rows in held), len(held)) for table, held in counts if held]


def forget(layout: Layout, choice: Choice, why: str, epoch: int) -> Iterator[Removed]:
    """Remove the chosen rows, table by table. The caller holds the lease of `epoch`.

    Raises UserError `nothing-chosen`, `unfinished-batch`, and what `remove.some` raises.
    """
    if behind := unfinished(layout):
        names = ", ".join(table.full_name for table in behind)
        raise UserError(
            "unfinished-batch", f"a batch is not finished, and {names} have rows of it", "weft lake run --once"
        )
    if late := unfolded(layout):
        raise UserError(
            "unfinished-batch",
            f"completeness does not include all batches yet: {', '.join(late)}",
            "weft lake run --once",
        )
    settle(layout, epoch)
    reason = Reason(choice.words, why, whoever())
    for table, only in wanted(layout, choice):
        removed = some(layout, table, only, reason, epoch)
        if removed.rows:
            yield removed
    subtract_removals(layout, epoch)


def _is_asked(table: Table, choice: Choice) -> bool:
    """Whether a table can hold the chosen data, judged by its name alone."""
    stream = stream_of(table) or "samples"
    return table not in ACCOUNTS and choice.stream in (None, stream)


def _only(table: Table, choice: Choice, nodes: list[str]) -> "Expression | None":
    """The rows to remove; None if the table lacks a column for one of the chosen fields."""
    import pyarrow.compute as pc

    names = table.schema.names
    parts: list[Expression | None] = []
    if choice.origin is not None:
        by_node = pc.field("node").isin(nodes) if "node" in names and nodes else None
        parts.append(pc.field("origin") == choice.origin if "origin" in names else by_node)
    if choice.series is not None:
        parts.append(pc.field("series") == choice.series if "series" in names else None)
    if choice.before is not None:
        parts.append(_before(names, choice.before))
    only: Expression | None = None
    for part in parts:
        if part is None:
            return None
        only = part if only is None else only & part
    return only


def _before(names: tuple[str, ...], day: date) -> "Expression | None":
    import pyarrow as pa
    import pyarrow.compute as pc

    column = next((name for name in TIMES if name in names), None)
    if column is None:
        return None
    midnight = datetime.combine(day, time(), UTC)
    if column == "at_ns":
        return pc.field(column) < round(midnight.timestamp()) * 1_000_000_000
    return pc.field(column) < pa.scalar(midnight, pa.timestamp("us", "UTC"))


def _nodes(layout: Layout, origin: str) -> list[str]:
    """The node names that an origin has used."""
    import pyarrow.compute as pc

    names: set[str] = set()
    for table in (COMPLETENESS, LATEST, SAMPLES):
        delta = opened(layout, table)
        if delta is not None:
            rows = delta.to_pyarrow_dataset().to_table(columns=["node"], filter=pc.field("origin") == origin)
            names.update(rows.column("node").unique().to_pylist())
    return sorted(name for name in names if name)
