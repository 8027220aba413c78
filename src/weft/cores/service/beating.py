"""When a service beats, over which path, and when it considers its broker gone (BEA-010, BEA-018).

Datagrams are always sent, if the broker accepts any. Beats also go over the connection while the broker asks for that,
and while nothing at all is heard from it; then it must answer.
"""

from weft.base.chance import Chance
from weft.base.now import Now
from weft.cores.service import limits


class Beating:
    """The timers of one approved connection."""

    def __init__(self, chance: Chance, beacon_ns: int) -> None:
        self._chance, self._beacon_ns = chance, beacon_ns
        self._liveness = limits.LIVENESS
        self._is_asked = self._is_deaf = self._is_bare = False
        self._is_exact = True
        self._beat_at = self._heard_at = self._answered_at = 0
        self._over_tcp_at = 0
        """Since when beats go over the connection; 0: they do not."""
        self.interval_ns = 0

    @property
    def over_tcp(self) -> bool:
        """Whether beats also go over the connection."""
        return self._is_bare or self._is_asked or self._is_deaf

    @property
    def deaf_ns(self) -> int:
        """How long nothing may be heard from the broker before beats go over the connection."""
        return max(self.interval_ns, self._beacon_ns) * limits.DEAF_TENTHS // 10

    def begin(  # tidy: all that was agreed
        self, interval_ns: int, liveness: int, now: Now, *, is_exact: bool, has_port: bool
    ) -> None:
        """The broker has approved. `is_exact`: it answers every beat; `has_port`: it accepts datagrams.

        An existing broker knows no beats: it gets none over the connection while its beacon is heard.
        """
        self.interval_ns, self._liveness = interval_ns, liveness
        self._is_exact, self._is_bare = is_exact, is_exact and not has_port
        self._is_asked = self._is_deaf = False
        self._beat_at = now.mono + round(self._chance.random() * interval_ns)
        self._heard_at = self._answered_at = self._over_tcp_at = now.mono

    def hear(self, now: Now) -> None:
        """The broker's beacon, or its message by datagram: that path works."""
        self._heard_at = now.mono
        self._is_deaf = False

    def hear_answer(self, now: Now) -> None:
        """Any message on the connection."""
        self._heard_at = self._answered_at = now.mono

    def ask(self, now: Now) -> None:
        """The broker misses beats: send them over the connection from now on."""
        self._begin_tcp(now)
        self._is_asked = True

    def release(self) -> None:
        """The broker receives datagrams again."""
        self._is_asked = False

    def hurry(self, interval_ns: int, now: Now) -> None:
        """Beat at another interval from now on."""
        self.interval_ns = interval_ns
        self._beat_at = min(self._beat_at, now.mono + interval_ns)

    def excuse(self, late_ns: int) -> None:
        """This process stood still for that time: silence during it does not count."""
        self._heard_at += late_ns
        self._answered_at += late_ns
        self._over_tcp_at += late_ns

    def is_silent(self, now: Now) -> bool:
        """Whether the broker was silent for L intervals, although it had to answer."""
        return self.over_tcp and now.mono >= self._silent_at

    def listen(self, now: Now) -> None:
        """Notice that nothing is heard any more."""
        if not self.over_tcp and now.mono >= self._heard_at + self.deaf_ns:
            self._begin_tcp(now)
            self._is_deaf = True

    def is_due(self, now: Now) -> bool:
        """Whether a beat is due; if so, the next one is due an interval later."""
        if now.mono < self._beat_at:
            return False
        self._beat_at = now.mono + self._chance.about(self.interval_ns, limits.BEAT_SHARE)
        return True

    @property
    def due_at(self) -> int:
        """When the next action is due, on the monotonic clock."""
        return min(self._beat_at, self._silent_at if self.over_tcp else self._heard_at + self.deaf_ns)

    @property
    def _silent_at(self) -> int:
        """A broker that answers every beat must do so; for an existing broker any sign of life is enough."""
        heard_at = self._answered_at if self._is_exact else self._heard_at
        return max(heard_at, self._over_tcp_at) + self._liveness * self.interval_ns

    def _begin_tcp(self, now: Now) -> None:
        if not self.over_tcp:
            self._over_tcp_at = self._beat_at = now.mono
