"""Hears what comes through a wire, a few messages per turn of the loop, and says things in order.

Readiness is edge-triggered: after each turn and each word the channel looks itself whether more has come.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from weft.client.link.sockets import Opener, Wire

Hear = Callable[[list[bytes]], Any]


class Channel:
    """One connection from its opening to its end. To be used in a running loop."""

    def __init__(  # tidy: each is one thing that a user of it may want to know
        self,
        opener: Opener,
        hear: Hear,
        *,
        per_turn: int,
        on_turn: Callable[[], None] | None = None,
        is_busy: Callable[[], bool] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """`hear` is called for each multipart, `per_turn` at most, fewer if `is_busy` says so; then `on_turn`.

        `on_end` is called once, when the other end is gone and what it said before has been heard.
        """
        self.is_closed = False
        self._hear, self._per_turn = hear, per_turn
        self._on_turn, self._is_busy, self._on_end = on_turn, is_busy, on_end
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[list[bytes]] = deque()
        self._is_due = self._has_ended = False
        self._wire: Wire = opener(self.work, self._end)
        self.look()

    @property
    def is_clear(self) -> bool:
        """Whether everything that was said has been handed over."""
        return not self._unsent

    def say(self, frames: list[bytes]) -> None:
        """Say it now, or in its turn as soon as there is room."""
        if self._unsent or not self._wire.send(frames):
            self._unsent.append(frames)
        self.look()

    def offer(self, frames: list[bytes]) -> bool:
        """Say it now or never; False: there is no room for it, or nobody to hear it."""
        is_sent = not self._unsent and self._wire.send(frames)
        self.look()
        return is_sent

    def look(self) -> None:
        """After the socket was used: what came meanwhile is heard in the next turn."""
        if not self.is_closed and not self._is_due and (self._has_ended or self._wire.is_ready()):
            self._is_due = True
            self._loop.call_soon(self.work)

    def work(self) -> None:
        """One turn: hear what has come, say what had no room, tell that the turn is over."""
        self._is_due = False
        if self.is_closed:
            return
        try:
            is_drained = self._hear_some()
        except BaseException:  # the loop tells of it; what comes behind it is heard all the same
            self._is_due = True
            self._loop.call_soon(self.work)
            raise
        if is_drained and self._has_ended:
            self._has_ended = False
            if self._on_end is not None:
                self._on_end()
        while self._unsent and self._wire.send(self._unsent[0]):  # nothing is unsent once it is closed
            self._unsent.popleft()
        if self._on_turn is not None:
            self._on_turn()
        self.look()

    def close(self) -> None:
        """Nothing is heard any more, and what had no room is never said; what was handed over still leaves."""
        self.is_closed = True
        self._unsent.clear()
        self._wire.close()

    def _hear_some(self) -> bool:
        """Whether all has been heard that is there."""
        for _ in range(self._per_turn):
            frames = self._wire.take()
            if frames is None:
                return True
            self._hear(frames)
            if self.is_closed or (self._is_busy is not None and self._is_busy()):
                return False
        return False

    def _end(self) -> None:
        """The other end is gone: what it said before is still heard."""
        self._has_ended = True
        self.work()
