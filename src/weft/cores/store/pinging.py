"""Who speaks for all: the chain of pings of dialect seed (specs/03, section 4.1)."""

from weft.base.now import Now
from weft.cores.store.bus import Bus
from weft.cores.store.membership import Membership
from weft.cores.store.recovery import Recovery
from weft.cores.store.station import Station
from weft.wire.store.messages import Ping


class Pinging:
    """One node's part in the chain."""

    def __init__(self, station: Station, bus: Bus, membership: Membership, recovery: Recovery) -> None:
        self._station, self._bus, self._membership, self._recovery = station, bus, membership, recovery
        self.current: Ping | None = None
        """The ping that the next one will name."""

    def hear(self, ping: Ping, peer: str, now: Now) -> None:
        """Somebody pings (PNG-012)."""

    def wake(self, now: Now) -> None:
        """Ping, if it is time."""

    def deadline(self) -> int | None:
        """When something is due, in monotonic nanoseconds."""
        return None
