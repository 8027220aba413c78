"""The destinations of messages, as in the seed (RTE-002), and the places of handlers in a chain (CHN-010)."""

import re
from functools import lru_cache
from typing import Any, Final

from weft.client.chain.limits import NODE_BYTES_MAX

Destination = tuple[Any, ...]
"""`(kind, node or None, ttl)`; node and ttl may be left out, and the node then uses their defaults."""

LOCAL: Final = "LOCAL"
"""The node that the program is attached to."""
PARENTS_OF_LOCAL: Final[Destination] = ("PARENTSOF",)
"""One level up; at the root, the root itself."""
CHILDREN_OF_LOCAL: Final[Destination] = ("CHILDRENOF",)
"""Every child of the local node, once."""
NEAREST_COORD: Final[Destination] = ("NEARESTCOORD",)
"""The local node if it has children or is the root, else its parent."""

BEFORE_ALL: Final = "before-all"
AFTER_ALL: Final = "after-all"

_OWN: Final = frozenset({"LOCAL", "NODE_LOCAL", "LOCALNODE"})
_ID_AS_TEXT: Final = re.compile(r"[0-9a-f]{32}")
_PARTS_MAX: Final = 3


def direct(node: str | bytes = LOCAL) -> Destination:
    r"""To one node: its name, its id (16 bytes, or 32 hexadecimal digits), or `LOCAL`.

    >>> direct("C"), direct("LOCAL"), direct("0b" * 16) == direct(b"\x0b" * 16)
    (('DIRECT', 'C'), ('DIRECT',), True)
    """
    if node in _OWN:
        return ("DIRECT",)
    if isinstance(node, str) and _ID_AS_TEXT.fullmatch(node):
        node = bytes.fromhex(node)
    return ("DIRECT", node)


def destination(to: Any) -> list[Any] | None:
    """A destination in its wire form; None if it is invalid. Kinds and nodes are checked by the node.

    >>> destination(PARENTS_OF_LOCAL), destination(LOCAL), destination(("DIRECT", "LOCAL", 3)), destination(7)
    (['PARENTSOF'], ['DIRECT'], ['DIRECT', None, 3], None)
    """
    if isinstance(to, str):
        to = direct(to) if to in _OWN else None
    if not isinstance(to, tuple | list):
        return None
    try:
        return _parts(tuple(to))
    except TypeError:  # a value without a hash cannot be part of a destination
        return None


@lru_cache(256)
def _parts(to: Destination) -> list[Any] | None:
    if not 1 <= len(to) <= _PARTS_MAX:
        return None
    parts = [to[0], *(None if isinstance(part, str) and part in _OWN else part for part in to[1:])]
    return parts if _is_bounded(*parts) else None


def _is_bounded(kind: Any, node: Any = None, ttl: Any = 0) -> bool:
    is_node = node is None or (isinstance(node, str | bytes) and len(node) <= NODE_BYTES_MAX)
    return (
        isinstance(kind, str) and len(kind) <= NODE_BYTES_MAX and is_node and isinstance(ttl, int) and 0 <= ttl <= 255
    )
