"""When the notices of one sink are sent: one at a time, in the order of what happened (MET-004).

So no receiver learns that an alert ended before it learns that it began. A failed attempt is repeated, with growing
pauses. A notice that the receiver refuses for good, or that has waited for a day, is given up, and an event tells it.
After a start, a lane with notices RESTS and is due at once: a notice that was being sent when the node died is sent
again.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    IDLE = "no notice waits"
    SENDING = "the first notice is on its way"
    RESTING = "notices wait for the next try"


class On(TableKey):
    NOTICE = "something has happened that this sink is told of"
    DUE = "the time of the next try has come"
    DONE_ALL = "the first notice was sent or is given up, and none is left"
    DONE_MORE = "the same, and there are more"
    FAILED = "it was not sent, or nothing was heard of it for too long"


class Cell(NamedTuple):
    do: str  # a method of lane.Lane
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.IDLE, On.NOTICE): Cell("send_first", State.SENDING),
    (State.SENDING, On.DONE_ALL): Cell("rest", State.IDLE),
    (State.SENDING, On.DONE_MORE): Cell("send_first", State.SENDING),
    (State.SENDING, On.FAILED): Cell("put_off", State.RESTING),
    (State.RESTING, On.DUE): Cell("send_first", State.SENDING),
}
"""Without a row nothing happens: a notice that comes meanwhile waits in the queue."""
