"""Watches: changes, sent to programs as fast as they read them (DOC-054, JAM-020).

A program gets at most `AHEAD_MAX` changes that it has not acknowledged; later changes are merged into the next one. So
no queue grows, and no program keeps an old state. A program that is silent for `SILENCE_NS` counts as gone, since a
ROUTER does not report that.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from weft.base.effects import Tell
from weft.base.now import Now
from weft.cores.document import messages
from weft.cores.document.context import CLIENTS, Context
from weft.cores.document.fold.changes import Delta
from weft.cores.document.limits import (
    ANSWER_BYTES,
    DELTA_NS,
    DELTA_NS_PER_OPERATION,
    TELL_AHEAD_MAX,
    TELL_EVENTS_MAX,
    TELL_OPERATIONS_MAX,
    WATCH_SILENCE_NS,
    WATCHERS_MAX,
)
from weft.cores.kit.refusals import Refusal
from weft.wire.document.clients import Answer, Asked
from weft.wire.document.operations import uuid_text

EVENTS: Final[dict[type, str]] = {
    messages.PeerActive: "peer.active",
    messages.PeerEvasive: "peer.evasive",
    messages.PeerGone: "peer.gone",
    messages.PeerMismatch: "peer.mismatch",
    messages.TimeSkew: "time.skew",
    messages.TimeAhead: "time.ahead",
    messages.ChatHeard: "chat",
    messages.LogFork: "log.fork",
    messages.LogDiverged: "log.diverged",
    messages.LogFull: "log.full",
    messages.LogDegraded: "log.degraded",
    messages.IdentityReused: "identity.reused",
    messages.ConflictFound: "doc.conflict",
    messages.SessionOpened: "session.opened",
}
"""Journaled events that watchers get, with their names."""
ADDED, REMOVED, CHANGED = "added", "removed", "changed"
MERGED: Final[dict[tuple[str, str], str]] = {
    (ADDED, REMOVED): "",
    (ADDED, CHANGED): ADDED,
    (REMOVED, ADDED): CHANGED,
    (CHANGED, REMOVED): REMOVED,
}
"""The result of two changes of one slot; for all other pairs it is the second one."""


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What a watch reports besides changes of the document."""

    operations: bool = True
    events: bool = True


class Watcher:
    """One watch of one program."""

    def __init__(self, peer: bytes, number: bytes, wanted: Wanted, now_ns: int) -> None:
        self.peer, self.number, self.wanted = peer, number, wanted
        self.sent = self.read = 0
        """Number of changes sent, and of those acknowledged."""
        self.heard_at = now_ns
        self.slots: dict[str, str] = {}
        self.operations: deque[Any] = deque()
        self.size = 0
        """Bytes of their bodies."""
        self.more = 0
        self.events: deque[dict[str, Any]] = deque(maxlen=TELL_EVENTS_MAX)
        self.is_stale = False
        """Whether there is anything to send."""

    @property
    def is_open(self) -> bool:
        """Whether it may be sent more."""
        return self.sent - self.read < TELL_AHEAD_MAX

    def merge(self, delta: Delta) -> None:
        """Merge a change of the document into what is to be sent."""
        for kind, slots in ((REMOVED, delta.removed), (ADDED, delta.added), (CHANGED, delta.changed)):
            for slot in slots:
                before = self.slots.pop(slot, None)
                merged = kind if before is None else MERGED.get((before, kind), kind)
                if merged:
                    self.slots[slot] = merged
        self.is_stale = True

    def append(self, rows: Iterable[Any], more: int) -> None:
        """Add operations: the last ones, and the number of those before."""
        if self.wanted.operations:
            self.more += more
            for row in rows:
                self.operations.append(row)
                self.size += len(row["body"])
            while len(self.operations) > TELL_OPERATIONS_MAX or self.size > ANSWER_BYTES:
                self.size -= len(self.operations.popleft()["body"])
                self.more += 1
        self.is_stale = True

    def note(self, event: dict[str, Any]) -> None:
        """Add an event."""
        if self.wanted.events:
            self.events.append(event)
            self.is_stale = True

    def take(self) -> dict[str, Any]:
        """Remove and return everything that is to be sent."""
        news: dict[str, Any] = {kind: [] for kind in (ADDED, REMOVED, CHANGED)}
        for slot, kind in self.slots.items():
            news[kind].append(slot)
        news |= {"operations": list(self.operations), "more": self.more, "events": list(self.events)}
        self.slots, self.more, self.size, self.is_stale = {}, 0, 0, False
        self.operations.clear()
        self.events.clear()
        return news


