"""Nobody misses an operation: what peers hold, what we ask for, what we answer (specs/04, section 3.3)."""

from weft.base.now import Now
from weft.cores.document.log import Log
from weft.cores.document.peers import Peer, Peers
from weft.cores.document.station import Station
from weft.wire.document.messages import Message


class Gossip:
    """Who knows how much of whom."""

    def __init__(self, station: Station, log: Log, peers: Peers) -> None:
        self.station, self.log, self.peers = station, log, peers

    def hear(self, peer: Peer, message: Message) -> None:
        """GSIP, BEAT or XMSG of an ACTIVE peer; anything else is none of its business."""

    def greet(self, peer: Peer) -> None:
        """A peer is ACTIVE: say what we hold of every other source, in the order of UUIDs."""

    def gone(self, peer: Peer) -> None:
        """Forget what it knew and what was sent to it."""

    def push(self, body: bytes, source: bytes, sequence: int) -> None:
        """Say an own operation to every ACTIVE peer (GSP-005)."""

    def restart(self) -> None:
        """We have a new identity: forget what peers know and what was sent."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When to be woken."""
        return None
