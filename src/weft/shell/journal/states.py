"""How a journal reacts to the answers of the disk (JRN, section 5.4).

An OPEN journal writes every record. When the disk has no space it becomes FULL: the ballast is deleted, and in its
place only records are written that make space or keep promises. When the disk fails it becomes FAILED until the next
start: it writes nothing, because nobody can say what a failed sync has left behind. A full journal becomes OPEN again
when there is space and the ballast has been rewritten. An answer without a row cannot happen in that state.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    OPEN = "writes what it is given"
    FULL = "no room: writes only what makes room or keeps a promise"
    FAILED = "the disk failed: writes nothing any more"
    CLOSED = "stopped"


class On(TableKey):
    WRITTEN = "a write and its sync were good"
    NO_ROOM = "a write was refused or short for want of room, or a budget is used up"
    BROKEN = "a write failed otherwise, or a sync failed"
    ROOM = "there is room again"
    STOPPED = "the node stops"


class Cell(NamedTuple):
    do: str
    """A method of `Journal`; empty: nothing."""
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.OPEN, On.WRITTEN): Cell("", State.OPEN),
    (State.OPEN, On.NO_ROOM): Cell("drop_ballast", State.FULL),
    (State.OPEN, On.BROKEN): Cell("", State.FAILED),
    (State.OPEN, On.STOPPED): Cell("", State.CLOSED),
    (State.FULL, On.WRITTEN): Cell("", State.FULL),
    (State.FULL, On.NO_ROOM): Cell("", State.FULL),
    (State.FULL, On.ROOM): Cell("", State.OPEN),
    (State.FULL, On.BROKEN): Cell("", State.FAILED),
    (State.FULL, On.STOPPED): Cell("", State.CLOSED),
    (State.FAILED, On.STOPPED): Cell("", State.CLOSED),
}
"""FULL becomes OPEN by ROOM alone, which `Journal._seek_room` reports after it has rewritten the ballast."""
