"""Peers: calling, greeting, keeping in touch and parting, by the table of `states` (PEE-010 to PEE-034).

Each peer is called at its endpoint over a separate link, and its messages are recognised by its UUID. `introductions`
tells peers of each other, `times` keeps session time; messages about the log are for `gossip`.
"""

from collections.abc import Callable
from typing import Any, Final

from weft.base.budget import Part
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND, Now
from weft.cores.document import limits, messages
from weft.cores.document.arriving import Arriving
from weft.cores.document.context import Context
from weft.cores.document.gossip import Gossip
from weft.cores.document.introductions import Introductions
from weft.cores.document.log import Log
from weft.cores.document.peers import LINKED, MANUAL, MDNS, PRESENT, TOLD, Peer, Peers, Saying
from weft.cores.document.states import TABLE, On, State
from weft.cores.document.times import Times
from weft.cores.kit.timers import earliest
from weft.wire.document import endpoints
from weft.wire.document.frames import word_of
from weft.wire.document.messages import (
    READS_PACKS,
    READS_SUMS,
    Beat,
    Bout,
    Chat,
    Gbye,
    Gsip,
    Helo,
    Message,
    PeerAt,
    Progress,
    Time,
    Xmsg,
    Xpak,
)

CAPS: Final = (READS_SUMS, READS_PACKS)
"""Capabilities stated in our BEATs."""
SILENT, LINK_FULL, GOODBYE = "silent", "link-full", "goodbye"
"""Why a peer is gone."""


