"""When a child may do what on the link to its parent (CHN-030 to CHN-043).

A child sends `hello` through a new socket. `welcome` names the last hop number that the parent has; the child sends the
following ones while the window has room. Silence, a refusal or a stalled window end the link; the child sends `hello`
again after a pause that doubles. `hack` with `win` 0 means that the parent is full and the child waits. A message in a
state without a row here is an error of the parent: it is refused and counted, and has no effect.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    NONE = "no parent"
    GREETING = "hello sent, or about to be sent again"
    OPEN = "welcomed; messages go up"
    STOPPED = "welcomed, but the parent has no room"


class On(TableKey):
    ASSIGNED = "the parent's endpoint is known"
    DISMISSED = "there is no parent any more, or the node stops"
    WELCOMED = "welcome"
    REFUSED = "refuse"
    ROOM = "hack with room"
    NO_ROOM = "hack with win 0"
    BROKEN = "silence, a stalled window, bye, or unreadable messages"
    DUE = "the pause before the next hello is over"


class Cell(NamedTuple):
    do: str  # a method of child.Child
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.NONE, On.ASSIGNED): Cell("greet", State.GREETING),
    (State.NONE, On.DISMISSED): Cell("stay", State.NONE),
    (State.GREETING, On.ASSIGNED): Cell("greet", State.GREETING),
    (State.GREETING, On.DISMISSED): Cell("let_go", State.NONE),
    (State.GREETING, On.WELCOMED): Cell("join", State.OPEN),
    (State.GREETING, On.REFUSED): Cell("back_off", State.GREETING),
    (State.GREETING, On.ROOM): Cell("stay", State.GREETING),
    (State.GREETING, On.NO_ROOM): Cell("stay", State.GREETING),
    (State.GREETING, On.BROKEN): Cell("back_off", State.GREETING),
    (State.GREETING, On.DUE): Cell("greet", State.GREETING),
    (State.OPEN, On.ASSIGNED): Cell("move", State.GREETING),
    (State.OPEN, On.DISMISSED): Cell("let_go", State.NONE),
    (State.OPEN, On.WELCOMED): Cell("take_up", State.OPEN),
    (State.OPEN, On.REFUSED): Cell("lose", State.GREETING),
    (State.OPEN, On.ROOM): Cell("advance", State.OPEN),
    (State.OPEN, On.NO_ROOM): Cell("advance", State.STOPPED),
    (State.OPEN, On.BROKEN): Cell("lose", State.GREETING),
    (State.STOPPED, On.ASSIGNED): Cell("move", State.GREETING),
    (State.STOPPED, On.DISMISSED): Cell("let_go", State.NONE),
    (State.STOPPED, On.WELCOMED): Cell("take_up", State.OPEN),
    (State.STOPPED, On.REFUSED): Cell("lose", State.GREETING),
    (State.STOPPED, On.ROOM): Cell("advance", State.OPEN),
    (State.STOPPED, On.NO_ROOM): Cell("advance", State.STOPPED),
    (State.STOPPED, On.BROKEN): Cell("lose", State.GREETING),
}
"""Without a row: any message while there is no parent, and a pause that ends while the link is open."""
