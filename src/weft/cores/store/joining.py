"""Joining a store of real MoaT-KV servers: everything that one of them holds, asked for as its client (CLN-020)."""

from collections.abc import Callable

from weft.base.now import Now
from weft.cores.store.replica import Replica
from weft.cores.store.station import Station
from weft.wire.store.clients import Answer, Greeting


class Joining:
    """At most one download at a time."""

    def __init__(self, station: Station, replica: Replica) -> None:
        self._station, self._replica = station, replica
        self.on_done: Callable[[bool], None] = lambda _: None
        """Told of the end: whether everything of one node was merged."""

    def start(self, names: list[str], now: Now) -> None:
        """Download from the first of these nodes that gives all it has."""
        raise NotImplementedError

    def hear(self, answer: Greeting | Answer, tag: bytes, now: Now) -> None:
        """The server says something."""
        raise NotImplementedError

    def failed(self, tag: bytes, why: str, now: Now) -> None:
        """The connection has ended, or never began: the next candidate."""
        raise NotImplementedError

    def wake(self, now: Now) -> None:
        """A server that says nothing is given up."""
        raise NotImplementedError

    def deadline(self) -> int | None:
        """When it has said nothing for too long."""
        raise NotImplementedError
