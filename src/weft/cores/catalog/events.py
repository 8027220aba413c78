"""The second frame of an event (CAT-040, CAT-042), and one change as `dbp.changes` lists it."""

from typing import Final

import msgspec

VERSION: Final = 1
CATALOG: Final = "catalog/"
TICK: Final = "tick"


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The event of a change: on `catalog/` per name, on `watch/` per topic."""

    v: int
    epoch: str
    index: int
    prev: int
    """Index of the preceding event of the same name or topic; 0: none."""
    op: str
    name: str
    instance: str
    ts: float
    """Unix seconds of the broker; nothing is decided by it."""
    reason: str = ""


class Tick(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The event of a tick."""

    v: int
    epoch: str
    index: int
    """Index of the last change of any instance."""
    op: str
    ts: float
    last: int | None = None
    """On a filter's topic: the index of its last event."""


class Kept(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A change in an answer of `dbp.changes`."""

    index: int
    prev: int
    """Index of the preceding event of the same name, as on `catalog/`."""
    op: str
    name: str
    instance: str
    ts: float
    record: msgspec.Raw
    """`null` on `remove`."""
    reason: str = ""


class Heard(msgspec.Struct, frozen=True, gc=False):
    """Event or tick, as a watcher decodes it; unknown keys are ignored."""

    epoch: str
    index: int
    op: str
    prev: int = 0
    name: str = ""
    instance: str = ""
    ts: float = 0.0
    last: int | None = None
    reason: str = ""


encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(Heard).decode


def topic_of(name: str, instance: str) -> bytes:
    r"""Where the changes of an instance are published.

    >>> topic_of("thermo", "t1")
    b'catalog/thermo\x00t1'
    """
    return f"{CATALOG}{name}\0{instance}".encode()
