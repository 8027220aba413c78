"""The node's side of the client protocol: attached clients, what each may send and gets (CLI-001 to CLI-008).

    stranger   only `hello` is accepted; anything else is refused, with one answer a second (CLI-005)
    session    one attached client: registers, sends, answers; dead after `dead_ms` of silence
    gone       its links are removed, then what it held is released (CHN-016); nothing more is sent to it (CHN-030)

A client that greets again with the same id has come back: its earlier session ends at that moment. A client's credit is
checked here, before the engine sees a send (CLI-007); everything about chains is the engine's task. All messages to a
client wait in its `Post` until the end of the turn, so they stand behind every `Persist` of that turn (CHN-033).
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec

from weft.base.effects import Source
from weft.base.now import MILLISECOND, Now
from weft.cores.chains import limits
from weft.cores.chains.clientlink import HolderLink
from weft.cores.chains.context import Context
from weft.cores.chains.messages import (
    ClientLost,
    ClientRefused,
    ClientWelcomed,
    Placed,
    ProcessAttached,
)
from weft.cores.chains.parcel import OUT
from weft.cores.chains.post import CLIENTS, Copies, Post
from weft.cores.chains.rights import READ, REWRITE, SEND, Rights
from weft.cores.chains.session import Session, count_code
from weft.cores.kit.timers import earliest
from weft.wire import clients
from weft.wire.clients import (
    VERSION,
    Asked,
    Beat,
    Bye,
    Conf,
    Credit,
    Drop,
    Error,
    Fail,
    GiveUp,
    Hello,
    Next,
    NextItem,
    Place,
    Refuse,
    Reg,
    SendItem,
    Unreg,
    Welcome,
    each_with_frames,
)

DENIED: Final = "denied"
PARTS: Final = 4  # of a peer on a socket of the file system: localhost, user, group, process
_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9 _.:@+/()\[\]-]*[A-Za-z0-9_.)\]+-])?", re.ASCII)
UNREADABLE: Final = frozenset({"bad-header", "bad-frames"})
"""Codes of unreadable multiparts: ten in a minute end a session. An unknown message is only an error (CLI-006)."""


class Counters(msgspec.Struct):
    """Plain counts since the start."""

    welcomed: int = 0
    lost: int = 0
    """Sessions that have ended."""
    refused: dict[str, int] = {}
    """Greetings refused, by code."""
    unsent: int = 0
    """Multiparts that a client's socket did not accept; they are sent again."""
    copies_lost: int = 0
    """Discarded copies of clients that are gone."""


class Engine(Protocol):
    """Processes everything that concerns chains."""

    def stand(self, session: Session, reg: Reg, now: Now) -> None:
        """Register; the client gets `done`, or the reason of the refusal."""

    def knows(self, session: Session, tag: int) -> bool:
        """Whether this client has sent this tag before."""

    def leave(self, session: Session, reg: int, now: Now, *, forget: bool = False) -> None:
        """Unregister; `forget`: the confirming reader will not come back."""

    def accept(self, session: Session, item: SendItem, frames: tuple[bytes, ...], now: Now) -> None:
        """Process one send; ends in `Session.answer`, now or later."""

    def hand_back(
        self, session: Session, reg: int, item: NextItem, frames: tuple[bytes, ...], now: Now
    ) -> None:  # tidy: one for each thing the wire says
        """A client returns a message."""

    def delete(self, session: Session, reg: int, item: GiveUp, now: Now) -> None:
        """A client ends a message."""

    def fail(self, session: Session, reg: int, item: GiveUp, now: Now) -> None:
        """A client could not handle a message."""

    def confirm(self, session: Session, reg: int, number: int, now: Now) -> None:
        """A client confirms a message."""

    def lose(self, session: Session, now: Now) -> None:
        """The client is gone (CHN-016)."""


