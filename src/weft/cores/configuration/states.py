"""When a replica may do what (CFG-030..044).

A replica asks its parent for a snapshot of its topics, holds the updates that come meanwhile, adopts the snapshot when
it is complete, and follows. Each update is then judged by its number. A lower number means that the parent has another
history: the saved values are deleted. A gap means that an update was lost: the old values stay readable. Both lead to a
new snapshot. An input without a row cannot happen, or is refused without effect, such as an answer that was not asked
for.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    IDLE = "no parent: nothing is followed; a root is here too"
    SYNC = "a snapshot is asked for, or about to be; updates wait"
    RUN = "the snapshot is adopted, updates are applied as they come"


class On(TableKey):
    ASSIGNED = "another parent or other topics"
    LEFT = "there is no parent any more, or this node is the root"
    DUE = "the pause before the next attempt is over"
    ANSWERED = "a pair or an end that was asked for"
    COMPLETED = "the last end, and the snapshot may be taken"
    FAILED = "a refusal, silence, an old snapshot, or too much of anything"
    UPDATED = "an update while the snapshot is not in"
    NEXT = "the update behind the last one"
    DUPLICATE = "the last update of its chain, again"
    LOWER = "a lower number, or an equal one with other bytes"
    LEFTOVER = "an update that the snapshot contains"
    HOLE = "an update before this one was lost"
    EPOCH = "an update of another root"
    TIP = "the parent's last number is another one"


class Cell(NamedTuple):
    do: str  # a method of replica.Replica
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.IDLE, On.ASSIGNED): Cell("follow", State.SYNC),
    (State.IDLE, On.LEFT): Cell("stay", State.IDLE),
    (State.SYNC, On.ASSIGNED): Cell("follow", State.SYNC),
    (State.SYNC, On.LEFT): Cell("let_go", State.IDLE),
    (State.SYNC, On.DUE): Cell("ask", State.SYNC),
    (State.SYNC, On.ANSWERED): Cell("stage", State.SYNC),
    (State.SYNC, On.COMPLETED): Cell("adopt", State.RUN),
    (State.SYNC, On.FAILED): Cell("drop_stage", State.SYNC),
    (State.SYNC, On.UPDATED): Cell("hold", State.SYNC),
    (State.RUN, On.ASSIGNED): Cell("follow", State.SYNC),
    (State.RUN, On.LEFT): Cell("let_go", State.IDLE),
    (State.RUN, On.NEXT): Cell("apply", State.RUN),
    (State.RUN, On.DUPLICATE): Cell("pass_over", State.RUN),
    (State.RUN, On.LEFTOVER): Cell("pass_over", State.RUN),
    (State.RUN, On.LOWER): Cell("wipe", State.SYNC),
    (State.RUN, On.HOLE): Cell("resync", State.SYNC),
    (State.RUN, On.EPOCH): Cell("resync", State.SYNC),
    (State.RUN, On.TIP): Cell("resync", State.SYNC),
}
