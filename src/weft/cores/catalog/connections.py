"""Connections: what is known of the peers on the ROUTER (CAT-020; specs/02, 2.4)."""

from weft.cores.catalog.instances import Instance
from weft.cores.catalog.states import Link
from weft.cores.catalog.station import Asker, Station


class Connections:
    """By routing id: its state, what it is bound to, and how often it said what is no message."""

    def __init__(self, station: Station) -> None:
        self.station = station

    def state_of(self, peer: bytes) -> Link:
        """What a peer is at this moment."""
        raise NotImplementedError

    def bound(self, asker: Asker) -> Instance | None:
        """The instance of a connection, if it is still its owner's."""
        raise NotImplementedError
