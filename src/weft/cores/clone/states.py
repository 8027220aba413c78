"""How a root follows a Clone server (CFG-060, CFG-064).

It first subscribes to updates, then asks for a snapshot of everything. Updates wait until the snapshot is complete;
those with a higher number than the snapshot are applied after it, each exactly one above the last. A gap, or a number
that starts over, makes it ask again. A server may not answer at first, so an unanswered question is repeated with
growing pauses.

Clients need no state table: the root answers every question and publishes every write.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    RESTING = "this node is not the root, or has nobody to follow"
    ASKING = "a snapshot is asked for, or will be after a pause; updates wait"
    FOLLOWING = "the snapshot is written, updates are as they come"


class On(TableKey):
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
