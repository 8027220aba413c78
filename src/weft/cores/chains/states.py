"""What becomes of a message on its way down a chain (specs/05, 2.2, in its first form).

A message walks from link to link in the order of their keys. Each link answers at once with a verdict; a link that
lets a message wait, as a client may, will be one more verdict and one more state here. Whatever reaches the bottom is
passed on, and the same object if nothing has changed it.
"""

from enum import Enum
from typing import Final, NamedTuple


class State(Enum):
    WALKING = "between two links"
    DELIVERED = "past the last link"
    DELETED = "a filter has taken everything out"
    REFUSED = "a filter whose `on_error` is `fail` has failed"


class Verdict(Enum):
    PASSED = "unchanged"
    CHANGED = "some of it is left, or is another"
    DROPPED = "nothing is left"
    FAILED = "the filter cannot judge it, and may not let it pass"
    BOTTOM = "there is no further link"


class Cell(NamedTuple):
    do: str  # a method of core.Chains
    then: State


TABLE: Final[dict[tuple[State, Verdict], Cell]] = {
    (State.WALKING, Verdict.PASSED): Cell("walk_on", State.WALKING),
    (State.WALKING, Verdict.CHANGED): Cell("tell_drops", State.WALKING),
    (State.WALKING, Verdict.DROPPED): Cell("tell_drops", State.DELETED),
    (State.WALKING, Verdict.FAILED): Cell("tell_refusal", State.REFUSED),
    (State.WALKING, Verdict.BOTTOM): Cell("deliver", State.DELIVERED),
}
