"""When a store node may do what.

A fresh node is passive: it listens until it hears a chain of pings with data, gets the data of those nodes, and only
then counts as a member. A node that comes back with data waits for the others before it continues; if none is there, it
continues alone. A node that learns of changes under its own name that it did not make answers no client until that is
cleared up (STO-034). An input in a state without a row here changes nothing.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    OFFLINE = "no link has been up yet, or the node was told to stop"
    LISTEN = "no data: pings of others are awaited"
    JOIN = "others with data are there: what they have is being found out"
    RESTORED = "data of an earlier start; whether somebody has newer is awaited"
    CATCHUP = "it is known what there is; the rest of it is on its way"
    MEMBER = "has what the others have: serves, writes, pings"
    READ_ONLY = "its name is not its own: takes no order"


class On(TableKey):
    LINKED_EMPTY = "a link carries messages, and there is no data"
    LINKED = "a link carries messages, and there is data"
    FOUNDED = "the order to be the first node"
    TIMER = "the time of waiting is over"
    AUTHORITY = "a ping whose chain has a node with data"
    INFORMED = "it is known what there is: a full list of ticks, or a finished download"
    FAILED = "nobody could tell what there is"
    COMPLETE = "nothing is missing, or nobody in reach has it (HEA-012)"
    OVERTAKEN = "somebody has changes of this node's name that it did not make"
    UNCONFIRMED = "not everybody confirmed them, and the name cannot be changed"
    BARRED = "the own name was dropped, or belongs to an older boot"
    ACCEPTED = "people say that the name is this node's, or the other node that had it is gone"
    FREED = "the other node that had its name is gone, and it has made no change"
    EMPTIED = "it had been dropped, and has set its data aside (DEL-006)"
    COPIED = "a file's store was taken over as it is (ADM-013)"
    STOPPED = "the order to stop"


class Cell(NamedTuple):
    do: str  # a method of membership.Membership
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.OFFLINE, On.LINKED_EMPTY): Cell("listen", State.LISTEN),
    (State.OFFLINE, On.LINKED): Cell("await_others", State.RESTORED),
    (State.OFFLINE, On.BARRED): Cell("rest", State.READ_ONLY),
    (State.LISTEN, On.FOUNDED): Cell("begin", State.MEMBER),
    (State.LISTEN, On.TIMER): Cell("call_out", State.LISTEN),
    (State.LISTEN, On.AUTHORITY): Cell("join", State.JOIN),
    (State.LISTEN, On.COPIED): Cell("catch_up", State.CATCHUP),
    (State.LISTEN, On.BARRED): Cell("rest", State.READ_ONLY),
    (State.LISTEN, On.EMPTIED): Cell("listen_anew", State.LISTEN),
    (State.LISTEN, On.STOPPED): Cell("rest", State.OFFLINE),
    (State.JOIN, On.INFORMED): Cell("catch_up", State.CATCHUP),
    (State.JOIN, On.TIMER): Cell("listen_again", State.LISTEN),
    (State.JOIN, On.FAILED): Cell("listen_again", State.LISTEN),
    (State.JOIN, On.BARRED): Cell("rest", State.READ_ONLY),
    (State.JOIN, On.EMPTIED): Cell("listen_anew", State.LISTEN),
    (State.JOIN, On.STOPPED): Cell("rest", State.OFFLINE),
    (State.RESTORED, On.AUTHORITY): Cell("compare", State.CATCHUP),
    (State.RESTORED, On.TIMER): Cell("go_on_alone", State.MEMBER),
    (State.RESTORED, On.OVERTAKEN): Cell("catch_up", State.CATCHUP),
    (State.RESTORED, On.BARRED): Cell("rest", State.READ_ONLY),
    (State.RESTORED, On.EMPTIED): Cell("listen_anew", State.LISTEN),
    (State.RESTORED, On.STOPPED): Cell("rest", State.OFFLINE),
    (State.CATCHUP, On.COMPLETE): Cell("become_member", State.MEMBER),
    (State.CATCHUP, On.UNCONFIRMED): Cell("rest", State.READ_ONLY),
    (State.CATCHUP, On.BARRED): Cell("rest", State.READ_ONLY),
    (State.CATCHUP, On.EMPTIED): Cell("listen_anew", State.LISTEN),
    (State.CATCHUP, On.STOPPED): Cell("rest", State.OFFLINE),
    (State.MEMBER, On.OVERTAKEN): Cell("catch_up", State.CATCHUP),
    (State.MEMBER, On.BARRED): Cell("rest", State.READ_ONLY),
    (State.MEMBER, On.EMPTIED): Cell("listen_anew", State.LISTEN),
    (State.MEMBER, On.STOPPED): Cell("rest", State.OFFLINE),
    (State.READ_ONLY, On.ACCEPTED): Cell("catch_up", State.CATCHUP),
    (State.READ_ONLY, On.FREED): Cell("listen", State.LISTEN),
    (State.READ_ONLY, On.EMPTIED): Cell("listen_anew", State.LISTEN),
    (State.READ_ONLY, On.STOPPED): Cell("rest", State.OFFLINE),
}
