"""The wait before the next connection attempt: doubling, with random spread, bounded."""

import asyncio
import random

from weft.client.link.limits import BACK_OFF_SPREAD


class BackOff:
    """The waits of one connection, in seconds."""

    def __init__(self, least_s: float, most_s: float) -> None:
        self._least_s, self._most_s = least_s, most_s
        self._next_s = least_s

    def next_s(self) -> float:
        """The next wait in seconds; the one after it is twice as long."""
        now_s, self._next_s = self._next_s, min(2 * self._next_s, self._most_s)
        return now_s * random.uniform(1 - BACK_OFF_SPREAD, 1 + BACK_OFF_SPREAD)  # noqa: S311  # it only spreads load

    async def wait(self) -> None:
        """Sleep for the next wait."""
        await asyncio.sleep(self.next_s())

    def reset(self) -> None:
        """A connection succeeded: start with a short wait again."""
        self._next_s = self._least_s
