"""Tells peers of each other, so that all know all, with few messages (PEE-030 to PEE-032).

The peer that a newcomer called introduces it. A peer that was told of it does not pass that on: the teller has told all
others as well.

Lost messages show in BEAT, by its view. If views differ only because one side has just learned of a peer, they become
equal without help, so a second without news on both sides must pass first. Usually one or two of our peers then explain
the difference, and the other side is told of those. If they do not, we may lack a peer ourselves: we show our view, and
the other side tells us. Only if that did not help, or a peer shows no view, the whole list is sent.
"""

from collections.abc import Callable

import msgspec

from weft.cores.document import limits
from weft.cores.document.context import Context
from weft.cores.document.peers import CAME, MANUAL, MDNS, Peer, Peers, head_of
from weft.cores.kit.timers import earliest
from weft.wire.document.messages import Beat, PeerAt


class Doubt(msgspec.Struct):
    """A peer whose view differed from ours."""

    endpoint: str
    since: int
    """Monotonic ns; if we learn of a peer after that, the doubt no longer counts."""
    due_at: int
    is_shown: bool = False
    """Whether we have shown it our view since."""


class Introductions:
    """The parts share `peers`; this part remembers who told us what. `show_view`: sends a BEAT to a peer."""

    def __init__(self, context: Context, peers: Peers, show_view: Callable[[Peer], None]) -> None:
        self._context, self._peers, self._show_view = context, peers, show_view
        self._named: dict[str, None] = {}
        """Endpoints of present peers that some PEER has named."""
        self._first_at: int | None = None
        """When our very first peer became ACTIVE, if we called it."""
        self._has_had_peers = False
        self._shown_of = 0
        """`view_at` of the view that was last shown to all peers."""
        self._doubts: dict[str, Doubt] = {}
        """By endpoint."""

    def hear(self, peer: Peer, endpoint: str) -> None:
        """It tells us of an endpoint, so it need not be told of that one."""
        for memory in (peer.named, self._named):
            memory.pop(endpoint, None)
            if len(memory) >= limits.REMEMBERED_MAX:
                del memory[next(iter(memory))]
        peer.named[endpoint] = self._context.now.mono
        self._named[endpoint] = None

    def introduce(self, peer: Peer) -> None:
        """A peer has become ACTIVE: tell the others, where that helps (PEE-030)."""
        now = self._context.now.mono
        if not self._has_had_peers:
            self._has_had_peers = True
            self._first_at = now if peer.how in (MANUAL, MDNS) else None
        peer.is_introduction = self._is_introduction_to_us(peer)
        if not peer.is_introduction:
            self._introduce(peer)

    def _introduce(self, peer: Peer) -> None:
        if peer.endpoint in self._named:
            return
        for other in self._peers.active():
            if other is not peer and not (other.is_mdns and peer.is_mdns):
                self._context.say(other.endpoint, PeerAt(peer.endpoint))

    def _is_introduction_to_us(self, peer: Peer) -> bool:
        """Whether it came because it was told of us: we are new, and have just made our first call."""
        since = self._first_at
        return peer.how == CAME and since is not None and peer.came_at <= since + limits.NEWCOMER_NS

    def compare(self, peer: Peer, beat: Beat) -> None:
        """Its BEAT shows a different view, and we have not just learned of a peer (PEE-031).

        It may have learned of one itself, so it is told of ours only after a second, unless we learn of a peer until
        then.
        """
        peer.view = beat.view
        now, peers = self._context.now.mono, self._peers
        if peer.is_introduction and beat.view == head_of(peer.id) ^ head_of(self._context.uuid):
            self._introduce(peer)  # it sees only us: it was not told of us, but is new itself
        peer.is_introduction = False
        if beat.view == peers.view:
            self._doubts.pop(peer.endpoint, None)
        elif now >= max(peers.view_at + limits.VIEW_STILL_NS, _earliest(peer)):
            self._doubts.setdefault(peer.endpoint, Doubt(peer.endpoint, now, now + limits.VIEW_STILL_NS))

    def wake(self) -> None:
        """Look again at peers whose view was different."""
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
        """We have learned of a peer, and of no other since: show our view to peers that may differ, once per pair."""
        self._shown_of = self._peers.view_at
        for peer in self._peers.active():
            if peer.view != self._peers.view and self._context.uuid < peer.id:
                self._show_view(peer)

    def _repair(self, peer: Peer, doubt: Doubt) -> None:
        """Tell it of the peers that it lacks, if they explain the difference; else show our view.

        Else send the whole list.
        """
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
        """Leave out what it told us recently; what it told us long ago it may have lost."""
        now = self._context.now.mono
        for endpoint in news:
            told_at = peer.named.get(endpoint)
            if told_at is None or now >= told_at + limits.REPAIR_BLIND_NS:
                peer.repaired_at, peer.repaired_by = now, by
                self._context.say(peer.endpoint, PeerAt(endpoint))

    def deadline(self) -> int | None:
        """When to look again."""
        view_at = self._peers.view_at + limits.VIEW_TOLD_NS if self._shown_of != self._peers.view_at else None
        return earliest(view_at, *[doubt.due_at for doubt in self._doubts.values()])

    def restart(self) -> None:
        """We are new again."""
        self._has_had_peers, self._first_at = False, None
        self._named.clear()
        self._doubts.clear()

    def forget(self, endpoint: str) -> None:
        """The peer is gone: if it comes back, it is introduced again."""
        self._named.pop(endpoint, None)
        self._doubts.pop(endpoint, None)
        for peer in self._peers.active():
            peer.named.pop(endpoint, None)


def _earliest(peer: Peer) -> int:
    """When it may be told again; a peer that shows no view is told now and then."""
    if peer.view is None:
        return limits.REPAIR_BLIND_NS + (peer.active_at if peer.repaired_at is None else peer.repaired_at)
    if peer.repaired_at is None:
        return 0
    return peer.repaired_at + (limits.VIEW_SHOWN_NS if peer.repaired_by else limits.REPAIR_NS)


def explained(peers: list[Peer], difference: int) -> list[Peer]:
    """The one or two peers that a view lacks, if these explain the whole difference; else none.

    Another pair explains the difference by chance with a probability of 1 in 2**20 among 64; then the whole list is
    sent the next time.
    """
    heads = {head_of(peer.id): peer for peer in peers}
    if difference in heads:
        return [heads[difference]]
    for head, peer in heads.items():
        other = heads.get(head ^ difference)
        if other is not None and other is not peer:
            return [peer, other]
    return []
