"""How long to wait before the next attempt to reach a peer: doubling, bounded, and spread over the fleet."""

from typing import Final, NamedTuple

from weft.base.chance import Chance

DOUBLINGS_MAX: Final = 16  # enough doublings to turn a first pause of 1 ms into a minute


class BackOff(NamedTuple):
    """Back-off settings, one row of a core's limits.

    Pauses are in nanoseconds; each varies at random by at most `share`.

    Without the variation, all nodes that lost the same peer at the same instant would reconnect at the same instant.
    """

    first_ns: int
    longest_ns: int
    share: float

    def pause_ns(self, chance: Chance, failed: int) -> int:
        """The pause in ns after a failed attempt; `failed` counts the failures in a row before that one.

        >>> [BackOff(250, 1_000, 0.0).pause_ns(Chance("seed"), failed) for failed in (0, 1, 2, 9)]
        [250, 500, 1000, 1000]
        """
        return chance.about(min(self.first_ns << min(failed, DOUBLINGS_MAX), self.longest_ns), self.share)
