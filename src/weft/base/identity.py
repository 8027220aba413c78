"""Who a node is, and who the origin of a record is."""

import re
from typing import Final, NamedTuple

NODE_ID_BYTES: Final = 16
ORIGIN_BYTES_MAX: Final = 128
_NODE_AS_TEXT: Final = re.compile(r"[0-9a-f]{32}")


class Origin(NamedTuple):
    """One *start* of a node: the pair that numbers its records from 1 without holes.

    Streams whose seed numbers differently use text for `node` (a store node's name) or no era.
    """

    node: bytes | str
    era: int | None

    def __str__(self) -> str:
        name = self.node.hex() if isinstance(self.node, bytes) else self.node
        return name if self.era is None else f"{name}/{self.era}"


def next_era(wall: int, last_era: int) -> int:
    """The era of a start: microseconds since 1970, made greater than the last one kept on disk.

    So a stepped-back clock, a restored or a lost disk never reuses an identity.

    >>> next_era(1_795_227_290_000_000_000, 0)
    1795227290000000
    >>> next_era(5_000, last_era=1_795_227_290_000_000)
    1795227290000001
    """
    return max(wall // 1_000, last_era + 1)


def sort_key(origin: Origin) -> tuple[bytes, int]:
    """The order of origins in everything that is written down: bytes of the name, then era (LAK, WV1)."""
    name = origin.node if isinstance(origin.node, bytes) else origin.node.encode()
    return name, -1 if origin.era is None else origin.era


def is_canonical(node: bytes | str, era: int | None) -> bool:
    """Whether WV1 and the lake's text both give this very origin back (LAK-019).

    With an era, 16 bytes are a node and 32 hexadecimal digits are how the lake writes one: so no text may look like
    either. Without an era there is text only.

    >>> is_canonical(bytes(16), 5), is_canonical("n1", None), is_canonical("root", 2)
    (True, True, True)
    >>> is_canonical(bytes(16), None), is_canonical("0123456789abcdef", 5)
    (False, False)
    """
    if isinstance(node, bytes):
        return len(node) == NODE_ID_BYTES and era is not None
    length = len(node.encode())
    if not 1 <= length <= ORIGIN_BYTES_MAX:
        return False
    return era is None or not (length == NODE_ID_BYTES or _NODE_AS_TEXT.fullmatch(node))
