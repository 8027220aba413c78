"""Calls to the fleet: one PUB socket that connects to the announcement port of each node, and repeated messages on it.

The first message of a new connection is usually lost, so the current call is sent in a burst on each connection, and
then every H (TOP-005).
"""

from collections.abc import Callable, Iterable

from weft.base.endpoints import ANNOUNCEMENTS, is_endpoint, shifted
from weft.base.now import Now
from weft.cores.kit.timers import earliest
from weft.cores.topology import limits
from weft.cores.topology.context import Context
from weft.wire.discovery import Announcement


class Announcer:
    """`call` returns the current announcement; None: there is none."""

    def __init__(self, context: Context, call: Callable[[], Announcement | None]) -> None:
        self.context = context
        self.connected: dict[str, None] = {}
        self._call = call
        self._burst: list[int] = []
        self._beat_at: int | None = None

    def connect(self, endpoints: Iterable[str], now: Now) -> None:
        """Connect to these endpoints as well; existing connections stay."""
        if not self.context.settings.calls:
            return
        fresh = [
            endpoint
            for endpoint in dict.fromkeys(endpoints)
            if endpoint not in self.connected and endpoint != self.context.endpoint and is_endpoint(endpoint)
        ][: limits.NODES_MAX - len(self.connected)]
        for endpoint in fresh:
            self.connected[endpoint] = None
            self.context.connect("announce", shifted(endpoint, ANNOUNCEMENTS))
        if fresh:
            self.call_often(now)

    def call_often(self, now: Now) -> None:
        """Send the current call now, again soon, and then every H."""
        self._burst = sorted({*self._burst, *(now.mono + offset for offset in limits.MARCO_BURST_NS)})
        self._beat_at = now.mono + self.context.beat_ns

    def say(self, announcement: Announcement) -> None:
        """Send a message once to all connected nodes."""
        if self.connected:
            self.context.send("announce", b"", announcement)

    def hang_up(self) -> None:
        """Close all connections."""
        self._burst, self._beat_at = [], None
        if self.connected:
            self.connected.clear()
            self.context.disconnect("announce")

    def deadline(self) -> int | None:
        return earliest(self._beat_at, *self._burst[:1])

    def wake(self, now: Now) -> None:
        """Send the current call if it is due; it also stands for calls that are due within 0.05 s after it."""
        due = self.deadline()
        if due is None or now.mono < due:
            return
        self._burst = [at for at in self._burst if at >= now.mono + limits.MARCO_GAP_NS // 2]
        self._beat_at = now.mono + self.context.beat_ns
        if (call := self._call()) is not None:
            self.say(call)
