"""Who a node is, and who the origin of a record is (specs/00, section 1)."""

from typing import NamedTuple

NODE_ID_BYTES = 16


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
