"""The states of a service's connection to a broker (CAT-023).

A service finds a broker, opens a new socket and registers. A goodbye, silence or a new run of the broker ends the
connection: the socket is closed, and a while later the service registers again on a new one. A temporary refusal is
also tried again; a permanent one is final.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    STOPPED = "said goodbye, or was never started"
    IDLE = "knows no broker yet"
    REGISTERING = "has registered on a new socket, and waits for the answer"
    UP = "approved: beats, and is beaten for"
    DROPPED = "the socket is closed; a new one follows"
    DENIED = "refused for good"


class On(TableKey):
    STARTED = "the order to start"
    FOUND = "a broker is known, and it is time"
    APPROVED = "`OwO`"
    PUT_OFF = "`(O_O)`, for a reason that may pass: the name is taken, there are too many"
    REFUSED = "`(O_O)`, for any other reason"
    GOODBYE = "`</3`"
    SILENCE = "no answer in time, or no word for L intervals"
    RESTARTED = "the broker's beacon says another run"
    LOST = "the connection to an existing broker broke: it may have restarted, and does not say so"
    RETURNED = "the broker's beacon comes again, after a silence"
    STOPPED = "the order to stop"


class Cell(NamedTuple):
    do: str  # a method of core.Service
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.STOPPED, On.STARTED): Cell("seek", State.IDLE),
    (State.DENIED, On.STARTED): Cell("seek", State.IDLE),
    (State.IDLE, On.FOUND): Cell("register", State.REGISTERING),
    (State.IDLE, On.STOPPED): Cell("end", State.STOPPED),
    (State.REGISTERING, On.APPROVED): Cell("take_up", State.UP),
    (State.REGISTERING, On.PUT_OFF): Cell("put_off", State.DROPPED),
    (State.REGISTERING, On.REFUSED): Cell("give_up", State.DENIED),
    (State.REGISTERING, On.GOODBYE): Cell("try_later", State.DROPPED),
    (State.REGISTERING, On.SILENCE): Cell("try_later", State.DROPPED),
    (State.REGISTERING, On.RESTARTED): Cell("come_back", State.DROPPED),
    (State.REGISTERING, On.STOPPED): Cell("part", State.STOPPED),
    (State.UP, On.GOODBYE): Cell("come_back", State.DROPPED),
    (State.UP, On.SILENCE): Cell("come_back", State.DROPPED),
    (State.UP, On.RESTARTED): Cell("come_back", State.DROPPED),
    (State.UP, On.LOST): Cell("come_back", State.DROPPED),
    (State.UP, On.STOPPED): Cell("part", State.STOPPED),
    (State.DROPPED, On.FOUND): Cell("register", State.REGISTERING),
    (State.DROPPED, On.RESTARTED): Cell("hasten", State.DROPPED),
    (State.DROPPED, On.RETURNED): Cell("hasten", State.DROPPED),
    (State.DROPPED, On.STOPPED): Cell("leave", State.STOPPED),
    (State.DENIED, On.STOPPED): Cell("end", State.STOPPED),
}
"""A state and input without a row changes nothing."""
