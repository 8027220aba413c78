"""The store's clients, server side (specs/03, section 8): who they are, what they ask, and what streams to them."""

from weft.base.now import Now
from weft.base.spool import Journaled, RecordsFetched
from weft.cores.store.messages import ClientCame, ClientGone, ClientPaused, ClientResumed, Garbled
from weft.cores.store.replica import Replica
from weft.cores.store.station import Station
from weft.wire.store.clients import Request


class Serving:
    """All clients of one node."""

    def __init__(self, station: Station, replica: Replica) -> None:
        self._station, self._replica = station, replica

    def came(self, order: ClientCame, now: Now) -> None:
        """A client has connected: greet it (CLN-001)."""
        raise NotImplementedError

    def gone(self, order: ClientGone, now: Now) -> None:
        """Its connection has ended."""
        raise NotImplementedError

    def paused(self, order: ClientPaused, now: Now) -> None:
        """It does not read: its streams wait."""
        raise NotImplementedError

    def resumed(self, order: ClientResumed, now: Now) -> None:
        """It reads again: its streams go on."""
        raise NotImplementedError

    def hear(self, request: Request, peer: bytes, now: Now) -> None:
        """A client asks; whatever it asks is answered (CLN-002)."""
        raise NotImplementedError

    def garbled(self, order: Garbled, now: Now) -> None:
        """Something came that cannot be read; if not even as a message, the connection ends."""
        raise NotImplementedError

    def journaled(self, order: Journaled, now: Now) -> None:
        """Changes stand in the journal: show them to who watches (CLN-010)."""
        raise NotImplementedError

    def fetched(self, order: RecordsFetched, now: Now) -> None:
        """A piece of the journal for watchers that are behind."""
        raise NotImplementedError

    def wake(self, now: Now) -> None:
        """Go on with streams that had their share of the last turn."""
        raise NotImplementedError

    def deadline(self) -> int | None:
        """At once, while a stream could go on."""
        raise NotImplementedError
