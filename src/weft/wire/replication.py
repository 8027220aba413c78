"""Configuration messages of the dialect `strict`: five frames each, except WTF (CFG-001).

update    = KVPUB / HUGZ                                 PUB +2 -> SUB
snap-sync = ICANHAZ ( ( *KVSYNC KTHXBAI ) / WTF )        DEALER or REQ -> ROUTER +3

message   0          1               2             3            4
ICANHAZ   "ICANHAZ"  empty           empty         empty        subtree
KVSYNC    key        number          empty         empty        value
KTHXBAI   "KTHXBAI"  number          empty         empty        subtree
KVPUB     key        number          root's UUID   properties   value, empty: deleted
HUGZ      "HUGZ"     8 zero bytes    empty         empty        empty
WTF       "WTF"      u32 code        text

number = epoch * 2**40 + counter, u64 in network order (CFG-003)

Strings are UTF-8 without length or terminator; JSON is sent canonical and received in any layout (CFG-002).
"""

from typing import Final

import msgspec

COUNTER_BITS: Final = 40
EPOCH_MAX: Final = (1 << 23) - 1
UNSPECIFIED, MALFORMED, UNKNOWN_COMMAND, NOT_AUTHORISED, UNKNOWN_NODE, BUSY, TOO_LARGE = range(7)
NOT_READY, WRONG_DIALECT, STALE_EPOCH, NO_GROUP, NO_QUORUM, NOT_ROOT = range(7, 13)
"""Codes of WTF (CFG-007)."""
TIP: Final = "/.tip"
CHAINS: Final = "/.chains"
"""Before a path: the last number there (CFG-019), the last write of each chain there (CFG-040)."""


class ICanHaz(msgspec.Struct, frozen=True, gc=False):
    """A child asks for all pairs of a subtree."""

    subtree: str
    is_bundle: bool = False
    """It wants one answer of many frames (CFG-013)."""
    dialect: str = "strict"
    """`chp`: asked in two frames; the answer takes the dialect of the request (CFG-014)."""


class KvSync(msgspec.Struct, frozen=True, gc=False):
    """One pair of a snapshot; its number orders nothing (CFG-039)."""

    key: str
    number: int
    value: bytes


class KThxBai(msgspec.Struct, frozen=True, gc=False):
    """The end of a snapshot. `number`: highest of any write there, deletions included (CFG-018)."""

    subtree: str | None
    """None: not said; belongs to the oldest open request (CFG-014)."""
    number: int


class Bundle(msgspec.Struct, frozen=True, gc=False):
    """A whole snapshot in one message (CFG-013)."""

    pairs: tuple[KvSync, ...]
    end: KThxBai


class KvPub(msgspec.Struct, frozen=True, gc=False):
    """One write of the root. The known properties are parsed; `raw` holds the frame as it came (CFG-006, CFG-040)."""

    key: str
    number: int
    uuid: bytes
    """Of the root that wrote it; empty if a foreign parent does not say."""
    value: bytes
    """Empty: deleted (CFG-005)."""
    prev: int | None = None
    """The write before in the same chain (CFG-017); None: a foreign parent does not say."""
    ttl: float | None = None
    is_more: bool = False
    """More writes that belong together follow (CFG-026)."""
    raw: bytes = b""
    """The properties frame as received; empty: made from the fields above when encoded."""


class Hugz(msgspec.Struct, frozen=True, gc=False):
    """A beat. `tip`: a number that a foreign parent put into it, only a hint (CFG-014)."""

    tip: int = 0


class Wtf(msgspec.Struct, frozen=True, gc=False):
    """A refusal; code as in CFG-007, text of at most 200 bytes."""

    code: int
    text: str = ""


def number_of(epoch: int, counter: int) -> int:
    """The number of a write (CFG-003).

    >>> hex(number_of(1, 11))
    '0x1000000000b'
    """
    return epoch << COUNTER_BITS | counter


def epoch_of(number: int) -> int:
    """The epoch of a number."""
    return number >> COUNTER_BITS


def counter_of(number: int) -> int:
    """The counter of a number."""
    return number & ((1 << COUNTER_BITS) - 1)


def chain_of(key: str) -> str:
    """The chain of a key: up to its third slash inclusive, or the whole key if it has two segments (CFG-016).

    >>> chain_of("/CONFIG/web/metric/cpu"), chain_of("/TOPO/root")
    ('/CONFIG/web/', '/TOPO/root')
    """
    parts = key.split("/", 3)
    return key if len(parts) < 4 else f"/{parts[1]}/{parts[2]}/"
