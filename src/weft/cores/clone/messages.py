"""Orders and events of the clone core."""

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
    """The `[chp]` section of a node's configuration file."""

    serves: bool = False
    """Whether it opens ports for clients."""
    writable: tuple[str, ...] = ()
    """Prefixes, or exact keys, that clients may write (CFG-063)."""
    loose_prefix: str = ""
    """Prefix for keys that do not begin with a slash; empty: such keys are refused."""
    source: str = ""
    """`host:port` of the snapshot port of the server to follow; empty: none."""
    prefix: str = ""
    """Prefix under which the server's pairs are written."""


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """One requested write."""

    key: str
    value: bytes
    """Empty: delete."""
    ttl_s: float | None = None


# Orders


class TakeRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is now the root: serve clients, and follow the configured server. `acting`: only serve."""

    is_acting: bool = False


class StepDown(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is no longer the root: stop serving, so that clients turn to another server."""


class LearnPairs(msgspec.Struct, frozen=True, gc=False):
    """Order: these pairs have changed durably; None: deleted. The first such order carries the whole configuration."""

    pairs: tuple[tuple[str, bytes | None], ...]
    number: int
    """Highest number of the configuration."""
    numbers: tuple[int, ...] = ()
    """Number of each pair, in the same order; empty: all have `number`."""


class WritesDone(msgspec.Struct, frozen=True, gc=False):
    """Order: the answer to a WritesWanted; `code`: 0 for success, else the reason (CFG-007)."""

    ticket: int
    code: int = 0


# Events


class WritesWanted(msgspec.Struct, frozen=True, gc=False):
    """Event: a client or the followed server wants these writes, all or none; `WritesDone` answers."""

    ticket: int
    writes: tuple[Wanted, ...]


class ServerFollowed(msgspec.Struct, frozen=True, gc=False):
    """Event: the snapshot of the Clone server was adopted; updates follow."""

    endpoint: str
    number: int
    pairs: int


class ServerLost(msgspec.Struct, frozen=True, gc=False):
    """Event: the Clone server is silent or sends no snapshot; it is asked repeatedly."""

    endpoint: str
    why: str


class KeyRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a key of the Clone server is not valid here and was skipped; told for the 1st, 2nd, 4th, 8th ..."""

    key: str
    why: str
    count: int


class WriteRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: the configuration refused a write; told for the 1st, 2nd, 4th, 8th ..."""

    key: str
    """First key of the writes that were refused together."""
    code: int
    """Code of the WTF message (CFG-007)."""
    count: int
