"""Data that somebody wants gone (LAK-037): of an origin, of a series, of a time, or of what is all of these.

Each table that has columns to tell by loses its rows in a transaction of its own, with an entry in the accounts. What was
begun and not finished is finished by asking again: a table that is done has nothing left to lose. Roll-ups know nodes and
no origins, so those of the origin's nodes go; where two origins have spoken under one name, a rebuild makes those of the
other anew of the values that stay.

The numbers stay covered: what comes a second time does not come back. Segments hold the rows until retention takes them,
and older versions of the tables until `weft lake vacuum` does.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.tables import COMPLETENESS, FORGOTTEN, LATEST, PROGRESS, SAMPLES, STAGES, TWINS, Table
from weft.pipeline.upkeep.forgotten import Reason, settle, stream_of, whoever
from weft.pipeline.upkeep.log import opened, there
from weft.pipeline.upkeep.marks import unfinished, unfolded
from weft.pipeline.upkeep.remove import Removed, holding, some
from weft.pipeline.upkeep.tally import take_down

if TYPE_CHECKING:
    from pyarrow.compute import Expression

ACCOUNTS: Final = (COMPLETENESS, FORGOTTEN, PROGRESS, TWINS)
"""What says which numbers there were, and holds nothing of what they said."""
TIMES: Final = ("at", "at_ns", "window_start", "start")
"""Columns that say when, in the order in which they are looked for."""
LATE: Final = {stages.bronze: 2 for stages in STAGES.values()} | {stages.silver: 1 for stages in STAGES.values()}
"""Tables that are asked which nodes an origin has, so they lose their rows last."""


class Choice(NamedTuple):
    """Whose data; at least one is said, and a row goes if all that are said fit."""

    origin: str | None = None
    """Who numbered it: node UUID as 32 hex, or a name."""
    series: int | None = None
    """Key of a series."""
    before: date | None = None
    """Everything that was stamped before this UTC day."""
    stream: str | None = None
    """Only of this stream."""

    @property
    def words(self) -> str:
        """As words of the command."""
        said = {name: value for name, value in self._asdict().items() if value is not None}
        return " ".join(f"--{name} {value}" for name, value in said.items())


class Wanted(NamedTuple):
    """What is to go from one table."""

    table: Table
    only: "Expression"


def wanted(layout: Layout, choice: Choice) -> list[Wanted]:
    """Which rows of which tables are meant; nothing is read of them yet. UserError `nothing-chosen`."""
    if (choice.origin, choice.series, choice.before) == (None, None, None):
        raise UserError("nothing-chosen", "nobody said what is to be forgotten", "--origin, --series or --before")
    nodes = _nodes(layout, choice.origin) if choice.origin else []
    chosen = [
        Wanted(table, only)
        for table in there(layout)
        if _is_asked(table, choice) and (only := _only(table, choice, nodes)) is not None
    ]
    return sorted(chosen, key=lambda entry: LATE.get(entry.table, 0))


def found(layout: Layout, choice: Choice) -> list[Removed]:
    """What would go. Changes nothing."""
    counts = [(entry.table, holding(layout, entry.table, entry.only)) for entry in wanted(layout, choice)]
    return [Removed(table.full_name, sum(rows for _, rows in held), len(held)) for table, held in counts if held]


def forget(layout: Layout, choice: Choice, why: str, epoch: int) -> Iterator[Removed]:
    """Remove it, table by table. The caller holds the lease of `epoch`.

    Raises UserError `nothing-chosen`, `unfinished-batch`, and what `remove.some` raises.
    """
    if behind := unfinished(layout):
        names = ", ".join(table.full_name for table in behind)
        raise UserError("unfinished-batch", f"a batch was cut short: {names} hold rows of it", "weft lake run --once")
    if late := unfolded(layout):
        raise UserError("unfinished-batch", f"gold tables are behind: {', '.join(late)}", "weft lake run --once")
    settle(layout, epoch)
    reason = Reason(choice.words, why, whoever())
    for table, only in wanted(layout, choice):
        removed = some(layout, table, only, reason, epoch)
        if removed.rows:
            yield removed
    take_down(layout, epoch)


def _is_asked(table: Table, choice: Choice) -> bool:
    """Whether a table can hold what was chosen, by its name alone."""
    stream = stream_of(table) or "samples"
    return table not in ACCOUNTS and choice.stream in (None, stream)


def _only(table: Table, choice: Choice, nodes: list[str]) -> "Expression | None":
    """The rows that are meant; None if the table cannot tell by one of the things that were said."""
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
    """Under which names an origin has spoken."""
    import pyarrow.compute as pc

    names: set[str] = set()
    for table in (COMPLETENESS, LATEST, SAMPLES):
        delta = opened(layout, table)
        if delta is not None:
            rows = delta.to_pyarrow_dataset().to_table(columns=["node"], filter=pc.field("origin") == origin)
            names.update(rows.column("node").unique().to_pylist())
    return sorted(name for name in names if name)
