"""Who is told of whom, so that all end up knowing all, with few words (PEE-030 to PEE-032; specs/04, 2.3).

A newcomer is introduced by whom it called. Who was told of it by somebody passes that on to nobody: the teller has told
all others as well. What gets lost shows in BEAT: whoever sees other peers than we do is told of ours.
"""

from weft.cores.document import limits
from weft.cores.document.peers import CAME, MANUAL, MDNS, Peer, Peers
from weft.cores.document.station import Station
from weft.wire.document.messages import Beat, PeerAt


class Introductions:
    """The parts share `peers`; what is remembered here is who has told us what."""

    def __init__(self, station: Station, peers: Peers) -> None:
        self._station, self._peers = station, peers
        self._told: dict[str, None] = {}
        """Endpoints that some PEER has named, of who is not gone since."""
        self._first_at: int | None = None
        """When our very first peer became ACTIVE, if it is one that we called ourselves."""
        self._has_had_peers = False

    def hear(self, peer: Peer, endpoint: str) -> None:
        """It tells us of an endpoint, so it need not be told of it."""
        for told in (peer.told, self._told):
            told.pop(endpoint, None)
            if len(told) >= limits.REMEMBERED_MAX:
                del told[next(iter(told))]
        peer.told[endpoint] = self._station.now.mono
        self._told[endpoint] = None

    def introduce(self, peer: Peer) -> None:
        """A peer has become ACTIVE: tell the others, where that is of use (PEE-030)."""
        now = self._station.now.mono
        if not self._has_had_peers:
            self._has_had_peers = True
            self._first_at = now if peer.how in (MANUAL, MDNS) else None
        if peer.endpoint in self._told or self._is_introduction_to_us(peer):
            return
        for other in self._peers.active():
            if other is not peer and not (other.is_mdns and peer.is_mdns):
                self._station.send(other.endpoint, PeerAt(peer.endpoint))

    def _is_introduction_to_us(self, peer: Peer) -> bool:
        """Whether it came because somebody told it of us: we are the newcomer, just after our first call."""
        since = self._first_at
        return peer.how == CAME and since is not None and peer.came_at <= since + limits.NEWCOMER_NS

    def compare(self, peer: Peer, beat: Beat) -> None:
        """Its BEAT shows whom it sees; tell it of ours, if these are others (PEE-031)."""
        now, peers = self._station.now.mono, self._peers
        if beat.view == peers.view or now < peers.view_at + limits.VIEW_STILL_NS or now < _earliest(peer, beat):
            return
        peer.repaired_at = now
        for other in peers.active():
            if other is not peer and not self._has_told_lately(peer, other.endpoint):
                self._station.send(peer.endpoint, PeerAt(other.endpoint))

    def _has_told_lately(self, peer: Peer, endpoint: str) -> bool:
        """What it told long ago it may have lost since."""
        told_at = peer.told.get(endpoint)
        return told_at is not None and self._station.now.mono < told_at + limits.REPAIR_BLIND_NS

    def restart(self) -> None:
        """We are the newcomer again."""
        self._has_had_peers, self._first_at = False, None
        self._told.clear()

    def forget(self, endpoint: str) -> None:
        """It is gone: should it come back, it is introduced anew."""
        self._told.pop(endpoint, None)
        for peer in self._peers.active():
            peer.told.pop(endpoint, None)


def _earliest(peer: Peer, beat: Beat) -> int:
    """When it may be told again; who shows no view is told now and then, in case."""
    if beat.view is None:
        return limits.REPAIR_BLIND_NS + (peer.active_at if peer.repaired_at is None else peer.repaired_at)
    return 0 if peer.repaired_at is None else peer.repaired_at + limits.REPAIR_NS
