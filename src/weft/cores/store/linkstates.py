"""The states of a link that a store node dials.

A node is reported; an answered hello makes the link carry messages. Silence or a goodbye ends that, and the link is
tried again. A node that refuses us is left alone for a minute.
"""

from typing import Final, NamedTuple

import msgspec

from weft.base.tablekeys import TableKey


class LinkState(TableKey):
    NEW = "known, not called yet"
    GREET = "hello was said and not answered yet"
    UP = "carries messages"
    DOWN = "carried messages, and went silent"
    REFUSED = "one of both does not want the other"


class On(TableKey):
    DUE = "it is time, and it was heard lately"
    SILENCE = "it is time, and nothing was heard for three seconds"
    GREETED = "it says hello"
    BYE = "it says goodbye, or does not know this node any more"
    REFUSED = "another fabric, or a name that is taken"


class Cell(NamedTuple):
    do: str  # a method of cores.store.mesh.Mesh
    then: LinkState


TABLE: Final[dict[tuple[LinkState, On], Cell]] = {
    (LinkState.NEW, On.DUE): Cell("greet", LinkState.GREET),
    (LinkState.NEW, On.SILENCE): Cell("greet", LinkState.GREET),
    (LinkState.NEW, On.GREETED): Cell("join", LinkState.UP),
    (LinkState.NEW, On.REFUSED): Cell("keep_off", LinkState.REFUSED),
    (LinkState.GREET, On.DUE): Cell("greet", LinkState.GREET),
    (LinkState.GREET, On.SILENCE): Cell("greet", LinkState.GREET),
    (LinkState.GREET, On.GREETED): Cell("join", LinkState.UP),
    (LinkState.GREET, On.REFUSED): Cell("keep_off", LinkState.REFUSED),
    (LinkState.UP, On.DUE): Cell("beat", LinkState.UP),
    (LinkState.UP, On.SILENCE): Cell("part", LinkState.DOWN),
    (LinkState.UP, On.GREETED): Cell("rejoin", LinkState.UP),
    (LinkState.UP, On.BYE): Cell("part", LinkState.DOWN),
    (LinkState.UP, On.REFUSED): Cell("keep_off", LinkState.REFUSED),
    (LinkState.DOWN, On.DUE): Cell("greet", LinkState.GREET),
    (LinkState.DOWN, On.SILENCE): Cell("greet", LinkState.GREET),
    (LinkState.DOWN, On.GREETED): Cell("join", LinkState.UP),
    (LinkState.DOWN, On.REFUSED): Cell("keep_off", LinkState.REFUSED),
    (LinkState.REFUSED, On.DUE): Cell("greet", LinkState.GREET),
    (LinkState.REFUSED, On.SILENCE): Cell("greet", LinkState.GREET),
}
"""A state and input without a row changes nothing."""


class Peer(msgspec.Struct):
    """A link that this node dials, by its endpoint."""

    endpoint: str
    is_configured: bool = False
    """Named in the file: never dropped."""
    state: LinkState = LinkState.NEW
    node: str = ""
    boot: int = 0
    heard_at: int = 0
    due_at: int = 0
    """When to send the next greeting, beat, or attempt."""
    tries: int = 0
    has_news: bool = False
    """Whether it is told with the next beat which nodes this one knows."""
    has_refused_name: bool = False
    """It knew another live node of this node's name, when it was asked last."""


class Caller(msgspec.Struct):
    """A node that dialled us, by its routing id."""

    node: str
    boot: int
    endpoint: str
    heard_at: int
    doubted_by: tuple[int, str] = (0, "")
    """Boot and endpoint of a newer start of its name that greeted from elsewhere last; 0: none did."""
    doubted_at: int = 0
    """When that greeted first."""
