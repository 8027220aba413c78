"""When the recorder of one stream may do what (LAK-001 to LAK-022).

A stream is IDLE until a record comes, OPEN while a segment is collected, and WRITING while the shell publishes it. If
the lake is full or fails, the segment is kept and tried again. Records that come meanwhile are only noted; above a
limit they are not even noted, but stay in the journal and are read later. No state drops a record.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    IDLE = "nothing waits"
    OPEN = "records wait for a segment to be cut"
    WRITING = "a segment is being published"
    FULL = "the lake's device is full, the segment waits"
    FAILED = "the lake refused the segment, it waits"
    CLOSED = "stopped"


class On(TableKey):
    RECORD = "a record of this stream stands in the journal"
    DUE = "age, size or idle time is reached; or the time to try again has come"
    WRITTEN_ALL = "the segment exists, nothing else waits"
    WRITTEN_MORE = "the segment exists, more waits"
    NO_SPACE = "the device is full"
    REFUSED = "any other failure"
    STOPPED = "the order to stop"
    OVERDUE = "the time to stop is over"


class Cell(NamedTuple):
    do: str  # a method of lane.Lane
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.IDLE, On.RECORD): Cell("note", State.OPEN),
    (State.IDLE, On.STOPPED): Cell("rest", State.CLOSED),
    (State.OPEN, On.RECORD): Cell("note", State.OPEN),
    (State.OPEN, On.DUE): Cell("order_segment", State.WRITING),
    (State.OPEN, On.STOPPED): Cell("order_segment", State.WRITING),
    (State.OPEN, On.OVERDUE): Cell("rest", State.CLOSED),
    (State.WRITING, On.RECORD): Cell("note", State.WRITING),
    (State.WRITING, On.WRITTEN_ALL): Cell("advance", State.IDLE),
    (State.WRITING, On.WRITTEN_MORE): Cell("advance", State.OPEN),
    (State.WRITING, On.NO_SPACE): Cell("wait_longer", State.FULL),
    (State.WRITING, On.REFUSED): Cell("wait_long", State.FAILED),
    (State.WRITING, On.STOPPED): Cell("rest", State.WRITING),
    (State.WRITING, On.OVERDUE): Cell("rest", State.CLOSED),
    (State.FULL, On.RECORD): Cell("note", State.FULL),
    (State.FULL, On.DUE): Cell("order_segment", State.WRITING),
    (State.FULL, On.STOPPED): Cell("rest", State.CLOSED),
    (State.FULL, On.OVERDUE): Cell("rest", State.CLOSED),
    (State.FAILED, On.RECORD): Cell("note", State.FAILED),
    (State.FAILED, On.DUE): Cell("order_segment", State.WRITING),
    (State.FAILED, On.STOPPED): Cell("rest", State.CLOSED),
    (State.FAILED, On.OVERDUE): Cell("rest", State.CLOSED),
}
"""A state and input without a row: nothing happens. A closed stream ignores all input."""
