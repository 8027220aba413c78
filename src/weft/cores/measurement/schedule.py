"""Ticks without drift: instants of a grid on the monotonic clock, the same grid for all metrics of a node (MEA-004).

The grid is `origin + k * rate`, where the origin is the wall clock's zero plus the node's phase, as both clocks stood
at the start. With one origin for all rates, metrics of one rate and of its multiples share ticks; a phase derived from
the UUID keeps the nodes of a fleet from measuring at the same instant. Later steps of the wall clock move no tick.
"""

from weft.base.now import Now
from weft.base.settings import DAY


def phase_of(node: bytes) -> int:
    """The offset of a node's ticks, ns: derived from its UUID, so that it is the same after every restart."""
    return int.from_bytes(node[:8], "big") % DAY


def origin_at(now: Now, phase_ns: int) -> int:
    """An instant of the grid on the monotonic clock."""
    return now.mono - now.wall + phase_ns


def next_tick(after: int, span_ns: int, origin: int) -> int:
    """The first instant of `origin + k * span_ns` later than `after`; missed ticks are skipped.

    >>> next_tick(100, 10, 3), next_tick(103, 10, 3), next_tick(3_141, 10, 3)
    (103, 113, 3143)
    """
    return after + span_ns - (after - origin) % span_ns
