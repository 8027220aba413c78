"""The instant that is handed to every core: two clocks, which must never be mixed up."""

from typing import Final, NamedTuple

SECOND: Final = 1_000_000_000
MILLISECOND: Final = 1_000_000


class Now(NamedTuple):
    """One instant as one node sees it; cores never read a clock themselves."""

    mono: int
    """Monotonic nanoseconds: the only clock for timers and silences."""
    wall: int
    """Wall-clock nanoseconds since 1970: only shown and stored, never compared between machines."""


def seconds(value: float) -> int:
    """Seconds, as configured by people, in nanoseconds.

    >>> seconds(0.25)
    250000000
    """
    return round(value * SECOND)
