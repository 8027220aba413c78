"""Where a message goes at the bottom of `out` (RTE-002).

    to = [kind, node?, ttl?]     node nil or absent: this one     ttl: how many nodes may transmit it, default 255

Of the kinds whose destination is another node, only DIRECT is implemented; the others would need a relay that applies
them there.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from weft.cores.chains import limits
from weft.cores.chains.context import Context
from weft.cores.chains.destinations import SERVED, flaw

__all__ = ["Way", "flaw", "is_spent", "way"]


class Way(NamedTuple):
    """The route of a message."""

    how: str
    """`local`, `up` (to the parent), `post` (without outbox), `none` (no such node), or `refused`."""
    why: str = ""
    nodes: tuple[bytes, ...] = ()
    """For `post`: the children; empty: the carrier finds the route."""


LOCAL: Final = Way("local")
UP: Final = Way("up")


def is_spent(to: Sequence[Any], via: tuple[bytes, ...]) -> bool:
    """Whether a message that has passed these nodes may not be transmitted again (RTE-004)."""
    ttl = to[2] if len(to) == limits.TO_PARTS_MAX else limits.TTL_MAX
    return len(via) >= min(ttl, limits.VIA_MAX)


def way(to: Sequence[Any], context: Context) -> Way:
    """The route of a message with a valid destination, from this node's present place."""
    node = to[1] if len(to) > 1 else None
    is_here = node is None or node in (context.node, context.settings.name)
    if not is_here and to[0] != "DIRECT":
        return Way("refused", "unimplemented")
    return KINDS[to[0]](context, None if is_here else node)


def _direct(context: Context, node: Any) -> Way:
    if node is None:
        return LOCAL
    return Way("post", nodes=tuple([child for child, name in context.placed.children if node in (child, name)]))


def _parents_of(context: Context, _: Any) -> Way:
    return LOCAL if context.is_root else UP


def _nearest_coordinator(context: Context, _: Any) -> Way:
    return LOCAL if context.is_root or context.placed.children else UP


def _children_of(context: Context, _: Any) -> Way:
    children = tuple([child for child, _ in context.placed.children])
    return Way("post", nodes=children) if children else Way("none")


KINDS: Final[dict[str, Callable[[Context, Any], Way]]] = {
    "DIRECT": _direct,
    "PARENTSOF": _parents_of,
    "NEARESTCOORD": _nearest_coordinator,
    "CHILDRENOF": _children_of,
}
assert set(KINDS) == SERVED, "what is no flaw can be sent to"
