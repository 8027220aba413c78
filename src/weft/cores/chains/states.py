"""The states of a batch on its way down a chain, and of a client's link (CHN-010 to CHN-019).

A batch goes from filter to filter in the order of their keys; each answers at once with a verdict. At the end of the
chain the batch is passed on, as the same object if nothing has changed it.

A client that rewrites or confirms holds messages for a while: at most one window of them; more messages wait in line. A
link that misses five deadlines in a row is bypassed for 30 s, and then tried with one message. An answer for a message
that the link does not hold never gets here: it is refused before (CHN-017).
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    WALKING = "between two links"
    DELIVERED = "past the last link"
    DELETED = "a filter has taken everything out"
    REFUSED = "a filter whose `on_error` is `fail` has failed"


class Verdict(TableKey):
    PASSED = "unchanged"
    CHANGED = "some of it is left, or is another"
    DROPPED = "nothing is left"
    FAILED = "the filter cannot judge it, and may not let it pass"
    BOTTOM = "there is no further link"


class LinkState(TableKey):
    OPEN = "messages are offered as they come"
    FULL = "as many are offered as the window allows; more wait in line"
    SICK = "five deadlines in a row were missed: bypassed"
    PROBING = "bypassed, but for one message that shows whether it answers again"
    GONE = "the client has left the chain, or was lost"


class On(TableKey):
    ARRIVED = "a message, and there is room for another behind it"
    FILLED = "a message, and with it the window is full"
    RESTED = "a message, 30 s or more after the last missed deadline"
    ANSWERED = "a message is handed back, deleted, failed or confirmed"
    DRAINED = "nobody waits in line any more, and there is room"
    MISSED = "a deadline has passed"
    SICKENED = "a deadline has passed, the fifth in a row"
    LEFT = "the client leaves the chain, or is lost"


class Cell(NamedTuple):
    do: str  # a method of batches.Batches
    then: State


class LinkCell(NamedTuple):
    do: str  # a method of holding.Holding
    then: LinkState


TABLE: Final[dict[tuple[State, Verdict], Cell]] = {
    (State.WALKING, Verdict.PASSED): Cell("walk_on", State.WALKING),
    (State.WALKING, Verdict.CHANGED): Cell("tell_drops", State.WALKING),
    (State.WALKING, Verdict.DROPPED): Cell("tell_drops", State.DELETED),
    (State.WALKING, Verdict.FAILED): Cell("tell_refusal", State.REFUSED),
    (State.WALKING, Verdict.BOTTOM): Cell("deliver", State.DELIVERED),
}

LINK_TABLE: Final[dict[tuple[LinkState, On], LinkCell]] = {
    (LinkState.OPEN, On.ARRIVED): LinkCell("offer", LinkState.OPEN),
    (LinkState.OPEN, On.FILLED): LinkCell("offer", LinkState.FULL),
    (LinkState.OPEN, On.ANSWERED): LinkCell("resolve", LinkState.OPEN),
    (LinkState.OPEN, On.MISSED): LinkCell("give_up", LinkState.OPEN),
    (LinkState.OPEN, On.SICKENED): LinkCell("sicken", LinkState.SICK),
    (LinkState.OPEN, On.LEFT): LinkCell("let_go", LinkState.GONE),
    (LinkState.FULL, On.ARRIVED): LinkCell("line_up", LinkState.FULL),
    (LinkState.FULL, On.ANSWERED): LinkCell("resolve", LinkState.FULL),
    (LinkState.FULL, On.DRAINED): LinkCell("take_more", LinkState.OPEN),
    (LinkState.FULL, On.MISSED): LinkCell("give_up", LinkState.FULL),
    (LinkState.FULL, On.SICKENED): LinkCell("sicken", LinkState.SICK),
    (LinkState.FULL, On.LEFT): LinkCell("let_go", LinkState.GONE),
    (LinkState.SICK, On.ARRIVED): LinkCell("bypass", LinkState.SICK),
    (LinkState.SICK, On.RESTED): LinkCell("offer", LinkState.PROBING),
    (LinkState.SICK, On.ANSWERED): LinkCell("resolve", LinkState.SICK),
    (LinkState.SICK, On.MISSED): LinkCell("give_up", LinkState.SICK),
    (LinkState.SICK, On.LEFT): LinkCell("let_go", LinkState.GONE),
    (LinkState.PROBING, On.ARRIVED): LinkCell("bypass", LinkState.PROBING),
    (LinkState.PROBING, On.ANSWERED): LinkCell("recover", LinkState.OPEN),
    (LinkState.PROBING, On.MISSED): LinkCell("give_up", LinkState.SICK),
    (LinkState.PROBING, On.LEFT): LinkCell("let_go", LinkState.GONE),
}
"""Without a row: any input for a link that is gone."""
