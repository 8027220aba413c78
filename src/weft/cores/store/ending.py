"""Entries that end by themselves: each is deleted once its time is over, unless it was changed since (ADM-014).

The author deletes it. If the author is away, one of the nodes that ping does so some clocks later, then the next one,
in the order of names. If two nodes delete it, the conflict of two deletions is harmless. Time is the wall clock of the
node that deletes.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from weft.base.changes import Event
from weft.base.now import SECOND, Now
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits
from weft.cores.store.context import Context
from weft.cores.store.messages import Change
from weft.cores.store.replica import Replica

OTHERS_CLOCKS = 2
"""Clocks that the next node in line waits for the one before it."""


class Ending:
    """All entries of one node that have an end."""

    def __init__(self, context: Context, replica: Replica) -> None:
        self._context, self._replica = context, replica
        self._clock = context.settings.clock_ns
        self.positions: Callable[[], list[str]] = list
        """Names on the current chain of pings, its head first."""
        self.serves: Callable[[], bool] = lambda: False
        """Whether this node is a member: any other node deletes nothing."""
        self._waiting: list[tuple[int, int, Event]] = []
        """When to check, by the wall clock."""
        self._count = 0
        self._tidy_at = limits.ENDINGS_SPARE
        """How many may wait before those that were changed since are removed."""
        self._look_at: int | None = None
        replica.listeners.append(self._note)

    def recall(self) -> None:
        """At the start: add the entries that the journal kept."""
        for event in self._replica.tree.walk(()):
            self._take(event)

    def _note(self, change: Change) -> None:
        if change.is_shown:
            self._take(change.event)

    def _take(self, event: Event) -> None:
        if event.until is not None and event.value is not None:
            self._wait(_end_of(event.until), event)

    def _wait(self, at: int, event: Event) -> None:
        self._count += 1
        heappush(self._waiting, (at, self._count, event))
        self._look_at = None
        if len(self._waiting) > self._tidy_at:  # a program that renews an entry each second leaves one behind each time
            self._waiting = [each for each in self._waiting if self._is_current(each[2])]
            heapify(self._waiting)
            self._tidy_at = 2 * len(self._waiting) + limits.ENDINGS_SPARE

    def wake(self, now: Now) -> None:
        """Delete entries whose time is over."""
        self._look_at = None
        for _ in range(limits.ENDINGS_TURN):
            if not self._waiting or self._waiting[0][0] > now.wall:
                return
            self._look(heappop(self._waiting)[2], now)

    def _look(self, event: Event, now: Now) -> None:
        if not self._is_current(event):
            return
        assert event.until is not None, "only what ends waits here"
        due = _end_of(event.until) + self._patience(event.node)
        if due > now.wall or not self.serves():
            self._wait(max(due, now.wall + self._clock), event)
            return
        try:
            self._replica.write(event.path, None)
            self._context.count("ended")
        except Refusal:  # no room, or no tick available: later
            self._wait(now.wall + self._clock, event)

    def _is_current(self, event: Event) -> bool:
        """Whether the entry was not changed since."""
        current = self._replica.tree.at(event.path)
        return current is not None and current.value is not None and current.chain.head == event.chain.head

    def _patience(self, owner: str) -> int:
        """How long after the end it is this node's turn."""
        name = self._context.name
        if owner == name:
            return 0
        line = sorted({*self.positions(), name} - {owner})  # by name, since the head of the chain changes all the time
        return (line.index(name) + 1) * OTHERS_CLOCKS * self._clock

    def deadline(self) -> int | None:
        """When the first entry ends, or the wall clock is to be checked again, in monotonic nanoseconds."""
        if not self._waiting:
            return None
        if self._look_at is None:
            now = self._context.now
            wait = min(max(self._waiting[0][0] - now.wall, 0), limits.ENDINGS_LOOK_NS)
            self._look_at = now.mono + wait
        return self._look_at


def _end_of(until: float) -> int:
    """The end in nanoseconds; for an absurd instant, the nearest one that a clock can show."""
    return round(min(max(until, 0.0), limits.UNTIL_MAX_S) * SECOND)
