"""The states of an instance, and of a connection (CAT-020).

An instance is ACTIVE while it is heard, SUSPECT once it was silent for one and a half of its intervals, INACTIVE once
it was silent for its whole liveness, or said goodbye. A message counts as its own if it comes from the same owner or an
administrator. An input in a state without a row here is dropped and counted, and changes nothing.

A connection is a DEALER and its routing id. It is NEW until an instance speaks through it, BOUND from then on, and
CLOSED after either end has sent `</3`: from then on nothing is sent to it. A peer that sends too many malformed
messages is IGNORED for a minute, whatever its socket. Peers that are no DEALER have no connection: each is treated as
NEW, always.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    NONE = "not registered, or removed"
    ACTIVE = "heard within one and a half of its intervals"
    SUSPECT = "silent for longer: asked whether it is there"
    INACTIVE = "silent for its whole liveness, or left; shown to nobody who looks for it"


class On(TableKey):
    REGISTERED = "a registration, new or own"
    CLAIMED = "a registration of another owner"
    UPDATED = "an own update"
    MEDDLED = "an update of another owner"
    BEAT = "an own beat, or any other valid command of its owner"
    PROBED = "an answer to a probe"
    AFTERWARDS = "a beat, an answer or a goodbye of one that has left, or whose name is somebody else's by now"
    SILENT = "nothing heard for one and a half of its intervals"
    OVERDUE = "nothing heard for its whole liveness"
    LEFT = "an own goodbye that can be trusted"
    GOODBYE = "a goodbye that anybody may have sent"
    REAPED = "it was away, or critical, for too long; or an administrator removes it"


class Link(TableKey):
    NEW = "a DEALER that has not registered"
    BOUND = "the connection of an instance"
    CLOSED = "told to disconnect, or gone: nothing more is said to it"
    IGNORED = "said too much that is no message"


class Heard(TableKey):
    REGISTERED = "a registration that can be accepted"
    ASKED = "what has an answer and opens nothing: a request, an update, a registration that is refused"
    BEAT = "`<3` of an own instance"
    STRAY = "`<3` of an instance that is unknown, or somebody else's"
    AWK = "`u.u`"
    LEFT = "`</3`"
    MISPLACED = "a command that no broker expects: `o_O`, `OwO`, `(O_O)`, `OmO`, a ping or a pong"
    FLOODED = "the twentieth thing within a minute that is no message"
    MINUTE = "a minute of being ignored is over"


class Cell(NamedTuple):
    do: str  # a method of registry.Registry
    then: State


class LinkCell(NamedTuple):
    do: str  # a method of serving.Serving
    then: Link


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.NONE, On.REGISTERED): Cell("add", State.ACTIVE),
    (State.NONE, On.UPDATED): Cell("deny_unknown", State.NONE),
    (State.NONE, On.REAPED): Cell("deny_unknown", State.NONE),
    (State.ACTIVE, On.REGISTERED): Cell("replace_if_changed", State.ACTIVE),
    (State.ACTIVE, On.CLAIMED): Cell("deny_taken", State.ACTIVE),
    (State.ACTIVE, On.UPDATED): Cell("merge", State.ACTIVE),
    (State.ACTIVE, On.MEDDLED): Cell("deny_foreign", State.ACTIVE),
    (State.ACTIVE, On.BEAT): Cell("refresh", State.ACTIVE),
    (State.ACTIVE, On.PROBED): Cell("refresh", State.ACTIVE),
    (State.ACTIVE, On.SILENT): Cell("suspect", State.SUSPECT),
    (State.ACTIVE, On.LEFT): Cell("end", State.INACTIVE),
    (State.ACTIVE, On.GOODBYE): Cell("suspect", State.SUSPECT),
    (State.ACTIVE, On.REAPED): Cell("forget", State.NONE),
    (State.SUSPECT, On.REGISTERED): Cell("replace", State.ACTIVE),
    (State.SUSPECT, On.CLAIMED): Cell("deny_taken", State.SUSPECT),
    (State.SUSPECT, On.UPDATED): Cell("merge_and_return", State.ACTIVE),
    (State.SUSPECT, On.MEDDLED): Cell("deny_foreign", State.SUSPECT),
    (State.SUSPECT, On.BEAT): Cell("come_back", State.ACTIVE),
    (State.SUSPECT, On.PROBED): Cell("come_back", State.ACTIVE),
    (State.SUSPECT, On.OVERDUE): Cell("end", State.INACTIVE),
    (State.SUSPECT, On.LEFT): Cell("end", State.INACTIVE),
    (State.SUSPECT, On.REAPED): Cell("forget", State.NONE),
    (State.INACTIVE, On.REGISTERED): Cell("replace", State.ACTIVE),
    (State.INACTIVE, On.CLAIMED): Cell("take_over", State.ACTIVE),
    (State.INACTIVE, On.UPDATED): Cell("return_merged", State.ACTIVE),
    (State.INACTIVE, On.MEDDLED): Cell("deny_foreign", State.INACTIVE),
    (State.INACTIVE, On.BEAT): Cell("come_back", State.ACTIVE),
    (State.INACTIVE, On.PROBED): Cell("come_back", State.ACTIVE),
    (State.INACTIVE, On.AFTERWARDS): Cell("stay_away", State.INACTIVE),
    (State.INACTIVE, On.LEFT): Cell("end", State.INACTIVE),
    (State.INACTIVE, On.REAPED): Cell("forget", State.NONE),
}

LINK_TABLE: Final[dict[tuple[Link, Heard], LinkCell]] = {
    (Link.NEW, Heard.REGISTERED): LinkCell("approve", Link.BOUND),
    (Link.NEW, Heard.ASKED): LinkCell("answer", Link.NEW),
    (Link.NEW, Heard.BEAT): LinkCell("acknowledge", Link.BOUND),
    (Link.NEW, Heard.STRAY): LinkCell("disconnect", Link.CLOSED),
    (Link.NEW, Heard.LEFT): LinkCell("part", Link.CLOSED),
    (Link.NEW, Heard.MISPLACED): LinkCell("disconnect", Link.CLOSED),
    (Link.NEW, Heard.FLOODED): LinkCell("ignore", Link.IGNORED),
    (Link.BOUND, Heard.REGISTERED): LinkCell("disconnect", Link.CLOSED),
    (Link.BOUND, Heard.ASKED): LinkCell("answer", Link.BOUND),
    (Link.BOUND, Heard.BEAT): LinkCell("acknowledge", Link.BOUND),
    (Link.BOUND, Heard.STRAY): LinkCell("disconnect", Link.CLOSED),
    (Link.BOUND, Heard.AWK): LinkCell("note", Link.BOUND),
    (Link.BOUND, Heard.LEFT): LinkCell("part", Link.CLOSED),
    (Link.BOUND, Heard.MISPLACED): LinkCell("disconnect", Link.CLOSED),
    (Link.BOUND, Heard.FLOODED): LinkCell("ignore", Link.IGNORED),
    (Link.IGNORED, Heard.MINUTE): LinkCell("pardon", Link.NEW),
}
