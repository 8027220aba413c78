"""Which destinations a message can have (RTE-002)."""

from typing import Any, Final

from weft.cores.chains import limits

NODE_ID_BYTES: Final = 16
SERVED: Final = frozenset({"DIRECT", "PARENTSOF", "CHILDRENOF", "NEARESTCOORD"})
UNIMPLEMENTED: Final = frozenset(
    {"MULTICAST", "DIRECTBACKUP", "NEIGHBORSOF", "RECURSIVEPARENTSOF", "RECURSIVECHILDRENOF", "BROADCAST"}
)


def flaw(to: Any) -> str:
    """Why this destination is impossible at every node: `bad-destination`, `unimplemented`; empty: it can be tried."""
    if not isinstance(to, (list, tuple)) or not 1 <= len(to) <= limits.TO_PARTS_MAX:
        return "bad-destination"
    kind = to[0]
    if len(to) == 1 and isinstance(kind, str) and kind in SERVED:
        return ""
    if not isinstance(kind, str) or not (kind in SERVED or kind in UNIMPLEMENTED):
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
