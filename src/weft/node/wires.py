"""The words in which `node.wiring` is written."""

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
    """What this node is from its next start on; else as the settings say."""
    planner: Planner
    census: Census
    standing: Standing
    authority: Authority | None
    node: bytes

    def order(self, core: str, order: Any) -> None:
        """Give a core an order in this turn."""

    def append_event(self, event: Any) -> None:
        """Write the event into the journal's stream of events."""

    def keep(self, record: Record) -> None:
        """Write a record of the node's own into the journal."""

    def end(self, event: Any) -> None:
        """Stop the node, for the reason that the event says."""

    def tell_later(self, event: Any) -> None:
        """Let the wiring hear an event of the node itself, behind what is under way."""

    def change_role(self, role: Role) -> None:
        """Be something else after the next start, which comes at once."""

    def release(self, holder: str, upto: int) -> None:
        """Note that `holder` needs no record up to `upto`."""


Action = Callable[[Orders, Any], None]


class Wire:
    """One row: when an event of `kind` is told, `actions` follow in order."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.actions: list[Action] = []

    def then(self, *actions: Action) -> "Wire":
        """Add what follows from the event."""
        self.actions += actions
        return self


def when(kind: type) -> Wire:
    """Begin a row of the wiring."""
    return Wire(kind)


def index(wires: Iterable[Wire]) -> dict[type, list[Action]]:
    """The wiring by event type; rows of one type keep their order."""
    table: dict[type, list[Action]] = {}
    for wire in wires:
        table.setdefault(wire.kind, []).extend(wire.actions)
    return table
