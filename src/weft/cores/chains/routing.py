"""Where a message goes at the bottom of `out` (RTE-002).

    to = [kind, node?, ttl?]     node nil or absent: this one     ttl: how many nodes may transmit it, default 255

Of the kinds with a destination at another node only DIRECT is served: the others need a relay that applies them there.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from weft.cores.chains import limits
from weft.cores.chains.context import Context

NODE_ID_BYTES: Final = 16


class Way(NamedTuple):
    """What to do with a message."""

    how: str
    """`local`, `up` (towards the parent), `post` (without outbox), `none` (nobody is there), or `refused`."""
    why: str = ""
    nodes: tuple[bytes, ...] = ()
    """Of `post`: the children; none: the carrier finds the way."""


UNIMPLEMENTED: Final = frozenset(
    {"MULTICAST", "DIRECTBACKUP", "NEIGHBORSOF", "RECURSIVEPARENTSOF", "RECURSIVECHILDRENOF", "BROADCAST"}
)
LOCAL: Final = Way("local")
UP: Final = Way("up")


def flaw(to: Any) -> str:
    """Why no node could ever send to this: `bad-destination`, `unimplemented`; empty: it can be tried."""
    if not isinstance(to, (list, tuple)) or not 1 <= len(to) <= limits.TO_PARTS_MAX:
        return "bad-destination"
    kind = to[0]
    if len(to) == 1 and isinstance(kind, str) and kind in KINDS:
        return ""
    if not isinstance(kind, str) or not (kind in KINDS or kind in UNIMPLEMENTED):
        return "bad-destination"
    if len(to) > 1 and not _is_node(to[1]):
        return "bad-destination"
    if len(to) == limits.TO_PARTS_MAX and not _is_ttl(to[2]):
        return "bad-destination"
    return "unimplemented" if kind in UNIMPLEMENTED else ""


def _is_node(node: Any) -> bool:
    if isinstance(node, str):
        return 0 < len(node) <= limits.NAME_BYTES_MAX
    return node is None or (isinstance(node, bytes) and len(node) == NODE_ID_BYTES)


def _is_ttl(ttl: Any) -> bool:
    return isinstance(ttl, int) and not isinstance(ttl, bool) and 0 <= ttl <= limits.TTL_MAX


def is_spent(to: Sequence[Any], via: tuple[bytes, ...]) -> bool:
    """Whether a message that has gone this way may not be transmitted again (RTE-004)."""
    ttl = to[2] if len(to) == limits.TO_PARTS_MAX else limits.TTL_MAX
    return len(via) >= min(ttl, limits.VIA_MAX)


def way(to: Sequence[Any], context: Context) -> Way:
    """The way of a message whose destination has no flaw, as this node stands now."""
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
