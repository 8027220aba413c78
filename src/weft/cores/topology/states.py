"""When a node may do what in the tree.

**Neighbours.** The root needs no parent. A parent given as `host:port` is known at once; one given by name is known
when its beacon is heard. A beacon is a hint (FLD-010): a beacon with another endpoint moves a node only while its
parent does not answer, and one with this node's own name only makes it ask. The node ends when an older live node
confirms over a link that it has this name, and the link proves who answers or does not leave this machine.

**Member.** A node whose file names no parent waits for the call of a root (MARCO), answers (POLO), and takes the place
that it is assigned. If it knows a node to ask, it asks without waiting for a call, and never gives up. Once it has a
place it keeps working in any case; a new root, or a silent parent, only makes it ask again.

**Election.** When the root is silent, first-level collectors vote. A promise is durable before the vote is sent, there
is one per epoch, and it goes only to a candidate that has at least as much as the voter. So at most one node is root of
an epoch, and it has every write that a majority had. Without a majority a candidate only acts: it serves what is known,
and writes nothing.

A state and input without a row: ignored. An ended node ignores everything; a member ignores roots while it leads
itself.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    SEEKING = "the parent's beacon has not been heard yet"
    SETTLED = "the parent's endpoint is known, or none is needed"
    ENDED = "another node had this name, or the node is stopping"


class On(TableKey):
    PARENT_HEARD = "a beacon of the parent's name"
    TWIN_OLDER = "a beacon of our own name, from a node that says it started before us"
    TWIN_PROVED = "an older node has said over a proved link, or on this machine, that it has our name"
    TWIN_NEWER = "a beacon of our own name, from a node that started after us"
    OTHER_HEARD = "any other beacon of this fleet"
    LEFT = "a beacon with port 0"
    STOPPED = "the order to stop"


class Cell(NamedTuple):
    do: str  # a method of beaconing.Beaconing
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.SEEKING, On.PARENT_HEARD): Cell("settle", State.SETTLED),
    (State.SETTLED, On.PARENT_HEARD): Cell("follow", State.SETTLED),
    (State.SEEKING, On.TWIN_OLDER): Cell("ask_twin", State.SEEKING),
    (State.SETTLED, On.TWIN_OLDER): Cell("ask_twin", State.SETTLED),
    (State.SEEKING, On.TWIN_PROVED): Cell("give_way", State.ENDED),
    (State.SETTLED, On.TWIN_PROVED): Cell("give_way", State.ENDED),
    (State.SEEKING, On.TWIN_NEWER): Cell("speak_up", State.SEEKING),
    (State.SETTLED, On.TWIN_NEWER): Cell("speak_up", State.SETTLED),
    (State.SEEKING, On.OTHER_HEARD): Cell("note", State.SEEKING),
    (State.SETTLED, On.OTHER_HEARD): Cell("note", State.SETTLED),
    (State.SEEKING, On.LEFT): Cell("forget", State.SEEKING),
    (State.SETTLED, On.LEFT): Cell("forget", State.SETTLED),
    (State.SEEKING, On.STOPPED): Cell("leave", State.ENDED),
    (State.SETTLED, On.STOPPED): Cell("leave", State.ENDED),
}


class Standing(TableKey):
    """States of a member."""

    BASE = "no place, and no question asked; perhaps a pause before the next"
    CALLED = "POLO said, the answer has not come"
    JOINED = "a place in the tree"


class Hears(TableKey):
    """Inputs of a member, classified by what it knows."""

    CALL = "a MARCO or GROUP to answer; a root's beacon; the end of a pause"
    BETTER = "a MARCO of another root, of a higher epoch than the one asked"
    STALE = "a MARCO of a lower epoch than the own"
    ASSIGNED = "an assignment"
    STOPPED = "stop"
    REFUSED = "WTF, but for those below"
    REFERRED = "WTF 12 with the endpoint of a root"
    UNKNOWN = "WTF 4 or 10: no record of this node, no group that wants it"
    NOTHING = "no answer in time"


class Step(NamedTuple):
    do: str  # a method of member.Member
    then: Standing


MEMBER_TABLE: Final[dict[tuple[Standing, Hears], Step]] = {
    (Standing.BASE, Hears.CALL): Step("polo", Standing.CALLED),
    (Standing.CALLED, Hears.BETTER): Step("polo", Standing.CALLED),
    (Standing.CALLED, Hears.ASSIGNED): Step("take_place", Standing.JOINED),
    (Standing.CALLED, Hears.STOPPED): Step("rest", Standing.BASE),
    (Standing.CALLED, Hears.REFUSED): Step("back_off", Standing.BASE),
    (Standing.CALLED, Hears.UNKNOWN): Step("back_off", Standing.BASE),
    (Standing.CALLED, Hears.REFERRED): Step("ask_there", Standing.CALLED),
    (Standing.CALLED, Hears.NOTHING): Step("back_off", Standing.BASE),
    (Standing.JOINED, Hears.CALL): Step("polo", Standing.JOINED),
    (Standing.JOINED, Hears.BETTER): Step("polo", Standing.JOINED),
    (Standing.JOINED, Hears.STALE): Step("warn", Standing.JOINED),
    (Standing.JOINED, Hears.ASSIGNED): Step("take_place", Standing.JOINED),
    (Standing.JOINED, Hears.STOPPED): Step("leave_place", Standing.BASE),
    (Standing.JOINED, Hears.REFUSED): Step("ask_later", Standing.JOINED),
    (Standing.JOINED, Hears.REFERRED): Step("ask_there", Standing.JOINED),
    (Standing.JOINED, Hears.UNKNOWN): Step("lose_place", Standing.BASE),
    (Standing.JOINED, Hears.NOTHING): Step("ask_later", Standing.JOINED),
}


class Role(TableKey):
    """States of a node in the election of a root."""

    FOLLOW = "somebody else is the root, or nobody known"
    STARTING = "root by its file or its journal; waits for who knows better"
    CALLING = "asks the voters for their votes"
    WAITING = "somebody better is there"
    ROOT = "root of its epoch"
    ACTING = "in the root's stead, without a majority: writes nothing"


class Event(TableKey):
    """Inputs of a voter or candidate, classified by what it knows."""

    BORN = "the start of a node that is the root by its file or its journal"
    SILENT = "the root is silent for D, and this node is a voter"
    HEARD = "the root speaks again"
    BETTER = "wutup of a higher rank, and the vote is free"
    WORSE = "wutup of a lower rank while the root is silent"
    DENIED = "wutup while the root is heard, or the vote is promised elsewhere"
    MAJORITY = "votes of a majority"
    YO = "a better one is there"
    PROMISED = "a vote is promised elsewhere"
    ALIVE = "a voter hears the root"
    DUE = "the time to wait is over"
    BEHIND = "the time to wait is over, and somebody holds more than this root without its disk"
    UNSURE = "part of the journal of a root is lost, and no first-level collector has shown that it holds the same"
    EXHAUSTED = "the last call had no majority"
    ALONE = "the last call had no majority, and two voters need none by the settings"
    CROWNED = "a root of a higher epoch"


class Turn(NamedTuple):
    do: str  # a method of election.Election
    then: Role


ELECTION_TABLE: Final[dict[tuple[Role, Event], Turn]] = {
    (Role.FOLLOW, Event.BORN): Turn("begin", Role.STARTING),
    (Role.FOLLOW, Event.SILENT): Turn("call", Role.CALLING),
    (Role.FOLLOW, Event.HEARD): Turn("calm", Role.FOLLOW),
    (Role.FOLLOW, Event.BETTER): Turn("vote", Role.FOLLOW),
    (Role.FOLLOW, Event.WORSE): Turn("outbid", Role.CALLING),
    (Role.FOLLOW, Event.DENIED): Turn("refuse_vote", Role.FOLLOW),
    (Role.STARTING, Event.DENIED): Turn("refuse_vote", Role.STARTING),
    (Role.STARTING, Event.BEHIND): Turn("fetch", Role.STARTING),
    (Role.STARTING, Event.UNSURE): Turn("begin", Role.STARTING),
    (Role.STARTING, Event.DUE): Turn("ascend", Role.ROOT),
    (Role.STARTING, Event.CROWNED): Turn("give_up", Role.FOLLOW),
    (Role.CALLING, Event.SILENT): Turn("call_on", Role.CALLING),
    (Role.CALLING, Event.HEARD): Turn("calm", Role.FOLLOW),
    (Role.CALLING, Event.BETTER): Turn("vote", Role.FOLLOW),
    (Role.CALLING, Event.WORSE): Turn("say_yo", Role.CALLING),
    (Role.CALLING, Event.DENIED): Turn("refuse_vote", Role.CALLING),
    (Role.CALLING, Event.MAJORITY): Turn("win", Role.ROOT),
    (Role.CALLING, Event.YO): Turn("wait", Role.WAITING),
    (Role.CALLING, Event.PROMISED): Turn("raise_bid", Role.CALLING),
    (Role.CALLING, Event.ALIVE): Turn("calm", Role.FOLLOW),
    (Role.CALLING, Event.DUE): Turn("call", Role.CALLING),
    (Role.CALLING, Event.EXHAUSTED): Turn("act", Role.ACTING),
    (Role.CALLING, Event.ALONE): Turn("win", Role.ROOT),
    (Role.CALLING, Event.CROWNED): Turn("submit", Role.FOLLOW),
    (Role.WAITING, Event.HEARD): Turn("calm", Role.FOLLOW),
    (Role.WAITING, Event.BETTER): Turn("vote", Role.FOLLOW),
    (Role.WAITING, Event.WORSE): Turn("say_yo", Role.WAITING),
    (Role.WAITING, Event.DENIED): Turn("refuse_vote", Role.WAITING),
    (Role.WAITING, Event.DUE): Turn("call", Role.CALLING),
    (Role.WAITING, Event.CROWNED): Turn("submit", Role.FOLLOW),
    (Role.ROOT, Event.DENIED): Turn("refuse_vote", Role.ROOT),
    (Role.ROOT, Event.CROWNED): Turn("submit", Role.FOLLOW),
    (Role.ACTING, Event.BETTER): Turn("vote", Role.ACTING),
    (Role.ACTING, Event.WORSE): Turn("outbid", Role.ACTING),
    (Role.ACTING, Event.DENIED): Turn("refuse_vote", Role.ACTING),
    (Role.ACTING, Event.MAJORITY): Turn("win", Role.ROOT),
    (Role.ACTING, Event.PROMISED): Turn("raise_bid", Role.ACTING),
    (Role.ACTING, Event.YO): Turn("calm", Role.ACTING),
    (Role.ACTING, Event.DUE): Turn("call", Role.ACTING),
    (Role.ACTING, Event.EXHAUSTED): Turn("rest", Role.ACTING),
    (Role.ACTING, Event.ALONE): Turn("win", Role.ROOT),
    (Role.ACTING, Event.CROWNED): Turn("submit", Role.FOLLOW),
}
