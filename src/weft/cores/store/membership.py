"""Whether this node has what the others have, and so may serve and write (specs/03, section 4.1; STO-034)."""

from collections.abc import Callable

from weft.base.changes import Event
from weft.base.now import Now
from weft.cores.store.bus import Bus
from weft.cores.store.recovery import Recovery
from weft.cores.store.replica import Replica
from weft.cores.store.states import On, State
from weft.cores.store.station import Station


class Membership:
    """The state of one node in its store."""

    def __init__(self, station: Station, bus: Bus, replica: Replica, recovery: Recovery) -> None:
        self._station, self._bus, self._replica, self._recovery = station, bus, replica, recovery
        self.state = State.OFFLINE
        self.on_join: Callable[[list[str]], None] | None = None
        """Starts a download from these nodes; set where foreign servers are spoken to."""
        self.listeners: list[Callable[[State, On], None]] = []
        """Told of each step: the state before, and what happened."""

    @property
    def serves(self) -> bool:
        """Whether clients are answered (PNG-001)."""
        return False

    def links_changed(self, now: Now) -> None:
        """The mesh is open, or a link went up or down."""

    def found(self, value: bytes, now: Now) -> Event:
        """Be the first node of a new store: the root gets its value as tick 1. StoreError where others are, or data is."""
        raise NotImplementedError

    def heard_authority(self, nodes: list[str], now: Now) -> None:
        """A ping was heard whose chain has data behind it; `nodes` in its order."""

    def downloaded(self, now: Now) -> None:
        """A download is over; everything in it is merged."""

    def download_failed(self, now: Now) -> None:
        """Nobody gave a download."""

    def bar(self, why: str, now: Now) -> None:
        """Take no orders any more: `dropped`, `name-collision`."""

    def accept_tick(self, now: Now) -> None:
        """A person says that this node's name is its own, whatever others know of it (STO-034)."""

    def stop(self, now: Now) -> None:
        """Speak no more."""

    def wake(self, now: Now) -> None:
        """Do what is due."""

    def deadline(self) -> int | None:
        """When something is due, in monotonic nanoseconds."""
        return None
