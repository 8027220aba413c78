"""Session time: one clock for all nodes that have met, however wrong their machines' clocks are (PEE-040 to PEE-043).

It starts as the wall clock and continues as the monotonic clock. A virgin (a node whose time is still free) adopts the
time of the first peer it meets; of two virgins, the one with the smaller UUID is the reference. A node that has
adopted, given or used a time keeps it: when two groups with different times merge, both times stay, and the order of
the document does not suffer.
"""

from weft.cores.document import limits
from weft.cores.document.context import MICROSECONDS, Context
from weft.cores.document.messages import TimeSkew
from weft.cores.document.peers import Peer, Peers
from weft.wire.document.messages import Time


class Times:
    """`is_virgin`: it has adopted no time, is no node's reference, and has issued no operation."""

    def __init__(self, context: Context, peers: Peers) -> None:
        self._context, self._peers = context, peers
        self.is_virgin = True
        self._asked: Peer | None = None
        """The peer that we ask."""
        self._asks = 0
        self._asked_at = 0

    def settle(self) -> None:
        """Session time was used: it is kept from now on."""
        self.is_virgin = False
        self._asked = None

    def active(self, peer: Peer) -> None:
        """A peer has become ACTIVE: ask it, if it is the only one; tell it the time, if we know it (PEE-041)."""
        if not self.is_virgin:
            self._say(peer)
        elif len(self._peers.active()) == 1:
            self._asked, self._asks = peer, 0
            self._ask(peer)

    def _say(self, peer: Peer) -> None:
        self._context.say(peer.endpoint, Time(self._context.time))

    def _ask(self, peer: Peer) -> None:
        self._asks += 1
        self._asked_at = self._context.now.mono
        self._context.say(peer.endpoint, Time())

    def hear(self, peer: Peer, time: Time) -> None:
        """It asks for the time, or tells it."""
        if time.seconds is None:
            self._answer(peer)
        elif 0 < time.seconds <= limits.TIMESTAMP_MAX:
            self._compare(peer, round(time.seconds * MICROSECONDS) * 1_000)  # a double has no nanoseconds
        else:
            self._context.count("mesh.rx.bad_body")

    def _answer(self, peer: Peer) -> None:
        """PEE-042: a virgin answers only a greater UUID, and is its reference from then on."""
        if not self.is_virgin or self._context.uuid < peer.id:
            self.settle()
            self._say(peer)

    def _compare(self, peer: Peer, theirs: int) -> None:
        """PEE-043: a virgin adopts the time, plus half of the round trip; others only note the skew."""
        context = self._context
        is_jump = theirs - context.time_ns > limits.FUTURE_NS
        if is_jump:
            context.count("mesh.rx.time_jump")
        if self.is_virgin and not is_jump:
            took = context.now.mono - self._asked_at if self._asked is peer else 0
            way = took // 2 if took <= limits.ASK_TIME_NS else 0
            assert context.offset_ns is not None, "time begins with the first verb"
            context.offset_ns += theirs + way - context.time_ns
            peer.skew_ns = 0
            self.settle()
        else:
            self._note_skew(peer, theirs)

    def _note_skew(self, peer: Peer, theirs: int) -> None:
        context = self._context
        is_told = abs(peer.skew_ns or 0) > limits.SKEW_TOLD_NS  # once: repetitions by a peer must not fill the log
        peer.skew_ns = theirs - context.time_ns
        if abs(peer.skew_ns) > limits.SKEW_TOLD_NS and not is_told:
            skew = max(-limits.TOLD_NS_MAX, min(peer.skew_ns, limits.TOLD_NS_MAX))
            context.tell(TimeSkew(context.session, peer.id, skew))

    def wake(self) -> None:
        """Ask again, or give up asking."""
        due_at, peer = self.deadline(), self._asked
        if peer is None or due_at is None or due_at > self._context.now.mono:
            return
        if self._asks < limits.ASKS_MAX and peer.is_active:
            self._ask(peer)
        else:
            self._asked = None

    def deadline(self) -> int | None:
        """When an answer is overdue."""
        return None if self._asked is None else self._asked_at + limits.ASK_TIME_NS
