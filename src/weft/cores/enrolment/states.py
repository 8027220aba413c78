"""What an invitation still allows (SEC-022).

Only an OPEN one admits a new machine. A machine that has joined with it and asks again, because its WELCOME was lost,
is welcomed again, only with the same key. Five wrong proofs lock it: the owner of the token makes none. An ended
invitation never opens again; a new one costs one command.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    OPEN = "lets somebody in"
    USED = "as many have joined as may"
    LOCKED = "somebody knew its id, and not its secret"
    EXPIRED = "its time is over"
    REVOKED = "the operator took it back"


class On(TableKey):
    RIGHT = "a right JOIN of somebody new, whose binding is written; there may be more"
    LAST = "the same, and nobody else may join"
    AGAIN = "a right JOIN of who has joined by it, with the same key"
    WRONG = "a JOIN with a wrong proof"
    FIFTH = "the same for the fifth time"
    TIME = "its time is over"
    REVOKED = "the order to take it back"


class Cell(NamedTuple):
    do: str  # a method of invitations.Invitations
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.OPEN, On.RIGHT): Cell("admit", State.OPEN),
    (State.OPEN, On.LAST): Cell("admit", State.USED),
    (State.OPEN, On.AGAIN): Cell("admit_again", State.OPEN),
    (State.OPEN, On.WRONG): Cell("count_wrong", State.OPEN),
    (State.OPEN, On.FIFTH): Cell("lock", State.LOCKED),
    (State.OPEN, On.TIME): Cell("end", State.EXPIRED),
    (State.OPEN, On.REVOKED): Cell("end", State.REVOKED),
    (State.USED, On.RIGHT): Cell("refuse", State.USED),
    (State.USED, On.AGAIN): Cell("admit_again", State.USED),
    (State.USED, On.WRONG): Cell("refuse_proof", State.USED),
    (State.LOCKED, On.RIGHT): Cell("refuse", State.LOCKED),
    (State.LOCKED, On.AGAIN): Cell("refuse", State.LOCKED),
    (State.LOCKED, On.WRONG): Cell("refuse", State.LOCKED),
    (State.EXPIRED, On.RIGHT): Cell("refuse", State.EXPIRED),
    (State.EXPIRED, On.AGAIN): Cell("refuse", State.EXPIRED),
    (State.EXPIRED, On.WRONG): Cell("refuse", State.EXPIRED),
    (State.REVOKED, On.RIGHT): Cell("refuse", State.REVOKED),
    (State.REVOKED, On.AGAIN): Cell("refuse", State.REVOKED),
    (State.REVOKED, On.WRONG): Cell("refuse", State.REVOKED),
}
"""A state and input without a row changes nothing: an ended invitation neither expires nor can be withdrawn."""
