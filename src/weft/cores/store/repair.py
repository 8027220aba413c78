"""Entries about which real MoaT-KV servers would differ for ever, written anew (STO-014, STO-015)."""

from collections.abc import Callable

from weft.base.now import Now
from weft.cores.store.bus import Bus
from weft.cores.store.messages import Change
from weft.cores.store.replica import Replica
from weft.cores.store.station import Station


class Repair:
    """Remembers what lost, and mends it where servers with another rule may have kept it."""

    def __init__(self, station: Station, bus: Bus, replica: Replica) -> None:
        self._station, self._bus, self._replica = station, bus, replica
        self.positions: Callable[[], list[str]] = list
        """Weft nodes of the node list, the last that pinged first."""

    def note(self, change: Change) -> None:
        """A merge: remember losers, plan a repair."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When to be woken."""
        return None
