"""Coordination as real MoaT-KV servers do it: who pings when, and what two lists that meet mean (PNG-030..037)."""

from collections.abc import Callable

from weft.base.now import Now
from weft.cores.store.bus import Bus
from weft.cores.store.membership import Membership
from weft.cores.store.nodelist import NodeList
from weft.cores.store.recovery import Recovery
from weft.cores.store.replica import Replica
from weft.cores.store.station import Station
from weft.wire.store import actor as wire


class Actor:
    """One topic of the dialect `moat`: `ping` coordinates the servers, `del` those that forget deletions."""

    def __init__(  # tidy: the parts that it coordinates, each once
        self,
        station: Station,
        bus: Bus,
        replica: Replica,
        membership: Membership,
        recovery: Recovery,
        topic: str,
    ) -> None:
        self._station, self._bus, self._replica = station, bus, replica
        self._membership, self._recovery, self._topic = membership, recovery, topic
        self.nodes = NodeList(5)
        self.on_away: Callable[[list[str], Now], None] | None = None
        """`del`: this node was away for longer than the tags of the others reach back: one of these knows what is forgotten."""
        self.on_tag: Callable[[int, int, list[str], Now], None] | None = None
        """`del`: all of these have been here since the first of these tocks (PNG-037)."""

    def hear(self, message: wire.Message, now: Now) -> None:
        """A message of this actor's topic, own ones included."""

    def link_up(self, now: Now) -> None:
        """The broker is there: begin (PNG-032)."""

    def link_down(self, now: Now) -> None:
        """It is not: be quiet."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When to be woken."""
        return None
