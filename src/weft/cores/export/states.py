"""What is done for one receiver when (MET-006).

Records of samples are gathered for a second, then a range of the journal is named, durably, and sent. Because it is
named before it is sent, a crash sends exactly this range again: a receiver that took it takes or refuses it as a
whole. A range that fails is tried again, later each time, and meanwhile the journal keeps what comes.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    IDLE = "the receiver has everything"
    GATHERING = "samples wait for the next range"
    SENDING = "a range is on its way"
    RESTING = "a range waits for the next try"


class On(TableKey):
    SAMPLES = "a record of samples stands in the journal"
    OTHERS = "only other records do"
    DUE = "the time of the next range, or of the next try, has come"
    SENT_PART = "the receiver has the beginning of the range"
    SENT_ALL = "the receiver has the range, and nothing else waits"
    SENT_MORE = "the receiver has the range, and more waits"
    FAILED = "the range was not taken, or nothing was heard of it for too long"
    GAVE_WAY = "the range is given up, because the journal needs the room"


class Cell(NamedTuple):
    do: str  # a method of lane.Lane
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.IDLE, On.SAMPLES): Cell("gather", State.GATHERING),
    (State.IDLE, On.OTHERS): Cell("pass_by", State.IDLE),
    (State.GATHERING, On.DUE): Cell("name_range", State.SENDING),
    (State.SENDING, On.SENT_PART): Cell("send", State.SENDING),
    (State.SENDING, On.SENT_ALL): Cell("rest", State.IDLE),
    (State.SENDING, On.SENT_MORE): Cell("gather", State.GATHERING),
    (State.SENDING, On.FAILED): Cell("put_off", State.RESTING),
    (State.SENDING, On.GAVE_WAY): Cell("gather", State.GATHERING),
    (State.RESTING, On.DUE): Cell("send", State.SENDING),
    (State.RESTING, On.GAVE_WAY): Cell("gather", State.GATHERING),
}
"""Without a row nothing happens: what comes meanwhile stands in the journal."""
