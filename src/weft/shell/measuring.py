"""Performs `Measure`: runs each meter where it cannot delay anything else (MEA-006).

Counters of the kernel are read in the event loop, which takes some fifty microseconds. Processes, and everything that may
hang, are read in a thread. The core does not ask again for a metric that has not answered, so a metric that hangs occupies
one thread only. The threads are daemons: they do not keep a node from ending.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final

from weft.cores.measurement.messages import Measure, Measured, Place
from weft.shell.meters import Meters

CORE: Final = "measurement"


class Measuring:
    """Performs `Measure`, and gives the core `Measured` through `order(core, order)`, always in the event loop."""

    def __init__(self, order: Callable[[str, Any], None], meters: Meters | None = None) -> None:
        self._order = order
        self.meters = meters or Meters()

    def measure(self, work: Measure) -> None:
        """Measure in the loop, and answer at once; or in a thread, and answer in a later callback: as `work.place` says."""
        if work.place is Place.INLINE:
            self._order(CORE, self._perform(work))
            return
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._apart, args=(work, loop), name=f"measure-{work.number}", daemon=True).start()

    def _perform(self, work: Measure) -> Measured:
        return Measured(self.meters.measure(work.specs), work.number)

    def _apart(self, work: Measure, loop: asyncio.AbstractEventLoop) -> None:
        answer = self._perform(work)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for the answer
            loop.call_soon_threadsafe(self._order, CORE, answer)
