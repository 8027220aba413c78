"""Makes every node get every operation: what peers have, what we ask for, what we answer (GSP-020 to GSP-027).

    knowing     what each ACTIVE peer has, was told and was sent
    asking      what we lack
    answering   what they lack

At rest, with equal checks everywhere, it sends nothing (GSP-026).
"""

from collections.abc import Callable
from typing import Any, Final

from weft.base.now import Now
from weft.cores.document.answering import Answering
from weft.cores.document.asking import Asking
from weft.cores.document.context import Context
from weft.cores.document.knowing import Knowing, Places
from weft.cores.document.limits import (
    ANSWER_MAX,
    COMPARE_NS,
    COMPARED_MAX,
    DIVERGED_NS,
    NODES_PER_TELLING,
    REPEAT_NS,
    SEQUENCE_MAX,
)
from weft.cores.document.log import Log, Taken
from weft.cores.document.messages import LogDiverged
from weft.cores.document.peers import Peer, Peers
from weft.cores.kit.timers import earliest
from weft.wire.document.messages import Beat, Gsip, Message, Progress, Xmsg, Xpak

JITTER_PERCENT: Final = 20  # GSP-025


class Gossip:
    """What each peer has of each source."""

    def __init__(self, context: Context, log: Log, peers: Peers) -> None:
        self.context, self.log, self.peers = context, log, peers
        self._places = Places()
        self._known: dict[bytes, Knowing] = {}
        """ACTIVE peers."""
        self._asking = Asking(context, log, self._places, self._known)
        self._answering = Answering(context, log, self._known)
        self._tick_at: int | None = None
        self._turn = b""
        """The peer that was told last."""

    @property
    def is_catching_up(self) -> bool:
        """Whether much is arriving: folding it piece by piece would undo and redo the same operations repeatedly."""
        return self._asking.is_streaming

    # Peers

    def greet(self, peer: Peer) -> None:
        """A peer is ACTIVE: tell it what we have of every other source, in the order of UUIDs."""
        knowing = self._known[peer.id] = Knowing(peer, self.context.now.mono)
        knowing.to_tell = {source: None for source, _ in self.log.sources() if source != peer.id}
        self._tell(knowing)
        if self._tick_at is None:
            self._plan()

    def gone(self, peer: Peer) -> None:
        """Forget what it has and what was sent to it."""
        if self._known.pop(peer.id, None) is not None:
            self._asking.gone(peer.id)
        if not self._known:
            self._tick_at = None

    def restart(self) -> None:
        """We have a new identity: forget what peers know and what was sent."""
        for knowing in list(self._known.values()):
            self.gone(knowing.peer)
        self._answering.restart()

    # Hearing

    def hear(self, peer: Peer, message: Message) -> None:
        """GSIP, BEAT, XMSG or XPAK of an ACTIVE peer; other messages are ignored."""
        knowing = self._known.get(peer.id)
        do = HEARD.get(type(message))
        if knowing is not None and do is not None:
            do(self, knowing, message)

    def _hear_gsip(self, knowing: Knowing, gossip: Gsip) -> None:
        """Answer each source once per GSIP, whatever it says: answering 4,096 lines separately would take seconds."""
        for source, upto in dict(gossip.entries).items():
            if source == self.context.uuid and self.log.doubt(upto, knowing.uuid):
                return
            self._learn(knowing, source, min(upto, SEQUENCE_MAX))
            latest = self.log.latest(source)
            if upto > latest and not self.log.refuses(source):
                self._asking.hearsay(source, knowing, upto)
            elif upto < latest:
                self._answering.answer(knowing, source, upto)

    def _hear_beat(self, knowing: Knowing, beat: Beat) -> None:
        if beat.sequence is not None:
            self._learn(knowing, knowing.uuid, min(beat.sequence, SEQUENCE_MAX))
            if beat.sequence > self.log.latest(knowing.uuid) and not self.log.refuses(knowing.uuid):
                self._asking.hearsay(knowing.uuid, knowing, beat.sequence)
            latest = self.log.latest(knowing.uuid)
            if beat.sequence < latest and beat.check != self.log.check:  # an old disk under an old identity (GSP-015)
                self.context.say(knowing.peer.endpoint, Gsip((Progress(knowing.uuid, latest),)))
        if beat.check is not None:
            self._compare(knowing, beat.check)

    def _compare(self, knowing: Knowing, check: int) -> None:
        """An equal check shows that the peer has what we have.

        A different one with equal numbers, that bytes differ (GSP-011).
        """
        log = self.log
        if check == log.check:
            knowing.unlike_at, knowing.is_unlike_told, knowing.compared = None, False, (b"", 0)
            if knowing.equal != log.count:
                knowing.equal = log.count
                knowing.forget_known()
                for source, latest in log.sources():
                    knowing.set(knowing.knows, self._place(source), latest)
            return
        now = self.context.now.mono
        if not self._is_level(knowing):
            knowing.unlike_at = None
        elif knowing.unlike_at is None:
            knowing.unlike_at = now
        else:
            self._differ(knowing, now - knowing.unlike_at)

    def _differ(self, knowing: Knowing, since_ns: int) -> None:
        """It has other bytes under some number: ask for everything it has, a part with each BEAT.

        Forks are then found.
        """
        if since_ns >= DIVERGED_NS and not knowing.is_unlike_told:
            knowing.is_unlike_told = True
            self.context.tell(LogDiverged(self.context.session, knowing.uuid))
        if since_ns < COMPARE_NS:
            return
        room = COMPARED_MAX
        own = self.context.uuid
        for source, first in knowing.next_pieces([pair for pair in self.log.sources() if pair[0] != own]):
            self.context.say(knowing.peer.endpoint, Gsip((Progress(source, first),)))
            room -= min(ANSWER_MAX, self.log.latest(source) - first)
            if room <= 0:
                return

    def _is_level(self, knowing: Knowing) -> bool:
        """Whether it has as much as we of every source: it said so, or it was told and would have asked for more.

        It need not tell us about our own source.
        """
        own = self.context.uuid
        return all(
            latest in (knowing.known(place := self._place(source)), knowing.last_told(place))
            for source, latest in self.log.sources()
            if source != own
        )

    def _hear_xmsg(self, knowing: Knowing, xmsg: Xmsg) -> None:
        taken = self.log.take(xmsg.body, knowing.uuid)
        do = TAKEN.get(taken.code)
        if do is None:
            return
        self._learn(knowing, taken.source, taken.sequence)
        do(self, knowing, taken)

    def _grown(self, knowing: Knowing, taken: Taken) -> None:
        self._asking.progressed(taken.source)

    def _known_already(self, knowing: Knowing, taken: Taken) -> None:
        """The only news is that the peer has it."""

    def _beyond(self, knowing: Knowing, taken: Taken) -> None:
        self._asking.gap(taken.source, knowing, taken.sequence)

    def _forked(self, knowing: Knowing, taken: Taken) -> None:
        """A new winner is sent to all; a peer that still sends a loser gets the winner.

        Forks beyond a gap are not sent.
        """
        if taken.sequence > self.log.latest(taken.source):
            return
        counts = self.log.known(taken.source, taken.sequence)
        if taken.is_further:
            self._answering.spread(counts)
        else:
            self.context.say(knowing.peer.endpoint, Xmsg(counts))

    def _learn(self, knowing: Knowing, source: bytes, upto: int) -> None:
        if upto:
            knowing.learn(self._place(source), upto)
            if upto > self.log.latest(source):
                knowing.equal = -1  # an equal check would contradict that

    def _place(self, source: bytes) -> int:
        place, loser = self._places.take(source, is_real=self.log.highest(source) > 0)
        if loser is not None:
            for knowing in self._known.values():
                knowing.clear(place)
        return place

    # Saying

    def push(self, body: bytes, source: bytes, sequence: int) -> None:
        """Send an own operation to every ACTIVE peer (GSP-005)."""
        assert source == self.context.uuid
        self._answering.push(body, sequence)

    def _tell(self, knowing: Knowing) -> None:
        """Tell a peer of sources, as many as its link takes at a time."""
        now = self.context.now.mono
        while knowing.to_tell and knowing.may_tell(now):
            source = next(iter(knowing.to_tell))
            del knowing.to_tell[source]
            latest, place = self.log.latest(source), self._place(source)
            knowing.set(knowing.announced, place, latest)
            knowing.set(knowing.told_at, place, now)
            knowing.note_told()
            self.context.say(knowing.peer.endpoint, Gsip((Progress(source, latest),)))

    def _tell_next(self) -> None:
        """Tell the next peers, one in sixteen, of operations that they are not known to have (GSP-025)."""
        uuids = sorted(self._known)
        nodes = len(uuids) + 1
        behind = [uuid for uuid in uuids if uuid > self._turn]
        for uuid in (behind + uuids)[: min(len(uuids), -(-nodes // NODES_PER_TELLING))]:
            self._turn = uuid
            knowing = self._known[uuid]
            for source, latest in self.log.sources():
                if source != uuid and self._is_news(knowing, source, latest):
                    knowing.to_tell[source] = None
            self._tell(knowing)

    def _is_news(self, knowing: Knowing, source: bytes, latest: int) -> bool:
        """A source with a gap is told when the gap is filled, or when no present peer can fill it."""
        place = self._place(source)
        if knowing.known(place) >= latest or (self.log.lowest_held(source) and self._asking.is_open(source)):
            return False
        if knowing.last_told(place) != latest:
            return True
        return self.context.now.mono - knowing.told_at[place] >= REPEAT_NS

    def _plan(self) -> None:
        self._tick_at = self.context.now.mono + self.context.jitter(self.context.timing.gossip_ns, JITTER_PERCENT)

    # Time

    def wake(self, now: Now) -> None:
        """Time has passed."""
        self.log.wake(now)
        self._asking.wake()
        for knowing in self._known.values():
            due = knowing.due_at
            if due is not None and due <= now.mono:
                self._answering.resume(knowing)
                self._tell(knowing)
        if self._tick_at is not None and self._tick_at <= now.mono:
            self._tell_next()
            self._plan()

    def deadline(self) -> int | None:
        """When to be woken."""
        of_peers = [knowing.due_at for knowing in self._known.values()]
        return earliest(self._tick_at, self._asking.deadline(), self.log.deadline(), *of_peers)


def _hear_pack(gossip: Gossip, knowing: Knowing, pack: Xpak) -> None:
    """As if each operation had come alone (GSP-027)."""
    for body in pack.bodies:
        HEARD[Xmsg](gossip, knowing, Xmsg(body))


HEARD: Final[dict[type, Callable[[Gossip, Knowing, Any], None]]] = {
    Gsip: Gossip._hear_gsip,
    Beat: Gossip._hear_beat,  # the tables stand below the class
    Xmsg: Gossip._hear_xmsg,
    Xpak: _hear_pack,
}
TAKEN: Final[dict[str, Callable[[Gossip, Knowing, Taken], None]]] = {
    "new": Gossip._grown,
    "duplicate": Gossip._known_already,
    "held": Gossip._beyond,
    "shed": Gossip._beyond,
    "fork": Gossip._forked,
}
"""What follows a received body; other outcomes need no action here."""


def known_most(gossip: Gossip, source: bytes) -> int:
    """The most that any ACTIVE peer is known to have of a source."""
    place = gossip._place(source)
    return max((knowing.known(place) for knowing in gossip._known.values()), default=0)
