"""Asks for missing operations: their source if it is present, else the peer that named them (GSP-020, GSP-021).

    ask        our GSIP names the end of our prefix; the answer has at most 500 operations (GSP-024)
    progress   the last of those came, or a gap closed and another is open: the next ask is sent at once
    silence    ask again after 150 ms, doubling to 2 s; every third time another peer

A peer owes us at most `ASKED_MAX` operations, so that its link to us never fills up, however many sources are behind.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from weft.cores.document.context import Context
from weft.cores.document.knowing import Knowing, Places
from weft.cores.document.limits import ANSWER_MAX, ASKED_MAX, RETRY_PEER, STREAM_MIN
from weft.cores.document.log import Log
from weft.wire.document.messages import Gsip, Progress


class Ask:
    """One source that is behind. Instants are monotonic nanoseconds."""

    __slots__ = ("asked_at", "due_at", "moved_at", "owed", "sequence", "target", "to", "tries", "wait_ns")

    def __init__(self, target: int, wait_ns: int) -> None:
        self.target = target
        """A peer has this many operations of it."""
        self.sequence, self.to = -1, b""
        """The number that we last sent, and the peer we sent it to."""
        self.asked_at = self.moved_at = -wait_ns
        """When we last asked; and when there was last progress or an ask."""
        self.due_at = 0
        self.wait_ns = wait_ns
        self.tries = 0
        """Unanswered asks since the last progress."""
        self.owed = 0
        """How many operations the answer may bring."""


class Asking:
    """All sources that are behind."""

    def __init__(self, context: Context, log: Log, places: Places, known: dict[bytes, Knowing]) -> None:
        self._context, self._log, self._places, self._known = context, log, places, known
        self._open: dict[bytes, Ask] = {}
        self._due: list[tuple[int, bytes]] = []
        """A heap; an entry may be due later by now."""
        self._owed: dict[bytes, int] = {}
        """Operations that a peer owes us."""
        self._waiting: dict[bytes, dict[bytes, None]] = {}
        """By peer, sources to ask for when it owes less."""
        self._came_at: int | None = None
        """When the last operation arrived that was asked for."""

    def is_open(self, source: bytes) -> bool:
        """Whether more operations of a source are expected."""
        return source in self._open

    # Input

    def hearsay(self, source: bytes, via: Knowing, target: int) -> None:
        """A peer states that it has more than we do; while answers arrive, that is no news."""
        ask = self._of(source, target)
        if self._now - ask.moved_at >= self._context.timing.ask_hold_ns:
            self._say(source, ask, via)

    def gap(self, source: bytes, via: Knowing, sequence: int) -> None:
        """An operation of a peer is beyond a gap: ask for what is missing, unless just that was asked (GSP-020).

        While an answer arrives, an operation beyond everything that it may bring does not show a loss.
        """
        ask, hold_ns = self._of(source, sequence), self._context.timing.ask_hold_ns
        is_coming = self._now - ask.moved_at < hold_ns and sequence > ask.sequence + ANSWER_MAX
        is_news = ask.sequence != self._log.latest(source)
        if (is_news and not is_coming) or self._now - ask.asked_at >= hold_ns:
            self._say(source, ask, via, do_say=self._context.ahead)

    def progressed(self, source: bytes) -> None:
        """The prefix of a source has grown."""
        ask = self._open.get(source)
        if ask is None:
            return
        self._came_at = self._now
        latest, waiting_from = self._log.latest(source), self._log.lowest_held(source)
        if latest >= ask.target and not waiting_from:
            self._close(source)
            return
        ask.moved_at, ask.tries, ask.wait_ns = self._now, 0, self._context.timing.ask_hold_ns
        due_at, ask.due_at = ask.due_at, self._now + ask.wait_ns
        if ask.due_at < due_at:
            heappush(self._due, (ask.due_at, source))
        end = ask.sequence + ANSWER_MAX
        if latest >= end or 0 < waiting_from <= end:
            self._say(source, ask, None)

    def _of(self, source: bytes, target: int) -> Ask:
        ask = self._open.get(source)
        if ask is None:
            ask = self._open[source] = Ask(target, self._context.timing.ask_hold_ns)
        ask.target = max(ask.target, target)
        return ask

    @property
    def _now(self) -> int:
        return self._context.now.mono

    @property
    def is_streaming(self) -> bool:
        """Whether answers are arriving, with many more operations to come."""
        if self._came_at is None or self._now - self._came_at >= self._context.timing.ask_hold_ns:
            return False
        left = STREAM_MIN
        for source, ask in self._open.items():
            left -= ask.target - self._log.latest(source)
            if left <= 0:
                return True
        return False

    # What is said

    def _say(
        self, source: bytes, ask: Ask, via: Knowing | None, *, do_say: Callable[[str, Gsip], None] | None = None
    ) -> None:
        latest = self._log.latest(source)
        to = self._whom(source, ask, via)
        self._let_go(ask)
        if to is None:
            self._close(source)
            return
        owed = self._size(source, ask)
        ask.due_at = self._now + ask.wait_ns
        heappush(self._due, (ask.due_at, source))
        before = self._owed.get(to.uuid, 0)
        if before and before + owed > ASKED_MAX:
            self._waiting.setdefault(to.uuid, {})[source] = None
            return
        ask.sequence, ask.to, ask.owed = latest, to.uuid, owed
        ask.asked_at = ask.moved_at = self._now
        self._owed[to.uuid] = before + owed
        (do_say or self._context.say)(to.peer.endpoint, Gsip((Progress(source, latest),)))

    def _size(self, source: bytes, ask: Ask) -> int:
        """How many operations an ask may bring."""
        return max(1, min(ANSWER_MAX, ask.target - self._log.latest(source)))

    def _whom(self, source: bytes, ask: Ask, via: Knowing | None) -> Knowing | None:
        """The peer to ask: the source itself if present, else the peer that told us, else any that has more.

        Every third time another one.
        """
        usual = self._known.get(source) or via or self._usual(source, ask)
        if (ask.tries + 1) % RETRY_PEER:
            return usual
        others = [one for one in self._more(source) if one is not usual]
        return others[ask.tries // RETRY_PEER % len(others)] if others else usual

    def _usual(self, source: bytes, ask: Ask) -> Knowing | None:
        more = self._more(source)
        return next((one for one in more if one.uuid == ask.to), more[0] if more else None)

    def _more(self, source: bytes) -> list[Knowing]:
        """Peers known to have more of a source than we do, by UUID."""
        place, latest = self._places.find(source), self._log.latest(source)
        if place is None:
            return []
        return [self._known[uuid] for uuid in sorted(self._known) if self._known[uuid].known(place) > latest]

    def _let_go(self, ask: Ask) -> None:
        """Other sources may now use what this ask reserved of its peer."""
        if not ask.owed:
            return
        owed = self._owed.get(ask.to, 0) - ask.owed
        if owed > 0:
            self._owed[ask.to] = owed
        else:
            self._owed.pop(ask.to, None)
        ask.owed = 0

    def _close(self, source: bytes) -> None:
        """It is no longer behind; or no present peer has more of it."""
        ask = self._open.pop(source)
        self._let_go(ask)
        self._go_on(ask.to)

    def _go_on(self, peer: bytes) -> None:
        """A peer owes us less: ask it for waiting sources."""
        waiting = self._waiting.get(peer, {})
        while waiting:
            source = next(iter(waiting))
            ask = self._open.get(source)
            if ask is not None and not ask.owed:
                if self._owed.get(peer, 0) + self._size(source, ask) > ASKED_MAX:
                    return
                self._say(source, ask, self._known.get(peer))
            waiting.pop(source, None)
        self._waiting.pop(peer, None)

    # Time

    def gone(self, peer: bytes) -> None:
        """The peer will not answer: ask others at once."""
        self._owed.pop(peer, None)
        self._waiting.pop(peer, None)
        for source, ask in self._open.items():
            if ask.to == peer:
                ask.owed = 0
                ask.due_at = self._now
                heappush(self._due, (ask.due_at, source))

    def wake(self) -> None:
        """Ask again for what did not arrive."""
        now = self._now
        while self._due and self._due[0][0] <= now:
            _, source = heappop(self._due)
            ask = self._open.get(source)
            if ask is None:
                continue
            if ask.due_at > now:
                heappush(self._due, (ask.due_at, source))
                continue
            self._retry(source, ask)

    def _retry(self, source: bytes, ask: Ask) -> None:
        """If a source is away and no peer can fill its gap, stop asking until a peer names more of it."""
        if not self._more(source) and not (source in self._known and self._log.lowest_held(source)):
            self._close(source)
            return
        ask.tries += 1
        ask.wait_ns = min(2 * ask.wait_ns, self._context.timing.ask_most_ns)
        to = ask.to
        self._say(source, ask, None)
        self._go_on(to)

    def deadline(self) -> int | None:
        """When to ask again; possibly a little too early."""
        return self._due[0][0] if self._due else None
