"""When a node knows its parent (specs/01, section 4; the static tree of a configuration file).

The root needs none. A parent given as `host:port` is known at once; one given by name is known when its beacon
is heard, and followed when it is heard elsewhere. Whoever finds an older live node of its own name ends.
"""

from enum import Enum
from typing import Final, NamedTuple


class State(Enum):
    SEEKING = "the parent's beacon has not been heard yet"
    SETTLED = "the parent's endpoint is known, or none is needed"
    ENDED = "another node had this name, or the node is stopping"


class On(Enum):
    PARENT_HEARD = "a beacon of the parent's name"
    TWIN_OLDER = "a beacon of our own name, from a node that started before us"
    TWIN_NEWER = "a beacon of our own name, from a node that started after us"
    OTHER_HEARD = "any other beacon of this fleet"
    LEFT = "a beacon with port 0"
    STOPPED = "the order to stop"


class Cell(NamedTuple):
    do: str  # a method of core.Topology
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.SEEKING, On.PARENT_HEARD): Cell("settle", State.SETTLED),
    (State.SETTLED, On.PARENT_HEARD): Cell("follow", State.SETTLED),
    (State.SEEKING, On.TWIN_OLDER): Cell("give_way", State.ENDED),
    (State.SETTLED, On.TWIN_OLDER): Cell("give_way", State.ENDED),
    (State.SEEKING, On.TWIN_NEWER): Cell("speak_up", State.SEEKING),
    (State.SETTLED, On.TWIN_NEWER): Cell("speak_up", State.SETTLED),
    (State.SEEKING, On.OTHER_HEARD): Cell("note", State.SEEKING),
    (State.SETTLED, On.OTHER_HEARD): Cell("note", State.SETTLED),
    (State.SEEKING, On.LEFT): Cell("forget", State.SEEKING),
    (State.SETTLED, On.LEFT): Cell("forget", State.SETTLED),
    (State.SEEKING, On.STOPPED): Cell("leave", State.ENDED),
    (State.SETTLED, On.STOPPED): Cell("leave", State.ENDED),
}
"""A state and input without a row: ignored. Only ENDED has such, and an ended node hears nothing."""
