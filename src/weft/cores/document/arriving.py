"""Which peer a HELO comes from, and where it listens (PEE-012, PEE-014, PEE-034).

A HELO names the endpoint where its sender wants to be called. That endpoint and its UUID identify a known peer. It may
also be a new peer, a peer that has restarted or moved, one that we called by another address, or this node itself.
"""

from collections.abc import Callable

from weft.base.endpoints import is_loopback
from weft.base.now import SECOND
from weft.cores.document import limits
from weft.cores.document.context import Context
from weft.cores.document.peers import CAME, PRESENT, Peer, Peers
from weft.cores.document.states import State
from weft.wire.document import endpoints

RESTARTED = "restarted"
"""Reason why a peer is gone: another process listens at its endpoint."""


class Arriving:
    """`gone`: called with a peer whose process has ended."""

    def __init__(self, context: Context, peers: Peers, gone: Callable[[Peer, str], None]) -> None:
        self._context, self._peers, self._gone = context, peers, gone
        self._second = 0
        self._unknown = 0

    def hear(self, sender: bytes, claimed: str, address: str) -> Peer | None:
        """The peer that sent this HELO; None if it is our own, names our own endpoint, or is one too many."""
        endpoint = reachable(claimed, address)
        if sender == self._context.uuid:
            self._find_ourselves(endpoint, address)
            return None
        if endpoint == self._context.endpoint:
            self._context.count("mesh.endpoint_taken")
            return None
        peer = self._peer_of(sender, endpoint, address) or self._come_in(endpoint)
        if peer is not None:
            self._peers.identify(peer, sender)
        return peer

    def _find_ourselves(self, endpoint: str, address: str) -> None:
        """The endpoint in the HELO, and the address it came by, lead to this node."""
        for ours in (endpoint, joined(address, endpoints.split(endpoint)[1])):
            peer = self._peers.at(ours)
            self._peers.own(ours)
            if peer is not None and peer.stage not in PRESENT:
                self._peers.drop(peer)
                self._peers.forget(peer)

    def _peer_of(self, sender: bytes, endpoint: str, address: str) -> Peer | None:
        """The peer known by this UUID or endpoint, updated to where it listens now."""
        peer, there = self._peers.get(sender), self._peers.at(endpoint)
        if there is not None and there is not peer and there.stage in PRESENT:
            self._gone(there, RESTARTED)
        called = self._called_otherwise(endpoint, address, peer)
        if peer is None and there is None and called is not None:
            self._peers.move(called, endpoint)
            return called
        if called is not None:
            self._peers.drop(called)
            self._peers.forget(called)
        known = there if peer is None or peer is there else self._move(peer, there, endpoint)
        if known is not None and called is not None:
            known.is_manual = known.is_manual or called.is_manual
        return known

    def _called_otherwise(self, endpoint: str, address: str, known: Peer | None) -> Peer | None:
        """A peer that we call without success at another address of the same machine with the same port."""
        host, port = endpoints.split(endpoint)
        for peer in self._peers.all():
            if peer.stage is not State.CALLING or peer is known:
                continue
            called, its_port = endpoints.split(peer.endpoint)
            if its_port == port and called != host and self._is_at(called, address):
                self._peers.rename(peer.endpoint, endpoint)
                return peer
        return None

    def _is_at(self, host: str, address: str) -> bool:
        mine = endpoints.split(self._context.endpoint)[0]
        return host == address or (is_loopback(host) and address == mine)

    def _move(self, peer: Peer, there: Peer | None, endpoint: str) -> Peer:
        """PEE-012: it listens elsewhere now. What we have sent there counts as sent to it."""
        is_called = there is not None and there.stage is State.CALLING
        if there is not None:
            self._peers.forget(there)
            peer.helo = there.helo
        self._peers.move(peer, endpoint)
        if peer.stage not in PRESENT:
            self._peers.turn(peer, State.CALLING if is_called else State.GONE)
        return peer

    def _come_in(self, endpoint: str) -> Peer | None:
        """An unknown peer; None if too many came in this second, or there are too many peers."""
        second = self._context.now.mono // SECOND
        if second != self._second:
            self._second, self._unknown = second, 0
        self._unknown += 1
        if self._unknown > limits.GREETINGS_MAX:
            self._context.count("mesh.helo_throttled")
            return None
        peer = self._peers.add(endpoint, CAME) if self._peers.make_room(CAME) else None
        if peer is None:
            self._context.count("mesh.full")
        return peer


def reachable(endpoint: str, address: str) -> str:
    """Where to call it: the address that TCP shows replaces a wildcard, or a loopback of another machine.

    >>> reachable("0.0.0.0:50001", "10.0.0.7"), reachable("127.0.0.1:50001", "10.0.0.7")
    ('10.0.0.7:50001', '10.0.0.7:50001')
    >>> reachable("127.0.0.1:50001", "127.0.0.1"), reachable("10.0.0.8:50001", "10.0.0.7")
    ('127.0.0.1:50001', '10.0.0.8:50001')
    """
    host, port = endpoints.split(endpoint)
    is_hidden = is_loopback(host) and not is_loopback(address)
    shown = joined(address, port) if is_hidden or endpoints.is_any(host) else ""
    return shown or endpoint


def joined(address: str, port: int) -> str:
    """An endpoint at the address that TCP shows; empty if there is none."""
    try:
        return endpoints.join(address, port)
    except ValueError:
        return ""
