"""The states of a bridge to another broker, and what each message does (BRI-003).

The side that dials greets first; the listening side answers the greeting. Both then send everything they export, and
the link is up when the snapshot of the other side is complete. A second greeting on a link asks for the snapshot again.
After three seconds of silence, a refusal or a goodbye the link is down: its entries are unreachable, and the dialling
side tries again later. So it is after a message that was altered on the way: nobody knows what it said, so both begin anew.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class Bridge(TableKey):
    DOWN = "nobody is there; the dialler tries again when it is time"
    GREETING = "greeted, and not answered yet"
    SYNCING = "both have greeted; the other's snapshot is not whole yet"
    UP = "both have what the other exports"


class Word(TableKey):
    DUE = "it is time to dial again"
    GREETED = "a greeting of another network"
    WHOLE = "the last part of a snapshot"
    LOST = "a gap in what was said, or another run of the same broker"
    ENDED = "silence, a refusal or a goodbye, or something that was altered on the way"


class Cell(NamedTuple):
    do: str  # a method of bridges.Bridges
    then: Bridge


TABLE: Final[dict[tuple[Bridge, Word], Cell]] = {
    (Bridge.DOWN, Word.DUE): Cell("greet", Bridge.GREETING),
    (Bridge.DOWN, Word.GREETED): Cell("answer_greeting", Bridge.SYNCING),
    (Bridge.GREETING, Word.GREETED): Cell("begin", Bridge.SYNCING),
    (Bridge.GREETING, Word.ENDED): Cell("let_go", Bridge.DOWN),
    (Bridge.SYNCING, Word.GREETED): Cell("say_all", Bridge.SYNCING),
    (Bridge.SYNCING, Word.WHOLE): Cell("join", Bridge.UP),
    (Bridge.SYNCING, Word.LOST): Cell("ask_again", Bridge.SYNCING),
    (Bridge.SYNCING, Word.ENDED): Cell("let_go", Bridge.DOWN),
    (Bridge.UP, Word.GREETED): Cell("say_all", Bridge.UP),
    (Bridge.UP, Word.WHOLE): Cell("stay", Bridge.UP),
    (Bridge.UP, Word.LOST): Cell("ask_again", Bridge.UP),
    (Bridge.UP, Word.ENDED): Cell("lose", Bridge.DOWN),
}
