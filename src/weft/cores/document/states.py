"""How far this node has come with another node of its session (PEE-010).

Each node sends over a socket of its own, so both must state where they listen: HELO does that, and is the first message
of both. BOUT states the session; two nodes become peers only after equal ones. A HELO, or a BOUT, that comes while ours
is unanswered *is* the answer; any other is answered, at most once a second, so two nodes never answer each other for
ever.

A peer that is silent for too long, or says goodbye, is gone and is called again for a while; a node of another session
is dropped, and not called for a minute. An input without a row is counted (`mesh.rx.before_helo`), and has no other
effect.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    UNKNOWN = "never met, or forgotten"
    CALLING = "HELO said, and no HELO heard yet"
    GREETED = "both have said HELO; its BOUT has not come"
    ACTIVE = "a peer: of the same session"
    GONE = "was there, and is silent or has said goodbye; its link is dropped"


class On(TableKey):
    MET = "an endpoint to call: of a person, of mDNS, of a PEER"
    HELO = "its HELO"
    BOUT = "its BOUT, equal to ours"
    OTHER_BOUT = "its BOUT, of another session"
    GOSSIP = "its GSIP"
    SAID = "its PEER, CHAT, BEAT, TIME or XMSG"
    GBYE = "its goodbye"
    DUE = "time to say it again: HELO or BOUT that is not answered, or BEAT"
    SILENT = "nothing heard from it for ten seconds"
    LOST = "nothing heard for thirty, or the link takes no more"
    EXPIRED = "called in vain for ten minutes after it was gone, and no person has named it"


class Cell(NamedTuple):
    do: str  # a method of mesh.Mesh
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.UNKNOWN, On.MET): Cell("call", State.CALLING),
    (State.UNKNOWN, On.HELO): Cell("welcome", State.GREETED),
    (State.CALLING, On.HELO): Cell("greet_back", State.GREETED),
    (State.CALLING, On.DUE): Cell("call", State.CALLING),
    (State.CALLING, On.LOST): Cell("lose", State.GONE),
    (State.CALLING, On.EXPIRED): Cell("forget", State.UNKNOWN),
    (State.GREETED, On.HELO): Cell("answer_helo", State.GREETED),
    (State.GREETED, On.BOUT): Cell("join", State.ACTIVE),
    (State.GREETED, On.OTHER_BOUT): Cell("refuse", State.UNKNOWN),
    (State.GREETED, On.GOSSIP): Cell("hold", State.GREETED),
    (State.GREETED, On.SAID): Cell("overhear", State.GREETED),
    (State.GREETED, On.GBYE): Cell("part", State.GONE),
    (State.GREETED, On.DUE): Cell("repeat_bout", State.GREETED),
    (State.GREETED, On.LOST): Cell("lose", State.GONE),
    (State.ACTIVE, On.HELO): Cell("answer_helo", State.ACTIVE),
    (State.ACTIVE, On.BOUT): Cell("answer_bout", State.ACTIVE),
    (State.ACTIVE, On.OTHER_BOUT): Cell("refuse", State.UNKNOWN),
    (State.ACTIVE, On.GOSSIP): Cell("pass_on", State.ACTIVE),
    (State.ACTIVE, On.SAID): Cell("pass_on", State.ACTIVE),
    (State.ACTIVE, On.GBYE): Cell("part", State.GONE),
    (State.ACTIVE, On.DUE): Cell("beat", State.ACTIVE),
    (State.ACTIVE, On.SILENT): Cell("nudge", State.ACTIVE),
    (State.ACTIVE, On.LOST): Cell("lose", State.GONE),
    (State.GONE, On.HELO): Cell("welcome", State.GREETED),
    (State.GONE, On.DUE): Cell("call", State.CALLING),
    (State.GONE, On.EXPIRED): Cell("forget", State.UNKNOWN),
}
