"""Publishes a service's values and log records, on an XPUB socket, which learns who subscribes.

The catalog subscribes after it has approved the service. Earlier publications would reach nobody, so the first ones
wait briefly for the first subscriber.
"""

import asyncio
from collections import deque

import zmq

from weft.client.catalog.servicelimits import FIRST_WORDS_MAX, FIRST_WORDS_S, SETTLE_S
from weft.client.catalog.sockets import Plug
from weft.client.link.sockets import Context


class Speaker:
    """The XPUB socket of a service."""

    def __init__(self, context: Context) -> None:
        self._plug = Plug(context, zmq.XPUB, self._hear)
        self._loop = asyncio.get_running_loop()
        self._held: deque[list[bytes]] | None = deque(maxlen=FIRST_WORDS_MAX)
        """First publications, which wait for a subscriber; None: publications are sent at once."""
        self._timer: asyncio.TimerHandle | None = None

    def bind(self, host: str) -> int:
        """Bind to a free port, and return it."""
        return self._plug.bind(host, 0)

    def say(self, frames: list[bytes]) -> None:
        """Publish; never waits for a slow subscriber."""
        if self._held is None:
            self._plug.say(frames)
        else:
            self._held.append(frames)

    def note_approved(self) -> None:
        """The catalog may subscribe now: if it does not do so soon, publications no longer wait."""
        self._release_in(FIRST_WORDS_S)

    def close(self, linger_ms: int) -> None:
        """Close it; the last messages have some time to leave."""
        self._release()
        self._plug.close(linger_ms)

    def _hear(self, _: list[bytes]) -> None:
        """A subscription has arrived; a subscriber's other ones follow within `SETTLE_S`."""
        if self._held is not None:
            self._release_in(SETTLE_S)

    def _release_in(self, span_s: float) -> None:
        due_at = self._loop.time() + span_s
        if self._held is None or (self._timer is not None and self._timer.when() <= due_at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due_at, self._release)

    def _release(self) -> None:
        waiting, self._held = self._held or (), None
        if self._timer is not None:
            self._timer.cancel()
        for frames in waiting:
            self._plug.say(frames)
