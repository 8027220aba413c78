"""The types and functions with which `node.wiring` is written."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from weft.base.records import Record
from weft.node.authority import Authority
from weft.node.census import Census
from weft.node.planner import Planner
from weft.node.settings import NodeSettings, Role
from weft.node.standing import Standing


class Orders(Protocol):
    """What an action of the wiring may use of a node."""

    is_full: bool
    unrecorded_samples: int
    unrecorded_events: int
    settings: NodeSettings
    role: Role
    """The role of this node, or, if that has changed, the role from its next start on."""
    planner: Planner
    census: Census
    standing: Standing
    authority: Authority | None
    node: bytes

    def order(self, core: str, order: Any) -> None:
        """Give a core an order in this turn; ignored if the node does not run the core."""

    def append_event(self, event: Any) -> None:
        """Append the event to the journal's stream of events."""

    def keep(self, record: Record) -> None:
        """Write a record of the node itself into the journal."""

    def end(self, event: Any) -> None:
        """Stop the node, for the reason in the event."""

    def tell_later(self, event: Any) -> None:
        """Pass an event of the node itself through the wiring, after those already queued."""

    def change_role(self, role: Role) -> None:
        """Take another role with the next start, which follows at once."""

    def release(self, holder: str, upto: int) -> None:
        """Note that `holder` needs no record with an lsn up to `upto` any more."""


Action = Callable[[Orders, Any], None]


class Wire:
    """One row: after an event of type `kind`, the `actions` are called in order."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.actions: list[Action] = []

    def then(self, *actions: Action) -> "Wire":
        """Add actions."""
        self.actions += actions
        return self


def when(kind: type) -> Wire:
    """Begin a row of the wiring."""
    return Wire(kind)


def index(wires: Iterable[Wire]) -> dict[type, list[Action]]:
    """The actions by event type; rows of one type keep their order."""
    table: dict[type, list[Action]] = {}
    for wire in wires:
        table.setdefault(wire.kind, []).extend(wire.actions)
    return table
