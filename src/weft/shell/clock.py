"""The only place where a node reads its clocks."""

import time
from dataclasses import dataclass

from weft.base.now import Now


@dataclass
class Clock:
    """Both clocks of the machine; `wall_step_ns` is added to the wall clock, so that tests can step it."""

    wall_step_ns: int = 0

    def now(self) -> Now:
        return Now(time.monotonic_ns(), time.time_ns() + self.wall_step_ns)

    def mono(self) -> int:
        """The monotonic clock alone, to measure a span."""
        return time.monotonic_ns()
