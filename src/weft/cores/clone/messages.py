"""What the clone core hears and says."""

import msgspec

from weft.wire.chp import KvPub, KvSet, KvSync
from weft.wire.replication import Hugz, ICanHaz, KThxBai

__all__ = [
    "CloneSettings",
    "Hugz",
    "ICanHaz",
    "KThxBai",
    "KeyRefused",
    "KvPub",
    "KvSet",
    "KvSync",
    "LearnPairs",
    "ServerFollowed",
    "ServerLost",
    "StepDown",
    "TakeRoot",
    "Wanted",
    "WriteRefused",
    "WritesDone",
    "WritesWanted",
]


class CloneSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `[chp]` of a node's file says."""

    serves: bool = False
    """Whether it has ports for clients."""
    writable: tuple[str, ...] = ()
    """Prefixes, or exact keys, that clients may write (CFG-063)."""
    loose_prefix: str = ""
    """Where keys stand that do not begin with a slash; empty: they are refused."""
    source: str = ""
    """`host:port` of the snapshots of the server to follow; empty: none."""
    prefix: str = ""
    """Where its pairs stand here."""


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """One write that is wanted."""

    key: str
    value: bytes
    """Empty: delete."""
    ttl_s: float | None = None


# Orders


class TakeRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is the root: serve, and follow if there is whom; acting: only serve."""

    is_acting: bool = False


class StepDown(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is the root no longer: be mute, so that clients turn to another server."""


class LearnPairs(msgspec.Struct, frozen=True, gc=False):
    """Order: these pairs are durably others; None: deleted. What is heard here first is the whole configuration."""

    pairs: tuple[tuple[str, bytes | None], ...]
    number: int
    """Highest number there is."""
    numbers: tuple[int, ...] = ()
    """Of the pairs, in the same order; none: `number` for all."""


class WritesDone(msgspec.Struct, frozen=True, gc=False):
    """Order: the configuration has written what this core wanted; `code`: 0, or why not (CFG-007)."""

    ticket: int
    code: int = 0


# Events


class WritesWanted(msgspec.Struct, frozen=True, gc=False):
    """Event: a client, or the server that is followed, wants this written, all or none; `WritesDone` answers."""

    ticket: int
    writes: tuple[Wanted, ...]


class ServerFollowed(msgspec.Struct, frozen=True, gc=False):
    """Event: the snapshot of the Clone server is taken over; its updates follow."""

    endpoint: str
    number: int
    pairs: int


class ServerLost(msgspec.Struct, frozen=True, gc=False):
    """Event: the Clone server is silent, or gives no snapshot; it is asked again and again."""

    endpoint: str
    why: str


class KeyRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a key of the Clone server can be none here, so it is left out; told for the 1st, 2nd, 4th, 8th ..."""

    key: str
    why: str
    count: int


class WriteRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: the configuration did not take a write; told for the 1st, 2nd, 4th, 8th ..."""

    key: str
    """The first one of those that belong together."""
    code: int
    """Of WTF (CFG-007)."""
    count: int
