"""Who is told of whom, so that all end up knowing all, with few words (PEE-030 to PEE-032).

A newcomer is introduced by whom it called. Who was told of it by somebody passes that on to nobody: the teller has told
all others as well.

What gets lost shows in BEAT: its view. Views that differ because one of both has just learned of somebody mend themselves, so
a second must pass without news on both sides. Then most often it is one or two of ours that make the difference: it is told
of those. If they do not, it may be that we lack somebody: it is shown our view, and tells us. Only where that did not help, or
where no view is shown, the whole list is told.
"""

from collections.abc import Callable

import msgspec

from weft.cores.document import limits
from weft.cores.document.context import Context
from weft.cores.document.peers import CAME, MANUAL, MDNS, Peer, Peers, head_of
from weft.cores.kit.timers import earliest
from weft.wire.document.messages import Beat, PeerAt


class Doubt(msgspec.Struct):
    """A peer whose view was another than ours."""

    endpoint: str
    since: int
    """Monotonic nanoseconds; should we learn of somebody after that, it is no doubt any more."""
    due_at: int
    is_shown: bool = False
    """Whether we have shown it ours since."""


class Introductions:
    """The parts share `peers`; what is remembered here is who has told us what. `show_view`: say BEAT to a peer."""

    def __init__(self, context: Context, peers: Peers, show_view: Callable[[Peer], None]) -> None:
        self._context, self._peers, self._show_view = context, peers, show_view
        self._told: dict[str, None] = {}
        """Endpoints that some PEER has named, of who is not gone since."""
        self._first_at: int | None = None
        """When our very first peer became ACTIVE, if it is one that we called ourselves."""
        self._has_had_peers = False
        self._shown_of = 0
        """When the view last changed that all have been shown."""
        self._doubts: dict[str, Doubt] = {}
        """By endpoint."""

    def hear(self, peer: Peer, endpoint: str) -> None:
        """It tells us of an endpoint, so it need not be told of it."""
        for told in (peer.told, self._told):
            told.pop(endpoint, None)
            if len(told) >= limits.REMEMBERED_MAX:
                del told[next(iter(told))]
        peer.told[endpoint] = self._context.now.mono
        self._told[endpoint] = None

    def introduce(self, peer: Peer) -> None:
        """A peer has become ACTIVE: tell the others, where that is of use (PEE-030)."""
        now = self._context.now.mono
        if not self._has_had_peers:
            self._has_had_peers = True
            self._first_at = now if peer.how in (MANUAL, MDNS) else None
        peer.is_introduction = self._is_introduction_to_us(peer)
        if not peer.is_introduction:
            self._introduce(peer)

    def _introduce(self, peer: Peer) -> None:
        if peer.endpoint in self._told:
            return
        for other in self._peers.active():
            if other is not peer and not (other.is_mdns and peer.is_mdns):
                self._context.say(other.endpoint, PeerAt(peer.endpoint))

    def _is_introduction_to_us(self, peer: Peer) -> bool:
        """Whether it came because somebody told it of us: we are the newcomer, just after our first call."""
        since = self._first_at
        return peer.how == CAME and since is not None and peer.came_at <= since + limits.NEWCOMER_NS

    def compare(self, peer: Peer, beat: Beat) -> None:
        """Its BEAT shows whom it sees: if these are others than ours, and we have not just learned of somebody (PEE-031).

        It may be the one who has; so it is told of ours in a second, unless we learn of somebody until then.
        """
        peer.view = beat.view
        now, peers = self._context.now.mono, self._peers
        if peer.is_introduction and beat.view == head_of(peer.id) ^ head_of(self._context.uuid):
            self._introduce(peer)  # it sees nobody but us: it has not been sent, it is a newcomer itself
        peer.is_introduction = False
        if beat.view == peers.view:
            self._doubts.pop(peer.endpoint, None)
        elif now >= max(peers.view_at + limits.VIEW_STILL_NS, _earliest(peer)):
            self._doubts.setdefault(peer.endpoint, Doubt(peer.endpoint, now, now + limits.VIEW_STILL_NS))

    def wake(self) -> None:
        """Look again at those whose view was another than ours."""
        now, peers = self._context.now.mono, self._peers
        if self._shown_of != peers.view_at <= now - limits.VIEW_TOLD_NS:
            self._show_all()
        for doubt in [doubt for doubt in self._doubts.values() if doubt.due_at <= now]:
            peer = peers.at(doubt.endpoint)
            if peer is None or peer.view == peers.view or peers.view_at >= doubt.since:
                del self._doubts[doubt.endpoint]
            else:
                self._repair(peer, doubt)

    def _show_all(self) -> None:
        """We have learned of somebody, and of nobody else since: whoever may see others is shown ours, once per pair."""
        self._shown_of = self._peers.view_at
        for peer in self._peers.active():
            if peer.view != self._peers.view and self._context.uuid < peer.id:
                self._show_view(peer)

    def _repair(self, peer: Peer, doubt: Doubt) -> None:
        """Tell it of those of ours that it lacks, if that explains it; else ask it to tell us; else tell it of all."""
        others = [other for other in self._peers.active() if other is not peer]
        lacking = [] if peer.view is None else explained(others, peer.view ^ self._peers.view)
        if not lacking and not doubt.is_shown and peer.view is not None:
            doubt.is_shown, doubt.due_at = True, self._context.now.mono + limits.VIEW_SHOWN_NS
            self._show_view(peer)
            return
        del self._doubts[doubt.endpoint]
        by = [one.endpoint for one in lacking]
        if not by or by == peer.repaired_by:
            self._tell(peer, [one.endpoint for one in others], [])
        else:
            self._tell(peer, by, by)

    def _tell(self, peer: Peer, news: list[str], by: list[str]) -> None:
        """All but what it told us lately; what it told long ago it may have lost since."""
        now = self._context.now.mono
        for endpoint in news:
            told_at = peer.told.get(endpoint)
            if told_at is None or now >= told_at + limits.REPAIR_BLIND_NS:
                peer.repaired_at, peer.repaired_by = now, by
                self._context.say(peer.endpoint, PeerAt(endpoint))

    def deadline(self) -> int | None:
        """When to look again."""
        view_at = self._peers.view_at + limits.VIEW_TOLD_NS if self._shown_of != self._peers.view_at else None
        return earliest(view_at, *[doubt.due_at for doubt in self._doubts.values()])

    def restart(self) -> None:
        """We are the newcomer again."""
        self._has_had_peers, self._first_at = False, None
        self._told.clear()
        self._doubts.clear()

    def forget(self, endpoint: str) -> None:
        """It is gone: should it come back, it is introduced anew."""
        self._told.pop(endpoint, None)
        self._doubts.pop(endpoint, None)
        for peer in self._peers.active():
            peer.told.pop(endpoint, None)


def _earliest(peer: Peer) -> int:
    """When it may be told again; who shows no view is told now and then, in case."""
    if peer.view is None:
        return limits.REPAIR_BLIND_NS + (peer.active_at if peer.repaired_at is None else peer.repaired_at)
    if peer.repaired_at is None:
        return 0
    return peer.repaired_at + (limits.VIEW_SHOWN_NS if peer.repaired_by else limits.REPAIR_NS)


def explained(peers: list[Peer], difference: int) -> list[Peer]:
    """The one or two of them that a view lacks, if that is all it lacks; else nobody.

    That others make the same difference by chance is 1 to 2**20 among 64; then the whole list is told the next time.
    """
    heads = {head_of(peer.id): peer for peer in peers}
    if difference in heads:
        return [heads[difference]]
    for head, peer in heads.items():
        other = heads.get(head ^ difference)
        if other is not None and other is not peer:
            return [peer, other]
    return []