class Watching:
    """All watches of one session.

    `state` returns what is sent with changes: check, operations, whether the document is behind.

    `operator` returns the operator at a peer.
    """

    def __init__(
        self,
        context: Context,
        state: Callable[[], tuple[int, int, bool]],
        delta: Callable[[], Delta],
        operator: Callable[[bytes], str],
    ) -> None:
        self._context, self._state, self._delta, self._operator = context, state, delta, operator
        self._watchers: dict[tuple[bytes, bytes], Watcher] = {}
        self._seen: tuple[int, int, bool] = (0, 0, False)
        self._shown_at: int | None = None
        self._is_due = False
        """Whether the document differs from the last one sent, and the time of the next comparison has not come."""

    def __len__(self) -> int:
        return len(self._watchers)

    def begin(self, asked: Asked, peer: bytes, wanted: Wanted) -> None:
        """Start a watch; the first answer confirms it."""
        if len(self._watchers) >= WATCHERS_MAX:
            raise Refusal("busy", f"{WATCHERS_MAX} programs watch already", "one program that watches for all")
        if not self._watchers:
            self._delta()  # the present state is not a change
            self._seen = self._state()
        watcher = self._watchers[peer, asked.id] = Watcher(peer, asked.id, wanted, self._context.now.mono)
        self._say(watcher, {})

    def heard(self, asked: Asked, peer: bytes) -> None:
        """A program has read up to this change, or sends a sign of life."""
        watcher = self._watchers.get((peer, asked.id))
        if watcher is not None:
            watcher.heard_at = self._context.now.mono
            number = asked.args.get("n")
            if isinstance(number, int):
                watcher.read = max(watcher.read, min(number, watcher.sent))

    def end(self, asked: Asked, peer: bytes) -> None:
        """A program ends a watch."""
        if self._watchers.pop((peer, asked.id), None) is not None:
            self._answer(peer, Answer(asked.id, {}))

    def lost(self, peer: bytes) -> None:
        """A program is gone."""
        for key in [key for key in self._watchers if key[0] == peer]:
            del self._watchers[key]

    def stop(self) -> None:
        """The node ends."""
        for watcher in self._watchers.values():
            self._answer(watcher.peer, Answer(watcher.number, {}))
        self._watchers.clear()

    def note(self, event: dict[str, Any]) -> None:
        """Report an event that no core emits."""
        for watcher in self._watchers.values():
            watcher.note(event)

    def show(self, rows: Callable[[], tuple[list[Any], int]]) -> None:
        """A turn ends: send its changes to all watchers that may get more.

        `rows`: the operations that became known in it.
        """
        if not self._watchers:
            return
        for effect in self._context.effects:
            if type(effect) is Tell and (name := EVENTS.get(type(effect.event))) is not None:
                self.note({"event": name, "at": self._context.time, **self._facts(effect.event)})
        if self._state() != self._seen:
            self._is_due = True
        if self._is_due and self._context.now.mono >= self._next_ns():
            self._look(*rows())
        for watcher in list(self._watchers.values()):
            if watcher.is_stale and watcher.is_open:
                check, _, behind = self._seen
                self._say(watcher, {"check": f"{check:08x}", "catching_up": behind, **watcher.take()})

    def _facts(self, event: Any) -> dict[str, Any]:
        """The fields of an event; for an event about a peer, also its operator."""
        by = self._operator(event.peer) if hasattr(event, "peer") else ""
        return facts(event) | ({"by": by} if by else {})

    def _look(self, rows: list[Any], more: int) -> None:
        """Compare the document with the one sent last."""
        self._seen, self._is_due = self._state(), False
        self._shown_at = self._context.now.mono
        delta = self._delta()
        for watcher in self._watchers.values():
            watcher.append(rows, more)
            watcher.merge(delta)

    def _next_ns(self) -> int:
        """When to compare again: at once after a pause, else at a pace that depends on the size of the document."""
        if self._shown_at is None:
            return 0
        return self._shown_at + DELTA_NS + DELTA_NS_PER_OPERATION * self._seen[1]

    def _say(self, watcher: Watcher, news: dict[str, Any]) -> None:
        watcher.sent += 1
        self._answer(watcher.peer, Answer(watcher.number, {"n": watcher.sent, **news}, more=True))

    def _answer(self, peer: bytes, answer: Answer) -> None:
        self._context.send(CLIENTS, peer, answer)

    def wake(self, now: Now) -> None:
        """Drop silent watchers."""
        for key, watcher in list(self._watchers.items()):
            if now.mono - watcher.heard_at >= WATCH_SILENCE_NS:
                del self._watchers[key]

    def deadline(self) -> int | None:
        """When a watcher times out, or the document is to be compared."""
        if not self._watchers:
            return None
        silent = min(watcher.heard_at for watcher in self._watchers.values()) + WATCH_SILENCE_NS
        return min(silent, self._next_ns()) if self._is_due else silent


def facts(event: Any) -> dict[str, Any]:
    """An event as plain data; identities as text.

    >>> facts(messages.LogFull("S", "sources"))
    {'what': 'sources'}
    """
    return {name: plain(value) for name, value in msgspec.structs.asdict(event).items() if name != "session"}


def plain(value: Any) -> Any:
    """Bytes as text: of 16 bytes a UUID, of any others hexadecimal digits."""
    if not isinstance(value, bytes):
        return value
    return uuid_text(value) if len(value) == 16 else value.hex()  # 16 bytes are a UUID
