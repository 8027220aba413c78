"""What a journal does when the disk answers (JRN, section 5.4).

As long as it is OPEN it writes what it is given. A disk without room makes it FULL: the ballast goes, and in its
place only such records are written as make room or keep promises. A disk that fails makes it FAILED, for good: it
writes nothing more, because nobody can say what a failed sync has left behind. Room that comes back makes a full
journal OPEN again, once the ballast is rewritten. An answer without a row cannot happen in that state.
"""

from enum import Enum
from typing import Final, NamedTuple


class State(Enum):
    OPEN = "writes what it is given"
    FULL = "no room: writes only what makes room or keeps a promise"
    FAILED = "the disk failed: writes nothing any more"
    CLOSED = "stopped"


class On(Enum):
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
"""FULL becomes OPEN by ROOM alone: `Journal.seek_room` rewrites the ballast and, if that is good, says so."""