class Mesh:
    """All peers of a session. Messages about the log are for `gossip`."""

    def __init__(self, context: Context, peers: Peers, log: Log, gossip: Gossip) -> None:
        self._context, self._peers = context, peers
        self.log, self.gossip = log, gossip
        self.introductions = Introductions(context, peers, self.beat)
        self.times = Times(context, peers)
        self._arriving = Arriving(context, peers, self._gone)
        self.queued_bytes = 0
        """Bytes of memory of messages from peers that are not ACTIVE yet."""
        self.room = Part("queued", lambda: self.queued_bytes)
        """Its part of the core's budget; the whole of it here."""
        self._manual: dict[str, None] = {}
        self._is_open = False
        self._beat_soon_at: int | None = None
        self.alone_since: int | None = None
        """Since when no peer is ACTIVE, monotonic ns; None: some are, or the session is not open (JAM-021)."""

    @property
    def is_virgin(self) -> bool:
        """Whether this node may still adopt the session time of a peer (PEE-041)."""
        return self.times.is_virgin

    def facts(self) -> dict[str, int]:
        """How many peers are in which state; for how many seconds none is ACTIVE; the greatest skew of their times."""
        alone = 0 if self.alone_since is None else self._context.now.mono - self.alone_since
        skew = max((abs(peer.skew_ns or 0) for peer in self._peers.active()), default=0)
        return self._peers.counts() | {"alone_s": alone // SECOND, "skew_ms": skew // MILLISECOND}

    # Opening and closing

    def open(self, now: Now) -> None:
        """Bind our ROUTER; peers are called once it listens."""
        for endpoint in self._context.settings.peers:
            try:
                self._manual[endpoints.parse(endpoint)] = None
            except PeerError:
                self._context.count("mesh.bad_endpoint")
        self._bind()

    def _bind(self) -> None:
        context, settings = self._context, self._context.settings
        work = messages.OpenSession(
            session=context.session,
            uuid=context.uuid,
            listen=settings.listen,
            advertise=settings.advertise,
            text=settings.text,
            mdns=settings.mdns,
        )
        context.perform(work)

    def opened(self, endpoint: str, now: Now) -> None:
        """Our ROUTER listens: call the known peers. Empty: it does not, and none is called."""
        self._context.endpoint = endpoint
        self._is_open = bool(endpoint)
        self.alone_since = now.mono if endpoint and not self._peers.active() else None
        if not endpoint:
            return
        for peer in self._peers.all():
            if peer.stage is State.GONE:
                self._turn(peer, On.DUE)
        for manual in list(self._manual):
            self.meet(manual, MANUAL)

    def bye(self, text: str) -> None:
        """Say goodbye to all and drop them; they are remembered, and called when we are opened again (PEE-013)."""
        for peer in self._peers.all():
            if peer.stage in PRESENT:
                self._context.say(peer.endpoint, Gbye(text))
            if peer.stage in LINKED:
                self._let_go(peer)
        self._is_open = False
        self.alone_since = self._beat_soon_at = None

    def restart(self, uuid: bytes) -> None:
        """Continue under another identity (GSP-015)."""
        self.bye("identity")
        self._context.uuid = uuid
        self.introductions.restart()
        self._bind()

    # Whom to call

    def meet(self, endpoint: str, how: str) -> None:
        """Call an endpoint, unless it is ours, known or refused; PeerError `bad-endpoint` for an invalid one.

        A peer that is gone is called at once, if a person or mDNS names it.
        """
        endpoint = endpoints.parse(endpoint)
        if how == MANUAL:
            self._manual[endpoint] = None
        peer = self._peers.at(endpoint)
        if peer is not None:
            peer.is_manual, peer.is_mdns = peer.is_manual or how == MANUAL, peer.is_mdns or how == MDNS
            if how in (MANUAL, MDNS) and peer.stage is State.GONE and self._is_open:
                self._turn(peer, On.DUE)
        elif self._is_open and self._peers.may_be_called(endpoint):
            peer = self._peers.add(endpoint, how) if self._peers.make_room(how) else None
            if peer is None:
                self._context.count("mesh.full")
            else:
                self._turn(peer, On.MET)

    def found(self, order: messages.Found, now: Now) -> None:
        """An endpoint was found by mDNS (PEE-021): not called if it is ours, of another session, or of a known peer."""
        if order.uuid == self._context.uuid:
            self._peers.own(order.endpoint)
            return
        known = None if order.uuid is None else self._peers.get(order.uuid)
        if order.text != self._context.settings.text or (known is not None and known.stage in PRESENT):
            return
        self.meet(order.endpoint, MDNS)

    def vanish(self, endpoint: str) -> None:
        """Gone, by a report of mDNS: a hint, which five seconds of silence confirm (PEE-021)."""
        peer = self._peers.at(endpoint)
        if peer is not None and peer.is_active:
            peer.hinted_at = self._context.now.mono
            self.beat(peer)
            self._plan(peer)

    def link_full(self, endpoint: str) -> None:
        """Our link to it is full, so it does not read (PEE-002)."""
        peer = self._peers.at(endpoint)
        if peer is not None:
            self._turn(peer, On.LOST, LINK_FULL)

    # Hearing

    def hear(self, sender: bytes, message: Message, address: str, now: Now) -> None:
        """A message; `address` is the sender's, as TCP shows it. Never raises (PEE-006)."""
        self._context.count(f"mesh.rx.{word_of(message)}")
        if not self._is_open:
            return
        peer = self._speaker(sender, message, address)
        if peer is not None and self._is_whole(peer, message):
            peer.heard_at, peer.is_evasive, peer.hinted_at = self._context.now.mono, False, None
            self._turn(peer, self._judge(message), message)

    def _is_whole(self, peer: Peer, message: Message) -> bool:
        """Whether the message is intact, as far as can be known: a peer that sends checksums always does (FLD-030)."""
        if peer.says_sums and not message.has_sum and not isinstance(message, Helo):
            self._context.count("mesh.rx.bad_sum")
            return False
        peer.says_sums = message.has_sum
        return True

    def _speaker(self, sender: bytes, message: Message, address: str) -> Peer | None:
        if isinstance(message, Helo):
            return self._arriving.hear(sender, message.endpoint, address)
        peer = self._peers.get(sender)
        if peer is not None and peer.stage in PRESENT:
            return peer
        self._context.count("mesh.rx.before_helo")
        return None

    def _judge(self, message: Message) -> On:
        if isinstance(message, Bout):
            return On.BOUT if message.session == self._context.settings.text else On.OTHER_BOUT
        return JUDGED.get(type(message), On.SAID)

    # Actions of the table

    def _turn(self, peer: Peer, on: On, about: Any = None) -> None:
        """One step of the table: set the new state, then do the action, then set the time of the next look."""
        cell = TABLE.get((peer.stage, on))
        if cell is None:
            return
        if cell.then is not State.UNKNOWN:
            self._peers.turn(peer, cell.then)
        getattr(self, cell.do)(peer, about)
        self._plan(peer)

    def call(self, peer: Peer, about: Any = None) -> None:
        """Send HELO, and wait for its HELO."""
        peer.tries += 1
        peer.called_at = peer.came_at = self._context.now.mono
        self._say_helo(peer)

    def welcome(self, peer: Peer, about: Any = None) -> None:
        """It called us: HELO is the answer, and BOUT a question."""
        peer.came_at = self._context.now.mono
        self._say_helo(peer)
        self.greet_back(peer)

    def greet_back(self, peer: Peer, about: Any = None) -> None:
        """It answers: ask for its session, and state how much of its log we have."""
        peer.tries = 0
        self.repeat_bout(peer)
        self._gossip_of(peer)

    def repeat_bout(self, peer: Peer, about: Any = None) -> None:
        """Ask again now, and repeatedly after pauses."""
        peer.tries += 1
        peer.called_at = self._context.now.mono
        self._say_bout(peer)

    def answer_helo(self, peer: Peer, about: Any = None) -> None:
        """It did not receive our HELO, or has started again."""
        if peer.helo.may_answer(self._context.now.mono):
            self._say_helo(peer)

    def answer_bout(self, peer: Peer, about: Any = None) -> None:
        """The same for BOUT."""
        if peer.bout.may_answer(self._context.now.mono):
            self._say_bout(peer)

    def join(self, peer: Peer, about: Any = None) -> None:
        """It is of our session: introduce it, tell it what we have, our state and the time, and process its queue."""
        peer.gone_at = self.alone_since = None
        peer.tries, peer.active_at = 0, self._context.now.mono
        self.introductions.introduce(peer)
        self.gossip.greet(peer)
        self.beat(peer)
        self.times.active(peer)
        self._context.tell(messages.PeerActive(self._context.session, peer.id, peer.endpoint))
        queued = self._take_queue(peer)
        for gossip in queued:
            self.gossip.hear(peer, gossip)

    def refuse(self, peer: Peer, about: Any = None) -> None:
        """It is of another session: do not call it for a minute."""
        context = self._context
        context.say(peer.endpoint, Gbye("session"))
        self._let_go(peer)
        self._peers.forget(peer)
        self._peers.refuse(peer.endpoint, about.session)
        context.tell(messages.PeerMismatch(context.session, peer.endpoint, about.session))

    def hold(self, peer: Peer, about: Any = None) -> None:
        """Queue its message until it is a peer."""
        if len(peer.queue) < limits.QUEUED_MAX and self.room.has_room(_cost(about)):
            peer.queue.append(about)
            self.queued_bytes += _cost(about)
        else:
            self.overhear(peer)

    def _take_queue(self, peer: Peer) -> list[Gsip]:
        """The messages that waited until it became a peer."""
        queued, peer.queue = peer.queue, []
        self.queued_bytes -= sum(map(_cost, queued))
        return queued

    def overhear(self, peer: Peer, about: Any = None) -> None:
        """It sends messages before it has stated its session."""
        self._context.count("mesh.rx.not_active")

    def pass_on(self, peer: Peer, about: Any = None) -> None:
        """Pass its message to the part that needs it."""
        HEARD[type(about)](self, peer, about)

    def part(self, peer: Peer, about: Any = None) -> None:
        """It says goodbye: it is called again after a pause."""
        self._gone(peer, GOODBYE)
        peer.paused_until = self._context.now.mono + limits.AFTER_BYE_NS

    def lose(self, peer: Peer, about: Any = None) -> None:
        """It is gone, or its link is full: call it again over a new link."""
        self._gone(peer, about or SILENT)

    def forget(self, peer: Peer, about: Any = None) -> None:
        """It will not come back."""
        self._peers.drop(peer)
        self._peers.forget(peer)

    def beat(self, peer: Peer, about: Any = None) -> None:
        """Send a BEAT: we are alive, our view, and the state of our log."""
        sequence = self.log.latest(self._context.uuid)
        peer.beat_at = self._context.now.mono
        self._context.say(peer.endpoint, Beat(sequence, self._peers.view, self.log.check, CAPS))

    def nudge(self, peer: Peer, about: Any = None) -> None:
        """It is silent: send a message that makes it answer."""
        peer.is_evasive = True
        self._context.tell(messages.PeerEvasive(self._context.session, peer.id, peer.endpoint))
        self.beat(peer)
        self._gossip_of(peer)

    # Parting

    def _gone(self, peer: Peer, why: str) -> None:
        """Drop its link; its log stays."""
        self._context.tell(messages.PeerGone(self._context.session, peer.id, peer.endpoint, why))
        self._let_go(peer)

    def _let_go(self, peer: Peer) -> None:
        self._peers.drop(peer)
        self._peers.turn(peer, State.GONE)
        now = self._context.now.mono
        peer.gone_at, peer.called_at, peer.tries, peer.paused_until = now, now, 0, 0
        peer.repaired_at = peer.hinted_at = None
        peer.helo, peer.bout = Saying(), Saying()
        self._take_queue(peer)
        peer.caps, peer.says_sums = (), False
        self._context.sums.discard(peer.endpoint)
        peer.named, peer.view, peer.repaired_by, peer.is_evasive = {}, None, [], False
        self.introductions.forget(peer.endpoint)
        if not self._peers.active() and self.alone_since is None:
            self.alone_since = now
        self.gossip.gone(peer)
        self._plan(peer)

    # Saying

    def _say_helo(self, peer: Peer) -> None:
        peer.helo.said_at = self._context.now.mono
        self._context.say(peer.endpoint, Helo(self._context.endpoint))

    def _say_bout(self, peer: Peer) -> None:
        peer.bout.said_at = self._context.now.mono
        self._context.say(peer.endpoint, Bout(self._context.settings.text))

    def _gossip_of(self, peer: Peer) -> None:
        self._context.say(peer.endpoint, Gsip((Progress(peer.id, self.log.latest(peer.id)),)))

    def chat(self, text: str) -> None:
        """Send a chat message to the people at all peers."""
        for peer in self._peers.active():
            self._context.say(peer.endpoint, Chat(text))

    def note_own(self) -> None:
        """An operation was issued here: session time may no longer be adopted, and a BEAT soon tells our state."""
        self.times.settle()
        self._beat_soon_at = self._context.now.mono + self._context.timing.beat_soon_ns

    # Messages of peers

    def _hear_of_peer(self, peer: Peer, message: PeerAt) -> None:
        """PEE-033: an endpoint that is ours, or known, is no news."""
        self.introductions.hear(peer, message.endpoint)
        is_known = self._peers.at(message.endpoint) is not None
        if not is_known and not endpoints.is_any(endpoints.split(message.endpoint)[0]):
            self.meet(message.endpoint, TOLD)

    def _hear_chat(self, peer: Peer, message: Chat) -> None:
        self._context.tell(messages.ChatHeard(self._context.session, peer.id, message.text))

    def _hear_time(self, peer: Peer, message: Time) -> None:
        self.times.hear(peer, message)

    def _hear_beat(self, peer: Peer, message: Beat) -> None:
        peer.caps = message.caps
        (self._context.sums.add if READS_SUMS in peer.caps else self._context.sums.discard)(peer.endpoint)
        self.introductions.compare(peer, message)
        self.gossip.hear(peer, message)

    def _hear_log(self, peer: Peer, message: Gsip | Xmsg | Xpak) -> None:
        self.gossip.hear(peer, message)

    # Time

    def wake(self, now: Now) -> None:
        """Call, repeat, beat, and notice silent peers."""
        if not self._is_open:
            return
        self.times.wake()
        self.introductions.wake()
        self._pardon()
        if self._beat_soon_at is not None and self._beat_soon_at <= now.mono:
            self._beat_soon_at = None
            for peer in self._peers.active():
                self.beat(peer)
        for peer in self._peers.all():
            if peer.due_at <= now.mono and peer.stage is not State.UNKNOWN:  # another peer may have displaced it
                self._look_at(peer)

    def _pardon(self) -> None:
        """A peer refused a minute ago may be called again; one named by a person is called."""
        now, refused = self._context.now.mono, self._peers.refused
        for endpoint in [endpoint for endpoint, until in refused.items() if until <= now]:
            self._peers.pardon(endpoint)
            if endpoint in self._manual:
                self.meet(endpoint, MANUAL)

    def _look_at(self, peer: Peer) -> None:
        on = LOOK[peer.stage](self, peer)
        if on is None:
            self._plan(peer)
        else:
            self._turn(peer, on)

    def _look_at_absent(self, peer: Peer) -> On | None:
        now = self._context.now.mono
        if peer.gone_at is not None and not peer.is_manual and now >= peer.gone_at + limits.RECALL_NS:
            return On.EXPIRED
        if peer.stage is State.GONE and not self._peers.make_room(MANUAL if peer.is_manual else TOLD):
            peer.called_at = now
            return None
        return On.DUE

    def _look_at_greeted(self, peer: Peer) -> On:
        return On.LOST if self._context.now.mono >= peer.heard_at + self._context.timing.gone_ns else On.DUE

    def _look_at_active(self, peer: Peer) -> On | None:
        timing, now = self._context.timing, self._context.now.mono
        if now >= self._lost_at(peer):
            return On.LOST
        if not peer.is_evasive and now >= peer.heard_at + timing.evasive_ns:
            return On.SILENT
        return On.DUE if now >= self._beat_at(peer) else None

    def _lost_at(self, peer: Peer) -> int:
        timing = self._context.timing
        lost_at = peer.heard_at + timing.gone_ns
        return lost_at if peer.hinted_at is None else min(lost_at, peer.hinted_at + timing.hint_gone_ns)

    def _beat_at(self, peer: Peer) -> int:
        timing = self._context.timing
        said_at = self._context.said_at.get(peer.endpoint, 0)
        return min(said_at + timing.beat_ns, peer.beat_at + timing.beat_most_ns)

    def _plan(self, peer: Peer) -> None:
        """The time of the next look; too early does no harm."""
        timing = self._context.timing
        if peer.stage is State.ACTIVE:
            due_at = min(self._lost_at(peer), self._beat_at(peer))
            peer.due_at = due_at if peer.is_evasive else min(due_at, peer.heard_at + timing.evasive_ns)
        elif peer.stage is State.GREETED:
            peer.due_at = min(peer.called_at + _nth(limits.CALLS_NS, peer.tries - 1), peer.heard_at + timing.gone_ns)
        else:
            peer.due_at = max(peer.called_at + self._pause(peer), peer.paused_until)

    def _pause(self, peer: Peer) -> int:
        """The pause between two calls."""
        if peer.gone_at is None:
            return _nth(limits.CALLS_NS, peer.tries - 1)
        if self._context.now.mono >= peer.gone_at + limits.RECALL_NS:
            return limits.RECALL_SLOWLY_NS
        return _nth(limits.RECALLS_NS, peer.tries)

    def deadline(self) -> int | None:
        """When the next peer, or session time, needs attention."""
        if not self._is_open:
            return None
        dues = [peer.due_at for peer in self._peers.all()]
        dues += [until for endpoint, until in self._peers.refused.items() if endpoint in self._manual]
        return earliest(self._beat_soon_at, self.times.deadline(), self.introductions.deadline(), *dues)


def _nth(pauses: tuple[int, ...], number: int) -> int:
    return pauses[min(number, len(pauses) - 1)]


JUDGED: Final[dict[type, On]] = {Helo: On.HELO, Gsip: On.GOSSIP, Gbye: On.GBYE}


def _cost(gossip: Gsip) -> int:
    """Bytes of memory of a message that waits until its peer is ACTIVE."""
    return limits.NAMED_COST * (1 + len(gossip.entries))


HEARD: Final[dict[type, Callable[[Mesh, Peer, Any], None]]] = {
    PeerAt: Mesh._hear_of_peer,
    Chat: Mesh._hear_chat,
    Time: Mesh._hear_time,
    Beat: Mesh._hear_beat,
    Gsip: Mesh._hear_log,
    Xmsg: Mesh._hear_log,
    Xpak: Mesh._hear_log,
}
LOOK: Final[dict[State, Callable[[Mesh, Peer], On | None]]] = {
    State.CALLING: Mesh._look_at_absent,
    State.GREETED: Mesh._look_at_greeted,
    State.ACTIVE: Mesh._look_at_active,
    State.GONE: Mesh._look_at_absent,
}
