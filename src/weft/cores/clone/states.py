"""How a root follows a Clone server (CFG-060, CFG-064).

It subscribes first and asks then, for everything. Updates wait until the snapshot is whole; those above its number
follow it, each by one more than the one before. What leaves a hole, or begins anew, makes it ask again. A server may
be mute at first, so a question without an answer is repeated, with longer and longer pauses.

Clients are served without a table: whoever asks the root is answered, and every write is published.
"""

from enum import Enum
from typing import Final, NamedTuple


class State(Enum):
    RESTING = "this node is not the root, or has nobody to follow"
    ASKING = "a snapshot is asked for, or will be after a pause; updates wait"
    FOLLOWING = "the snapshot is written, updates are as they come"


class On(Enum):
    BEGUN = "this node is the root"
    PAIR = "a pair of the snapshot"
    END = "the end of the snapshot"
    UPDATE = "a write of the server; in FOLLOWING, the next one"
    HOLE = "something is missing: a number, or room, or a write that was refused"
    SILENCE = "nothing was heard for the time that is allowed now"
    ENDED = "this node is the root no longer"


class Cell(NamedTuple):
    do: str  # a method of following.Follower
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.RESTING, On.BEGUN): Cell("subscribe_then_ask", State.ASKING),
    (State.ASKING, On.PAIR): Cell("stage_pair", State.ASKING),
    (State.ASKING, On.END): Cell("adopt", State.FOLLOWING),
    (State.ASKING, On.UPDATE): Cell("hold_update", State.ASKING),
    (State.ASKING, On.HOLE): Cell("pause", State.ASKING),
    (State.ASKING, On.SILENCE): Cell("subscribe_then_ask", State.ASKING),
    (State.ASKING, On.ENDED): Cell("let_go", State.RESTING),
    (State.FOLLOWING, On.UPDATE): Cell("write_update", State.FOLLOWING),
    (State.FOLLOWING, On.HOLE): Cell("pause", State.ASKING),
    (State.FOLLOWING, On.SILENCE): Cell("lose", State.ASKING),
    (State.FOLLOWING, On.ENDED): Cell("let_go", State.RESTING),
}
