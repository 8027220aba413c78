"""How long to wait before the next attempt to reach somebody: doubling, bounded, and spread over the fleet."""

from typing import Final, NamedTuple

from weft.base.chance import Chance

DOUBLINGS_MAX: Final = 16  # a first pause of 1 ms has become a minute by then


class BackOff(NamedTuple):
    """A row of a core's limits: pauses in nanoseconds, each at most `share` of itself off.

    Without that spread, nodes that lost the same peer at the same instant would all knock in unison.
    """

    first_ns: int
    longest_ns: int
    share: float

    def pause_ns(self, chance: Chance, failed: int) -> int:
        """The pause after an attempt that failed, behind `failed` others in a row that did.

        >>> [BackOff(250, 1_000, 0.0).pause_ns(Chance("seed"), failed) for failed in (0, 1, 2, 9)]
        [250, 500, 1000, 1000]
        """
        return chance.about(min(self.first_ns << min(failed, DOUBLINGS_MAX), self.longest_ns), self.share)