class Strangers:
    """Peers that are not clients: when each may be answered again, and which are ignored for a while."""

    def __init__(self) -> None:
        self._until: dict[bytes, tuple[int, bool]] = {}

    def may_answer(self, peer: bytes, mono: int) -> bool:
        """Whether to answer this peer now; at most once a second."""
        if mono < self._until.get(peer, (0, False))[0]:
            return False
        self._note(peer, mono + limits.STRANGER_NS, is_muted=False)
        return True

    def is_muted(self, peer: bytes, mono: int) -> bool:
        """Whether this peer is ignored, because it was cut off recently."""
        until, is_muted = self._until.get(peer, (0, False))
        return is_muted and mono < until

    def mute(self, peer: bytes, until: int) -> None:
        """Ignore this peer until then."""
        self._note(peer, until, is_muted=True)

    def _note(self, peer: bytes, until: int, *, is_muted: bool) -> None:
        if peer not in self._until and len(self._until) >= limits.STRANGERS_MAX:
            del self._until[next(iter(self._until))]
        self._until[peer] = until, is_muted


def process_of(kind: str) -> int:
    """The process id in the shell's description of a peer; 0: there is none.

    >>> process_of("localhost:1000:1000:4711"), process_of("127.0.0.1"), process_of("")
    (4711, 0, 0)
    """
    parts = kind.split(":")
    return int(parts[3]) if len(parts) == PARTS and parts[0] == "localhost" and parts[3].isdecimal() else 0


