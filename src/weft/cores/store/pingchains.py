"""What two pings, each with the chain of who was heard before it, say about each other (PNG-010, PNG-012)."""

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
"""Behind `collision` and `split`: the ping that was received is the current one from now on."""
LOST: Final = "-lost"


def overlap(one: Links, other: Links) -> bool:
    """Whether they agree over the shorter one's length, at least one link."""
    shorter = min(len(one), len(other))
    return shorter > 0 and one[:shorter] == other[:shorter]


def follows(later: Links, earlier: Links, length: int) -> bool:
    """Whether the earlier chain is a tail of the later one, as far as both reach."""
    return any(overlap(later[start:], earlier) for start in range(1, length))


def relation(received: Ping, current: Ping, length: int) -> str:
    """What a received ping is against the current one: the first that fits, in the order of PNG-012."""
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
    """The order of events, for pings: tock, then tick, then the lower name (STO-010)."""
    if one.tock != other.tock:
        return one.tock > other.tock
    return one.tick > other.tick if one.tick != other.tick else one.node.encode() < other.node.encode()


def is_apart(one: Links, other: Links, length: int) -> bool:
    """Whether two chains, whichever is later, belong to nodes that did not hear each other."""
    if overlap(one, other) or follows(one, other, length) or follows(other, one, length):
        return False
    return not (len(one) > 1 and len(other) > 1 and one[1:] == other[1:])


def is_initial(ping: Ping) -> bool:
    """The ping of a node that has nothing and has heard nobody."""
    return len(ping.chain.links) == 1 and ping.tick == 0 and not ping.chain.is_cut


def has_data(links: Links) -> bool:
    """Whether a chain is authoritative: some node on it has a change of its own."""
    return any(tick > 0 for _, tick in links)


def may_head(tick: int, links: Links) -> bool:
    """Whether a node may ping on this chain: one without data not before the half of it that has none (PNG-002)."""
    half = (len(links) + 1) // 2
    return tick > 0 or has_data(links[:half]) or not has_data(links[half:])


def extended(own: Link, current: Chain | None, length: int) -> Chain:
    """The chain of a node's own ping on the current one (PNG-010)."""
    if current is None:
        return Chain((own,))
    links = (own, *current.links)
    return Chain(links[:length], current.is_cut or len(links) > length)
