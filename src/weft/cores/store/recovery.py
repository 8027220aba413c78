"""How missed changes are noticed, asked for and found (specs/03, section 5)."""

from collections.abc import Callable

from weft.base.changes import Chain, Link
from weft.base.now import Now
from weft.cores.store.bus import Bus
from weft.cores.store.replica import Replica
from weft.cores.store.station import Station
from weft.wire.store.messages import Info, Ping, Update


class Recovery:
    """What this node lacks, and what others lack that it has."""

    def __init__(self, station: Station, bus: Bus, replica: Replica) -> None:
        self._station, self._bus, self._replica = station, bus, replica
        self.positions: Callable[[], list[str]] = list
        """Names on the current chain of pings, its head first; set by who pings."""
        self.current_ping: Callable[[], Ping | None] = lambda: None
        """Of the seed dialect; set by who pings."""
        self.on_news: list[Callable[[], None]] = []
        """Told whenever completeness may have changed."""

    @property
    def is_complete(self) -> bool:
        """Nothing is missing, or nobody in reach has it (HEA-012)."""
        return True

    def hear_update(self, update: Update, peer: str, now: Now) -> None:
        """After the merge: a gap before it, a resend that need not be repeated."""

    def hear_info(self, info: Info, peer: str, now: Now) -> None:
        """Ticks, missing, known, deleted and reason of somebody else."""

    def hear_links(self, links: tuple[Link, ...], peer: str, now: Now) -> None:
        """Somebody names changes, in a chain of pings say: those that nobody has seen are missing from now on."""

    def split(self, own: Chain, has_lost: bool, now: Now, other: Chain | None = None) -> None:
        """Nodes are heard that had been apart: start with the positions in the own chain before the merge (HEA-001..003)."""

    def link_up(self, member: str, now: Now) -> None:
        """Tell a new neighbour what there is (HEA-006); `""` is the broker."""

    def wake(self, now: Now) -> None:
        """Do what is due."""

    def deadline(self) -> int | None:
        """When something is due, in monotonic nanoseconds."""
        return None
