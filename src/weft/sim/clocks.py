"""The two clocks of a simulated machine (SIM-003): one that drifts, one that people set."""

from typing import Final

from weft.base.now import Now

PPM: Final = 1_000_000
DRIFT_PPM_MAX: Final = 50_000  # 5 %, as a fault; ordinary drift is at most 200 ppm


class Clocks:
    """`mono` = (true - boot) * (1 + drift) + what it showed at boot; `wall` = true + offset, moved by steps."""

    __slots__ = ("_base", "_boot_at", "_drift_ppm", "offset_ns")

    def __init__(self, epoch_ns: int, offset_ns: int, drift_ppm: int) -> None:
        assert abs(drift_ppm) <= DRIFT_PPM_MAX, drift_ppm
        self.offset_ns = epoch_ns + offset_ns
        self._drift_ppm = drift_ppm
        self._boot_at = 0
        self._base = 0

    def boot(self, at: int, base: int) -> None:
        """The machine starts: its monotonic clock begins at `base`."""
        self._boot_at, self._base = at, base

    def drift(self, at: int, drift_ppm: int) -> None:
        """From now on the quartz runs at another speed; the clock itself does not jump."""
        assert abs(drift_ppm) <= DRIFT_PPM_MAX, drift_ppm
        self._base, self._boot_at, self._drift_ppm = self.mono(at), at, drift_ppm

    def step(self, by_ns: int) -> None:
        """Someone sets the wall clock."""
        self.offset_ns += by_ns

    def mono(self, at: int) -> int:
        """What the monotonic clock shows at the true instant `at`."""
        passed = at - self._boot_at
        return self._base + passed + passed * self._drift_ppm // PPM

    def now(self, at: int) -> Now:
        """What both clocks show at the true instant `at`."""
        passed = at - self._boot_at
        return Now(self._base + passed + passed * self._drift_ppm // PPM, at + self.offset_ns)

    def true_at(self, mono: int) -> int:
        """The first true instant at which the monotonic clock shows at least `mono`.

        >>> clocks = Clocks(0, 0, 200)
        >>> clocks.mono(clocks.true_at(1_000_000_007)) >= 1_000_000_007
        True
        """
        ahead = mono - self._base
        at = self._boot_at + ahead * PPM // (PPM + self._drift_ppm)
        while self.mono(at) < mono:
            at += 1
        return at
