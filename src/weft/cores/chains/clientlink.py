"""A client's link in a chain: a reader gets copies; a holder gets the message itself and has to return it.

A holder either rewrites (the message waits for its answer) or confirms (the message goes on, but its inbox entry is
kept until the reader says that it is done, CHN-019). The table `states.LINK_TABLE` says what may happen when; this
module only keeps what a link holds.
"""

from collections import OrderedDict
from collections.abc import Callable
from copy import copy
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from weft.base.mail import Mail
from weft.base.now import MILLISECOND
from weft.cores.chains import limits
from weft.cores.chains.order import Key, covers
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.states import LinkState
from weft.wire import clients

WAIT: Final = "wait"
RESERVED: Final = "weft."


class Session(Protocol):
    """One attached client, as the engine sees it; implemented by `sessions.Session`."""

    id: bytes
    name: str
    links: "dict[int, ClientLink]"
    is_gone: bool

    def offer(self, reg: int, parcel: Parcel, *, re: bool = False) -> None:
        """Give it a message that it has to return or confirm."""

    def copy(self, reg: int, parcel: Parcel) -> None:
        """Give it a copy; the oldest waiting copy may be discarded to make room (CHN-018)."""

    def answer(self, tag: int, ok: bool, why: str, count: int | None = None, failed: int = 0) -> None:  # noqa: FBT001 - as a status says it
        """The final status of one of its sends."""

    def say(self, message: clients.Answered) -> None:
        """Send it any other message."""


class ClientCounters(msgspec.Struct):
    """Messages, since the link is there (CHN-082)."""

    offered: int = 0
    passed: int = 0
    """Messages returned unchanged, or confirmed."""
    changed: int = 0
    dropped: int = 0
    failed: int = 0
    timed_out: int = 0
    late: int = 0
    """Answers for messages that it no longer held."""
    released: int = 0
    """Messages that went on without an answer, because the client left or was bypassed."""
    lost: int = 0
    """Messages that ended here because the policy is `closed`."""
    ignored: int = 0
    """Changes of a destination on `in`, which have no effect."""
    waited_ns: int = 0
    """Time from offer to answer, summed over all answered messages, ns."""


class Answer(NamedTuple):
    """A client's answer for a message that it holds."""

    how: str
    """`next`, `drop`, `fail`, `conf`."""
    frames: tuple[bytes, ...] | None = None
    """The new frames; None: unchanged."""
    to: Any = None


class HeldMessage:
    """One message that a holder has."""

    __slots__ = ("after", "answer", "due", "frames", "has_overflowed", "is_copy", "offered_at", "parcel")

    def __init__(self, parcel: Parcel, after: Key, *, is_copy: bool = False) -> None:
        self.parcel = parcel
        self.after = after
        """It goes on behind this key (CHN-012)."""
        self.is_copy = is_copy
        """The message itself has gone on; this is the copy that the reader still has to confirm."""
        self.frames = parcel.frames
        """The frames given to a confirming reader; a later link may change the message's own."""
        self.has_overflowed = False
        """It waits because the line behind the window of its reader, which is attached, was full."""
        self.offered_at = 0
        self.due: int | None = None
        self.answer: Answer | None = None
        """The answer, kept while an earlier message of an ordered link has none."""

    def shown(self) -> Parcel:
        """The message as its reader gets it."""
        parcel = self.parcel
        if not self.is_copy or parcel.frames is self.frames:
            return parcel
        shown = copy(parcel)
        shown.frames = self.frames
        return shown


NOBODY: Final = HeldMessage(
    Parcel(0, "in", Mail(origin=b"", era=0, sequence=0, type="", frames=(), to=())), (0, 0, 0, 0)
)
"""Stands for "no message", in inputs that concern the link only."""


