"""Changes of a record on their way to the broker, one at a time and in order (CAT-018).

A broker acknowledges beats and changes with the same message, in order, so its outstanding acknowledgements have to be
counted.
"""

from collections import deque

from weft.base.now import Now
from weft.cores.service import limits
from weft.cores.service.messages import Update


class Updates:
    """Changes that were ordered and not acknowledged yet."""

    def __init__(self) -> None:
        self.waiting: deque[Update] = deque()
        self.sent_at: int | None = None
        """When the first of them was sent on this connection; None: not yet."""
        self._owed = 0
        """Acknowledgements of beats that are outstanding."""
        self._owed_before = 0
        """Those of them that come before the acknowledgement of the change."""
        self._tries = 0

    @property
    def is_full(self) -> bool:
        """Whether no more changes can wait."""
        return len(self.waiting) >= limits.UPDATES_MAX

    @property
    def is_under_way(self) -> bool:
        """Whether one was sent and not answered yet: it counts as a beat."""
        return self.sent_at is not None

    @property
    def due_at(self) -> int | None:
        """When the one under way times out on this connection."""
        return None if self.sent_at is None else self.sent_at + limits.ANSWER_NS

    def begin(self) -> None:
        """A new connection: nothing is outstanding, and nothing was sent."""
        self.sent_at, self._owed = None, 0

    def owe(self) -> None:
        """A beat was sent."""
        self._owed += 1

    def take_next(self, now: Now, *, is_exact: bool) -> Update | None:
        """The change to send now, if there is one; `is_exact`: the broker acknowledges every beat."""
        if self.is_under_way or not self.waiting:
            return None
        self.sent_at = now.mono
        self._owed_before = self._owed if is_exact else 0
        self._tries += 1
        return self.waiting[0]

    def acknowledge(self) -> Update | None:
        """An acknowledgement came; returns the change that it belongs to, or None for a beat."""
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
        """Whether the one under way was sent often enough without an answer."""
        return self._tries >= limits.UPDATE_TRIES