class Sessions:
    """The sessions of all clients that are attached to a node."""

    def __init__(self, context: Context, engine: Engine) -> None:
        self._context, self._engine = context, engine
        self.counters = Counters()
        self.is_full = self.is_stopped = False
        self._by_peer: dict[bytes, Session] = {}
        self._by_id: dict[bytes, Session] = {}
        self._strangers = Strangers()
        mine = context.settings
        self.rights = Rights(mine.allow, mine.uid, is_closed=mine.is_closed)
        self._dirty: dict[bytes, Post] = {}
        """Clients with something new to send to them that are not behind."""
        self._behind: dict[bytes, Post] = {}
        self._copies = copies = Copies()
        copies.room = context.budget.part("copies", limits.COPIES_PERCENT, lambda: copies.cost)
        settings = context.settings
        self._beat_ns, self._dead_ns = settings.beat_ms * MILLISECOND, settings.dead_ms * MILLISECOND
        self._sweep_ns = min(limits.SWEEP_NS, max(self._beat_ns // 2, MILLISECOND))
        self._sweep_at: int | None = None
        self._asked_for: int | None = None
        self._turn = 0
        self._mono = -1

    def __len__(self) -> int:
        return len(self._by_peer)

    def __iter__(self) -> Iterator[Session]:
        """Iterates over a copy, since sessions may end meanwhile."""
        return iter(list(self._by_peer.values()))

    # Messages

    def receive(self, message: Asked, source: Source, now: Now) -> None:
        """Process a message: any allowed one of a client, only a greeting of any other peer (CLI-005)."""
        self._begin(now)
        session = self._by_peer.get(source.peer)
        kind = type(message)
        if kind is Hello or session is None:
            self._knock(message, source, now)
            return
        session.heard_at = now.mono
        _HEAR[kind](self, session, message, now)

    def garbled(self, peer: bytes, code: str, now: Now) -> None:
        """A client sent an unreadable multipart; ten in a minute cut it off (CLI-006)."""
        self._begin(now)
        session = self._by_peer.get(peer)
        if session is None:
            self._refuse_stranger(peer, now)
            return
        session.heard_at = now.mono
        count_code(self._context.counters.errors, code)
        session.say(Error(about="multipart", why=code))
        if code not in UNREADABLE:
            return
        if now.mono > session.garbled_at + limits.GARBLED_NS:
            session.garbled, session.garbled_at = 0, now.mono
        session.garbled += 1
        if session.garbled >= limits.GARBLED_MAX:
            self._strangers.mute(peer, now.mono + limits.GARBLED_NS)
            self._lose(session, "garbled", now, bye=True)

    def ended(self, process: int, now: Now) -> None:
        """A process has died: end its clients without waiting for the silence limit (CLI-005)."""
        self._begin(now)
        for session in self:
            if session.process == process and not session.is_gone:
                self._lose(session, "died", now)

    def _begin(self, now: Now) -> None:
        """The first call of a turn. If the machine has slept long, restart all silence timers, once (REC-001)."""
        if now.mono == self._mono:
            return
        self._mono = now.mono
        self._turn += 1
        if self._asked_for is not None and now.mono > self._asked_for + self._dead_ns // 2:
            self._asked_for = None
            for session in self:
                session.heard_at = now.mono

    # Greetings

    def _knock(self, message: Asked, source: Source, now: Now) -> None:
        peer = source.peer
        if type(message) is not Hello:
            if type(message) is not Bye:  # a goodbye needs no answer
                self._refuse_stranger(peer, now)
            return
        if self._strangers.is_muted(peer, now.mono):
            return
        fault = self._fault_of(message) or self._unknown(source)
        if fault is None:
            self._join(message, source, now)
            return
        why, text = fault
        count_code(self.counters.refused, why)
        self._context.send(CLIENTS, peer, Refuse(why, text))
        user = self.rights.user_of(source) if why == DENIED else ""
        self._context.tell_seldom((user or message.name, why), ClientRefused(message.name, why, user), now.mono)

    def _refuse_stranger(self, peer: bytes, now: Now) -> None:
        count_code(self.counters.refused, "bad-hello")
        if self._strangers.may_answer(peer, now.mono):
            self._context.send(CLIENTS, peer, Refuse("bad-hello", "say hello first"))

    def _fault_of(self, hello: Hello) -> tuple[str, str] | None:
        """What is wrong with a greeting: a code and a sentence; None: nothing."""
        if hello.v != VERSION:
            return "version", f"this node speaks {VERSION}"
        if hello.role != "client":
            return "bad-hello", "clients attach here; nodes have a port of their own"
        if len(hello.name) > limits.CLIENT_NAME_BYTES_MAX or not _NAME.fullmatch(hello.name):
            return "bad-hello", "a name has 1 to 64 letters, digits, and some signs between them"
        if self.is_stopped or self._context.is_stopping:
            return "busy", "this node is stopping"
        if hello.id not in self._by_id and len(self) >= self._context.settings.clients:
            return "busy", f"{len(self)} clients are enough"
        return None

    def _unknown(self, source: Source) -> tuple[str, str] | None:
        """Why a peer with a valid greeting may not attach; None: it may do something here (CHN-081)."""
        if self.rights.may_attach(source):
            return None
        return (
            DENIED,
            f"{self.rights.user_of(source) or 'who is unknown'} may nothing here: no [[chains.allow]] names it",
        )

    def _join(self, hello: Hello, source: Source, now: Now) -> None:
        """Attach a client; an earlier session of the same client, or at the same address, ends."""
        peer = source.peer
        same, there = self._by_id.get(hello.id), self._by_peer.get(peer)
        if same is not None:
            self._lose(same, "replaced", now, bye=same.peer != peer)
        if there is not None and there is not same:
            self._lose(there, "replaced", now)
        session = Session(hello, Post(peer, self._dirty, self._copies), self._context.settings)
        session.heard_at, session.process = now.mono, process_of(source.kind)
        session.source = None if self.rights.is_owner(source) else source
        self._by_peer[peer] = self._by_id[hello.id] = session
        self.counters.welcomed += 1
        session.say(self._welcome())
        self._context.tell(ClientWelcomed(hello.name, session.pid))
        if session.process:
            self._context.tell(ProcessAttached(session.process))
        if self._sweep_at is None:
            self._sweep_at = now.mono + self._sweep_ns

    def _welcome(self) -> Welcome:
        context, credit = self._context, self._credit()
        mine, place = context.settings, _place_of(context.placed)
        return Welcome(
            v=VERSION,
            node=context.node,
            name=mine.name,
            addr=mine.addr,
            boot=mine.boot,
            level=place.level,
            parent=place.parent,
            children=place.children,
            credit=credit.credit,
            credit_bytes=credit.credit_bytes,
            beat=mine.beat_ms,
            dead=mine.dead_ms,
        )

    # Messages of clients

    def _reg(self, session: Session, reg: Reg, now: Now) -> None:
        verb = READ if reg.access == "ro" else REWRITE
        if self._may(session, verb, reg.dir, reg.type, now):
            self._engine.stand(session, reg, now)
            return
        count_code(self._context.counters.errors, DENIED)
        session.say(Error(about="reg", why=DENIED, reg=reg.reg))

    def _may(self, session: Session, verb: str, direction: str, kind: str, now: Now) -> bool:
        """Whether a client may do that; refusals are told once a minute per user (CHN-081)."""
        source = session.source
        if source is None or self.rights.may(source, verb, direction, kind):
            return True
        user = self.rights.user_of(source)
        refused = ClientRefused(session.name, f"may not {verb} {kind[: limits.TYPE_BYTES_MAX]}", user)
        self._context.tell_seldom((user, DENIED), refused, now.mono)
        return False

    def _unreg(self, session: Session, unreg: Unreg, now: Now) -> None:
        self._engine.leave(session, unreg.reg, now, forget=unreg.forget)
        session.post.forget(unreg.reg)

    def _send(self, session: Session, send: clients.Send, now: Now) -> None:
        """Each send goes to the engine, or is refused: `closing`, or `overload` without credit (CLI-007, CHN-040).

        A repeated send is not refused: it gets its status again, whatever the node's state (CHN-042).
        """
        why = "closing" if self.is_stopped or self._context.is_stopping else "overload"
        is_open = why == "overload" and not self.is_full
        accept, owe, frames, at = self._engine.accept, session.owe, send.frames, 0
        self._context.counters.heard += len(send.m)
        for item in send.m:
            begin, at = at, at + item.n
            own = (frames[begin],) if item.n == 1 else tuple(frames[begin:at])
            may_pass = is_open or self._engine.knows(session, item.tag)
            if session.source is not None and not self._may(session, SEND, OUT, item.type, now):
                self._context.counters.refuse(DENIED)
                session.turn_down(item, DENIED)
            elif may_pass and owe(item, len(own[0]) if item.n == 1 else sum(map(len, own))):
                accept(session, item, own, now)
            else:
                self._context.counters.refuse(why)
                session.turn_down(item, why)

    def _next(self, session: Session, message: Next, now: Now) -> None:
        for item, frames in each_with_frames(message.m, message.frames):
            self._engine.hand_back(session, message.reg, item, frames, now)

    def _drop(self, session: Session, message: Drop, now: Now) -> None:
        for item in message.m:
            self._engine.delete(session, message.reg, item, now)

    def _fail(self, session: Session, message: Fail, now: Now) -> None:
        for item in message.m:
            self._engine.fail(session, message.reg, item, now)

    def _conf(self, session: Session, message: Conf, now: Now) -> None:
        for number in message.ids:
            self._engine.confirm(session, message.reg, number, now)

    def _beat(self, session: Session, beat: Beat, now: Now) -> None:
        """Nothing to do: the time of any message is noted already."""

    def _bye(self, session: Session, bye: Bye, now: Now) -> None:
        self._lose(session, bye.why or "bye", now)

    # Messages to all clients

    def place(self, placed: Placed) -> None:
        """Tell all clients that the node's place has changed."""
        for session in self:
            session.say(_place_of(placed))

    def hold_back(self, is_full: bool) -> None:  # noqa: FBT001  # the field of the order
        """No credit while this node is full, afterwards as before (CHN-040)."""
        if is_full is not self.is_full:
            self.is_full = is_full
            for session in self:
                session.say(self._credit())

    def _credit(self) -> Credit:
        mine = self._context.settings
        return Credit(0, 0) if self.is_full else Credit(mine.credit, mine.credit_bytes)

    def stop(self, now: Now) -> None:
        """Say goodbye to all clients, after everything that waits for them (CHN-043)."""
        self._begin(now)
        self.is_stopped = True
        for session in self:
            self._lose(session, "stopping", now, bye=True)

    def flush(self, now: Now) -> None:
        """Send what this turn has produced; clients that are behind wait for `wake`."""
        if self._dirty:
            dirty = list(self._dirty.values())
            self._dirty.clear()
            for post in dirty:
                self._speak(post, now)

    def not_sent(self, peer: bytes, now: Now) -> None:
        """What was sent last to this peer was not accepted: it waits in front, until `wake`."""
        self.counters.unsent += 1
        session = self._by_peer.get(peer)
        if session is not None and session.post.take_back(now.mono):
            self._behind[peer] = session.post

    def _speak(self, post: Post, now: Now) -> None:
        post.speak(self._context.effects, self._turn, now.mono)
        if post.retry_at is not None:
            self._behind[post.peer] = post

    # Time

    def wake(self, now: Now) -> None:
        """Send to clients that are behind, end silent sessions, send beats to the others."""
        self._begin(now)
        for peer, post in list(self._behind.items()):
            if post.retry_at is not None and now.mono >= post.retry_at:
                self._try_again(peer, post, now)
        if self._sweep_at is not None and now.mono >= self._sweep_at:
            self._sweep(now)
        self.flush(now)

    def _try_again(self, peer: bytes, post: Post, now: Now) -> None:
        if post.answers > limits.ANSWERS_MAX:
            self._lose(self._by_peer[peer], "deaf", now)
            return
        self._speak(post, now)
        if post.retry_at is None:
            del self._behind[peer]

    def _sweep(self, now: Now) -> None:
        dead_before, beat_before = now.mono - self._dead_ns, now.mono - self._beat_ns
        for session in self:
            post = session.post
            if session.heard_at <= dead_before:
                self._lose(session, "silent", now)
            elif post.said_at <= beat_before and post.retry_at is None:
                session.say(Beat())
        self._sweep_at = now.mono + self._sweep_ns if self._by_peer else None

    def deadline(self) -> int | None:
        """When `wake` is wanted."""
        self._asked_for = self._sweep_at
        if self._behind:
            self._asked_for = earliest(self._sweep_at, *[post.retry_at for post in self._behind.values()])
        return self._asked_for

    # The end

    def _lose(self, session: Session, why: str, now: Now, *, bye: bool = False) -> None:
        """End a session. A client that is still connected gets what waits for it and a goodbye, then nothing more."""
        peer = session.peer
        if bye:
            session.say(Bye(why))
            self._speak(session.post, now)
        session.is_gone = True
        del self._by_peer[peer], self._by_id[session.id]
        self._dirty.pop(peer, None)
        self._behind.pop(peer, None)
        self.counters.lost += 1
        self.counters.copies_lost += session.post.copies_lost
        session.post.close()
        holding = sum([len(link.pending) for link in session.links.values() if isinstance(link, HolderLink)])
        self._engine.lose(session, now)
        self._context.tell(ClientLost(session.name, why, holding))


def _place_of(placed: Placed) -> Place:
    return Place(placed.level, placed.parent or None, [name for _, name in placed.children])


_HEAR: Final[dict[type, Callable[[Sessions, Session, Any, Now], None]]] = {
    Reg: Sessions._reg,
    Unreg: Sessions._unreg,
    clients.Send: Sessions._send,
    Next: Sessions._next,
    Drop: Sessions._drop,
    Fail: Sessions._fail,
    Conf: Sessions._conf,
    Beat: Sessions._beat,
    Bye: Sessions._bye,
}