class ClientLink:
    """The base of all clients' links."""

    __slots__ = (
        "copy",
        "counters",
        "direction",
        "key",
        "name",
        "noself",
        "place",
        "reg",
        "registration",
        "session",
        "type",
    )

    def __init__(self, session: Session, registration: clients.Reg, key: Key) -> None:
        self.session, self.registration, self.key = session, registration, key
        self.reg, self.direction = registration.reg, registration.dir
        self.type, self.noself = registration.type, registration.noself
        self.name, self.place = session.name, str(registration.at)
        self.copy: Callable[[int, Parcel], None] = session.copy
        self.counters = ClientCounters()

    @property
    def access(self) -> str:
        """`ro`, `rw`, or `confirm`."""
        return "confirm" if self.registration.confirm else self.registration.access

    def covers(self, kind: str) -> bool:
        """Whether it stands on the chain of this type."""
        return covers(self.type, kind)


class ReaderLink(ClientLink):
    """It gets copies and delays no message (CHN-018)."""

    __slots__ = ()


class AwayLink:
    """Takes the place of a confirming reader that is away: messages for the reader wait for it."""

    __slots__ = ("counters", "direction", "key", "name", "noself", "place", "type")

    def __init__(self, name: str, kind: str, place: str, key: Key) -> None:
        self.name, self.type, self.place, self.key = name, kind, place, key
        self.direction, self.noself = "in", False
        self.counters = ClientCounters()

    def covers(self, kind: str) -> bool:
        """Like the link of the reader itself."""
        return covers(self.type, kind) and (self.type != "*" or not kind.startswith(RESERVED))


class HolderLink(ClientLink):
    """It rewrites or confirms."""

    __slots__ = (
        "armed_at",
        "backlog",
        "confirms",
        "has_deadline",
        "is_ordered",
        "latency",
        "missed_at",
        "misses",
        "pending",
        "policy",
        "resolved",
        "state",
        "timeout_ns",
        "untold",
        "window",
    )

    def __init__(self, session: Session, registration: clients.Reg, key: Key) -> None:
        super().__init__(session, registration, key)
        self.state = LinkState.OPEN
        self.window, self.timeout_ns = registration.window, registration.timeout * MILLISECOND
        self.confirms, self.is_ordered = registration.confirm, registration.ordered
        self.policy = registration.fail or (WAIT if registration.confirm else "open")
        self.has_deadline = not (registration.confirm and self.policy == WAIT)
        """False for a confirming reader that is remembered: it may take any time (CHN-019)."""
        self.pending: OrderedDict[int, HeldMessage] = OrderedDict()
        """Messages offered and not answered, in the order of the offers."""
        self.backlog: OrderedDict[int, HeldMessage] = OrderedDict()
        """Messages behind a full window, in the order of arrival."""
        self.misses = 0
        """Deadlines missed in a row."""
        self.missed_at = 0
        self.armed_at: int | None = None
        """When the engine looks at its deadlines next; None: not scheduled."""
        self.resolved: OrderedDict[int, None] = OrderedDict()
        self.untold: dict[str, int] = {}
        self.latency = [0] * limits.LATENCY_CLASSES
        """Number of answers that took less than 1, 2, 4, 8 … ms; the last class counts all slower ones (CHN-082)."""

    def covers(self, kind: str) -> bool:
        """A rewriter of everything does not rewrite Weft's own types (CHN-081)."""
        return covers(self.type, kind) and (self.type != "*" or not kind.startswith(RESERVED))

    @property
    def is_remembered(self) -> bool:
        """Whether messages wait for it while it is away."""
        return self.confirms and self.policy == WAIT

    @property
    def has_room(self) -> bool:
        """Whether one more message may be offered."""
        return len(self.pending) < self.window

    def has(self, number: int) -> bool:
        """Whether it holds this message, in the window or in line."""
        return number in self.pending or number in self.backlog

    def take(self, number: int) -> HeldMessage:
        """Remove a message that it holds, and remember that it held it (CHN-017)."""
        resolved = self.resolved
        resolved[number] = None
        if len(resolved) > limits.RESOLVED_MAX:
            resolved.popitem(last=False)
        return self.pending.pop(number)

    def note_latency(self, span_ns: int) -> None:
        """Count how long an answer took."""
        self.counters.waited_ns += span_ns
        self.latency[min((span_ns // MILLISECOND).bit_length(), limits.LATENCY_CLASSES - 1)] += 1

    def due(self) -> int | None:
        """The first deadline: that of the unanswered message offered first; None: none."""
        for held in self.pending.values():
            if held.answer is None:
                return held.due
        return None
