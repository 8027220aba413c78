"""Changes of a record on their way to the broker, one at a time and in order (CAT-018).

A broker acknowledges beats and changes by the same word; it answers in order, so what it owed before counts.
"""

from collections import deque

from weft.base.now import Now
from weft.cores.service import limits
from weft.cores.service.messages import Update


class Updates:
    """What was ordered and is not acknowledged yet."""

    def __init__(self) -> None:
        self.waiting: deque[Update] = deque()
        self.sent_at: int | None = None
        """When the first of them was said on this connection; None: not yet."""
        self._owed = 0
        """Acknowledgements of beats that the broker still owes."""
        self._owed_before = 0
        """Of those, how many come before that of the change."""
        self._tries = 0

    @property
    def is_full(self) -> bool:
        """Whether no more can wait."""
        return len(self.waiting) >= limits.UPDATES_MAX

    @property
    def is_under_way(self) -> bool:
        """Whether one was said and not answered yet: it is as good as a beat."""
        return self.sent_at is not None

    @property
    def due_at(self) -> int | None:
        """When the one under way is given up on this connection."""
        return None if self.sent_at is None else self.sent_at + limits.ANSWER_NS

    def begin(self) -> None:
        """A new connection: nothing is owed on it, and nothing was said."""
        self.sent_at, self._owed = None, 0

    def owe(self) -> None:
        """A beat was said."""
        self._owed += 1

    def take_next(self, now: Now, *, is_exact: bool) -> Update | None:
        """The change to say now, if there is one; `is_exact`: the broker acknowledges every beat."""
        if self.is_under_way or not self.waiting:
            return None
        self.sent_at = now.mono
        self._owed_before = self._owed if is_exact else 0
        self._tries += 1
        return self.waiting[0]

    def acknowledge(self) -> Update | None:
        """The broker has acknowledged something: the change that it was, or None for a beat."""
        if self.is_under_way and not self._owed_before:
            return self.end()
        self._owed = max(0, self._owed - 1)
        self._owed_before = max(0, self._owed_before - 1)
        return None

    def end(self) -> Update:
        """The one under way is answered, or given up."""
        self.sent_at, self._tries = None, 0
        return self.waiting.popleft()

    @property
    def is_hopeless(self) -> bool:
        """Whether the one under way was said often enough without an answer."""
        return self._tries >= limits.UPDATE_TRIES
