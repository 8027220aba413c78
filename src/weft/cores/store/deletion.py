"""When a deletion may be forgotten, and what becomes of nodes that do not come back (DEL-002..007)."""

from collections.abc import Callable

from weft.base.now import Now
from weft.cores.store.bus import Bus
from weft.cores.store.messages import Change, DropNode, SetDeleters
from weft.cores.store.replica import Replica
from weft.cores.store.station import Station
from weft.wire.store.messages import Info


class Deletion:
    """Tombstones go when everybody that counts has said that it has them."""

    def __init__(self, station: Station, bus: Bus, replica: Replica) -> None:
        self._station, self._bus, self._replica = station, bus, replica
        self.positions: Callable[[], list[str]] = list
        """Names on the chain of pings, its head first."""

    def hear_info(self, info: Info, peer: str, now: Now) -> None:
        """`have`: what that node has durably."""

    def heard(self, node: str, now: Now) -> None:
        """Any message of that node: it is there."""

    def listen(self, change: Change) -> None:
        """A merge or own write."""

    def tagged(self, first: int, last: int, names: list[str], now: Now) -> None:
        """All deleters of the moat dialect have been here since tock `first` (PNG-037)."""

    def drop(self, order: DropNode, now: Now) -> None:
        """A node will not come back (DEL-006)."""

    def set_deleters(self, order: SetDeleters, now: Now) -> None:
        """Name the deleters (DEL-003)."""

    def recall(self, now: Now) -> None:
        """After restore: take back what the entries say."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When to be woken."""
        return None
