"""What two pings show about each other; each carries the chain of nodes heard before it (PNG-010, PNG-012)."""

from typing import Final

from weft.base.changes import Chain, Link
from weft.wire.store.messages import Ping

Links = tuple[Link, ...]

DUPLICATE: Final = "duplicate"
SUCCESSOR: Final = "successor"
LATE: Final = "late"
COLLISION: Final = "collision"
INITIAL: Final = "initial"
SPLIT: Final = "split"
WON: Final = "-won"
"""Suffix of `collision` and `split`: the received ping becomes the current one."""
LOST: Final = "-lost"


def overlap(one: Links, other: Links) -> bool:
    """Whether they agree over the length of the shorter one, at least one link."""
    shorter = min(len(one), len(other))
    return shorter > 0 and one[:shorter] == other[:shorter]


def follows(later: Links, earlier: Links, length: int) -> bool:
    """Whether the earlier chain is a tail of the later one, as far as both reach."""
    return any(overlap(later[start:], earlier) for start in range(1, length))


def relation(received: Ping, current: Ping, length: int) -> str:
    """How a received ping relates to the current one: the first case that fits, in the order of PNG-012."""
    new, old = received.chain.links[:length], current.chain.links[:length]
    if new == old and received.tock == current.tock:
        return DUPLICATE
    if received.tock > current.tock and follows(new, old, length):
        return SUCCESSOR
    if received.tock < current.tock and follows(old, new, length):
        return LATE
    if len(new) > 1 and len(old) > 1 and new[1:] == old[1:]:
        return COLLISION + (WON if beats(received, current) else LOST)
    if is_initial(received):
        return INITIAL
    return SPLIT + (WON if beats(received, current) else LOST)


def beats(one: Ping, other: Ping) -> bool:
    """The order of pings, like that of events: tock, then tick, then the lower name (STO-010)."""
    if one.tock != other.tock:
        return one.tock > other.tock
    return one.tick > other.tick if one.tick != other.tick else one.node.encode() < other.node.encode()


def is_apart(one: Links, other: Links, length: int) -> bool:
    """Whether two chains belong to nodes that did not hear each other."""
    if overlap(one, other) or follows(one, other, length) or follows(other, one, length):
        return False
    return not (len(one) > 1 and len(other) > 1 and one[1:] == other[1:])


def is_initial(ping: Ping) -> bool:
    """Whether it is the ping of a node that has no data and has heard no other."""
    return len(ping.chain.links) == 1 and ping.tick == 0 and not ping.chain.is_cut


def has_data(links: Links) -> bool:
    """Whether a chain is authoritative: some node on it has made a change."""
    return any(tick > 0 for _, tick in links)


def may_head(tick: int, links: Links) -> bool:
    """Whether a node may ping on this chain: one without data only after the part of it that has none (PNG-002)."""
    half = (len(links) + 1) // 2
    return tick > 0 or has_data(links[:half]) or not has_data(links[half:])


def extended(own: Link, current: Chain | None, length: int) -> Chain:
    """The chain for a node's own ping on top of the current one (PNG-010)."""
    if current is None:
        return Chain((own,))
    links = (own, *current.links)
    return Chain(links[:length], current.is_cut or len(links) > length)
