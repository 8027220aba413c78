"""Watches: what changes, told to programs as they can take it (DOC-054, JAM-020).

A program is told at most `AHEAD_MAX` changes that it has not said to have read; what happens meanwhile goes into the next
one. So nobody's queue grows, and nobody is left with an old state. Who says nothing for `SILENCE_NS` is gone: a ROUTER
does not tell.
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
"""What is told to watchers of what goes to the journal, and under which name."""
ADDED, REMOVED, CHANGED = "added", "removed", "changed"
MERGED: Final[dict[tuple[str, str], str]] = {
    (ADDED, REMOVED): "",
    (ADDED, CHANGED): ADDED,
    (REMOVED, ADDED): CHANGED,
    (CHANGED, REMOVED): REMOVED,
}
"""What two changes of one slot are together; of any other two it is the second."""


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What a watch is to tell besides changes of the document."""

    operations: bool = True
    events: bool = True


class Watcher:
    """One watch of one program."""

    def __init__(self, peer: bytes, number: bytes, wanted: Wanted, now_ns: int) -> None:
        self.peer, self.number, self.wanted = peer, number, wanted
        self.told = self.read = 0
        """How many changes were told, and up to which one they were read."""
        self.heard_at = now_ns
        self.slots: dict[str, str] = {}
        self.operations: deque[Any] = deque()
        self.size = 0
        """Bytes of their bodies."""
        self.more = 0
        self.events: deque[dict[str, Any]] = deque(maxlen=TELL_EVENTS_MAX)
        self.is_stale = False
        """Whether there is anything to tell."""

    @property
    def is_open(self) -> bool:
        """Whether it may be told more."""
        return self.told - self.read < TELL_AHEAD_MAX

    def merge(self, delta: Delta) -> None:
        """Put a change of the document to what is to be told."""
        for kind, slots in ((REMOVED, delta.removed), (ADDED, delta.added), (CHANGED, delta.changed)):
            for slot in slots:
                before = self.slots.pop(slot, None)
                merged = kind if before is None else MERGED.get((before, kind), kind)
                if merged:
                    self.slots[slot] = merged
        self.is_stale = True

    def append(self, rows: Iterable[Any], more: int) -> None:
        """Put operations to what is to be told: the last ones, and how many there were before."""
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
        """Put an event to what is to be told."""
        if self.wanted.events:
            self.events.append(event)
            self.is_stale = True

    def take(self) -> dict[str, Any]:
        """All that is to be told; there is nothing then."""
        told: dict[str, Any] = {kind: [] for kind in (ADDED, REMOVED, CHANGED)}
        for slot, kind in self.slots.items():
            told[kind].append(slot)
        told |= {"operations": list(self.operations), "more": self.more, "events": list(self.events)}
        self.slots, self.more, self.size, self.is_stale = {}, 0, 0, False
        self.operations.clear()
        self.events.clear()
        return told


class Watching:
    """All watches of one session. `state` says what they are compared by: check, operations, whether it is behind.

    `operator` says who enters at a peer.
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
        """Whether the document is another one than was told, and waits for its time."""

    def __len__(self) -> int:
        return len(self._watchers)

    def begin(self, asked: Asked, peer: bytes, wanted: Wanted) -> None:
        """Tell from now on; the first answer says that it has begun."""
        if len(self._watchers) >= WATCHERS_MAX:
            raise Refusal("busy", f"{WATCHERS_MAX} programs watch already", "one program that watches for all")
        if not self._watchers:
            self._delta()  # what is there now is no change
            self._seen = self._state()
        watcher = self._watchers[peer, asked.id] = Watcher(peer, asked.id, wanted, self._context.now.mono)
        self._say(watcher, {})

    def heard(self, asked: Asked, peer: bytes) -> None:
        """A program has read that far, or says that it is still there."""
        watcher = self._watchers.get((peer, asked.id))
        if watcher is not None:
            watcher.heard_at = self._context.now.mono
            number = asked.args.get("n")
            if isinstance(number, int):
                watcher.read = max(watcher.read, min(number, watcher.told))

    def end(self, asked: Asked, peer: bytes) -> None:
        """A program has seen enough."""
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
        """Tell an event that no core tells."""
        for watcher in self._watchers.values():
            watcher.note(event)

    def show(self, rows: Callable[[], tuple[list[Any], int]]) -> None:
        """A turn ends: tell everybody who may be told what it changed. `rows`: the operations that it made known."""
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
        """The facts of an event; of one of a peer, who enters there as well."""
        by = self._operator(event.peer) if hasattr(event, "peer") else ""
        return facts(event) | ({"by": by} if by else {})

    def _look(self, rows: list[Any], more: int) -> None:
        """Compare the document with the one that was told last."""
        self._seen, self._is_due = self._state(), False
        self._shown_at = self._context.now.mono
        delta = self._delta()
        for watcher in self._watchers.values():
            watcher.append(rows, more)
            watcher.merge(delta)

    def _next_ns(self) -> int:
        """When to look again: at once after a pause, else in the pace that the size of the document allows."""
        if self._shown_at is None:
            return 0
        return self._shown_at + DELTA_NS + DELTA_NS_PER_OPERATION * self._seen[1]

    def _say(self, watcher: Watcher, told: dict[str, Any]) -> None:
        watcher.told += 1
        self._answer(watcher.peer, Answer(watcher.number, {"n": watcher.told, **told}, more=True))

    def _answer(self, peer: bytes, answer: Answer) -> None:
        self._context.send(CLIENTS, peer, answer)

    def wake(self, now: Now) -> None:
        """Forget who is silent."""
        for key, watcher in list(self._watchers.items()):
            if now.mono - watcher.heard_at >= WATCH_SILENCE_NS:
                del self._watchers[key]

    def deadline(self) -> int | None:
        """When somebody has been silent for too long, or the document is to be compared."""
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
    return uuid_text(value) if len(value) == 16 else value.hex()  # bytes of a UUID
