"""When an end considers the other one present.

Any message makes it PRESENT; silence for the whole limit makes it ABSENT. An end that rests does not watch, so the
other one is ABSENT until a message comes.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    ABSENT = "nothing heard for the silence limit, or never"
    PRESENT = "heard within the silence limit"


class On(TableKey):
    PING = "the other end calls"
    PONG = "the other end answers a call of ours"
    SILENCE = "the silence limit has passed"
    RESTED = "the order to rest"


class Cell(NamedTuple):
    do: str  # a method of core.Template
    then: State


TABLE: Final[dict[tuple[State, On], Cell]] = {
    (State.ABSENT, On.PING): Cell("meet_and_answer", State.PRESENT),
    (State.ABSENT, On.PONG): Cell("meet", State.PRESENT),
    (State.ABSENT, On.RESTED): Cell("rest", State.ABSENT),
    (State.PRESENT, On.PING): Cell("answer", State.PRESENT),
    (State.PRESENT, On.PONG): Cell("hear", State.PRESENT),
    (State.PRESENT, On.SILENCE): Cell("miss", State.ABSENT),
    (State.PRESENT, On.RESTED): Cell("rest", State.ABSENT),
}
"""A pair of state and input without a row cannot happen: an absent end is not missed a second time."""
