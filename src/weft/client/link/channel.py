"""Reads messages from a wire, a few per turn of the loop, and sends messages in order.

Readiness is edge-triggered: the loop is told once that messages have arrived, not as long as some are unread. So after
each turn and each send the channel itself checks for more.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from weft.client.link.sockets import Opener, Wire

Hear = Callable[[list[bytes]], Any]


class Channel:
    """One connection from opening to end. Use it in a running loop."""

    def __init__(  # tidy: each is an option that some user needs
        self,
        opener: Opener,
        hear: Hear,
        *,
        per_turn: int,
        on_turn: Callable[[], None] | None = None,
        is_busy: Callable[[], bool] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """`hear` is called for each multipart, at most `per_turn` times in a turn; then `on_turn` is called.

        While `is_busy` is true only one is read per turn. `on_end` is called once: when the connection has ended, and
        everything that came before has been read.
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
        """Whether everything has been handed to the socket."""
        return not self._unsent

    def say(self, frames: list[bytes]) -> None:
        """Send now, or when there is room."""
        if self._unsent or not self._wire.send(frames):
            self._unsent.append(frames)
        self.look()

    def offer(self, frames: list[bytes]) -> bool:
        """Send now or not at all; False: there is no room, or no peer."""
        is_sent = not self._unsent and self._wire.send(frames)
        self.look()
        return is_sent

    def look(self) -> None:
        """To be called after each use of the socket: messages that came meanwhile are read in the next turn."""
        if not self.is_closed and not self._is_due and (self._has_ended or self._wire.is_ready()):
            self._is_due = True
            self._loop.call_soon(self.work)

    def work(self) -> None:
        """One turn: read, send what had no room before, call `on_turn`."""
        self._is_due = False
        if self.is_closed:
            return
        try:
            is_drained = self._hear_some()
        except BaseException:  # the loop's exception handler reports it; later messages are still read
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
        """Stop reading and drop unsent messages; those handed to the socket still leave."""
        self.is_closed = True
        self._unsent.clear()
        self._wire.close()

    def _hear_some(self) -> bool:
        """Read some messages; returns whether all were read."""
        for _ in range(self._per_turn):
            frames = self._wire.take()
            if frames is None:
                return True
            self._hear(frames)
            if self.is_closed or (self._is_busy is not None and self._is_busy()):
                return False
        return False

    def _end(self) -> None:
        """The connection has ended; what came before is still read."""
        self._has_ended = True
        self.work()
