"""Knows which peers refuse this node's key, and when to try each again: less and less often (SEC-052).

libzmq retries a peer that refuses it ten times a second, for ever, and reports nothing. So a peer that was dialled and
stays silent is probed by a separate, monitored socket. If it refuses the probe, the connections to it are closed, no
messages are queued for it, and further probes follow after pauses that double up to a minute. As soon as one is accepted,
all sockets dial it again.
"""

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

FIRST_S: Final = 1.0  # pause after the first refusal
MOST_S: Final = 60.0  # longest pause
SPREAD: Final = 0.2  # random spread, so that a refused fleet does not retry at the same instant
SILENT_S: Final = 5.0  # then a peer counts as silent: beats come every second or two
KNOWN_MAX: Final = 1_024  # peers that are remembered; beyond that the oldest is retried
QUIET_S: Final = 60.0  # seconds before a peer that accepted this node, but is silent, is probed again
OK, AWAY, REFUSED, OTHER = "ok", "away", "key-refused", "other-key"
"""Results of a probe: accepted; nobody there; our key is unknown or not allowed; nobody with the expected key."""


class Place(NamedTuple):
    """A port that was dialled, and has been silent for a while."""

    endpoint: str
    """`host:port`."""
    socket: str
    """Type of the socket that dials it."""
    servers: tuple[str, ...]
    """Keys that the peer may have."""


class Shut(NamedTuple):
    """A peer that refuses this node."""

    why: str
    tries: int
    again_at: float


class ShutDoors:
    """Which peers refuse this node, and when to probe them again. Times are of a monotonic clock."""

    def __init__(self, chance: Callable[[float, float], float] = random.uniform) -> None:
        self._chance = chance
        self._shut: dict[str, Shut] = {}
        self._rests: dict[str, float] = {}

    def is_shut(self, endpoint: str) -> bool:
        """Whether nothing must be dialled there now."""
        return endpoint in self._shut

    def is_due(self, endpoint: str, now: float) -> bool:
        """Whether it may be probed now."""
        shut = self._shut.get(endpoint)
        return now >= (shut.again_at if shut is not None else self._rests.get(endpoint, 0.0))

    def note(self, endpoint: str, outcome: str, now: float) -> bool:
        """Note the result of a probe; returns whether it differs from the last: refused now, or accepted now."""
        was = self._shut.pop(endpoint, None)
        if outcome in (OK, AWAY):
            self._rest(endpoint, now)
            return was is not None
        tries = was.tries + 1 if was is not None else 1
        pause = min(FIRST_S * 2 ** min(tries - 1, 16), MOST_S / (1 + SPREAD))
        if len(self._shut) >= KNOWN_MAX:
            del self._shut[next(iter(self._shut))]
        self._shut[endpoint] = Shut(outcome, tries, now + pause * self._chance(1 - SPREAD, 1 + SPREAD))
        return was is None

    def _rest(self, endpoint: str, now: float) -> None:
        self._rests = {where: until for where, until in self._rests.items() if until > now}
        self._rests[endpoint] = now + QUIET_S

    def forget(self) -> None:
        """Let all peers be tried at once: keys have changed, this node's or those of others."""
        self._rests.clear()
        self._shut = {endpoint: shut._replace(again_at=0.0) for endpoint, shut in self._shut.items()}

    def facts(self, now: float) -> list[dict[str, Any]]:
        """Each peer that refuses this node, for the status."""
        return [
            {"at": endpoint, "why": shut.why, "tries": shut.tries, "again_s": max(0, round(shut.again_at - now))}
            for endpoint, shut in self._shut.items()
        ]


class Awaited:
    """The peers that sockets dial with keys, and since when each is silent."""

    def __init__(self, shut: ShutDoors, *, does_hear: bool = True) -> None:
        """`does_hear`: whether peers send anything. Those of a PUB do not: they are silent until their connection is accepted."""
        self._shut, self._does_hear = shut, does_hear
        self._at: dict[bytes, dict[str, str]] = {}
        """The key that a peer must have, by the key of the socket (`Source.peer`) and endpoint: a socket may dial many."""
        self.unheard: dict[str, float] = {}
        """Since when a peer is silent, by endpoint, over all sockets that dial it. A peer that was heard is not here."""

    def note(self, key: bytes, endpoint: str, now: float, curve: str = "") -> bool:
        """Note a peer that should be dialled, and the key that it must have; returns whether it refuses this node: do not dial."""
        if len(self.unheard) >= KNOWN_MAX:
            del self.unheard[next(iter(self.unheard))]
        self._at.setdefault(key, {})[endpoint] = curve
        self.unheard.setdefault(endpoint, now)
        return self._shut.is_shut(endpoint)

    def note_heard(self, key: bytes) -> None:
        """Note that the peers of a socket have sent something."""
        for endpoint in self._at.get(key, ()):
            self.unheard.pop(endpoint, None)

    def note_link(self, key: bytes, endpoint: str, now: float, *, is_up: bool) -> str:
        """Note that a connection was accepted or lost; returns the key that its peer must have, empty: any."""
        curve = self._at.get(key, {}).get(endpoint, "")
        if curve and not self._does_hear:
            if is_up:
                self.unheard.pop(endpoint, None)
            else:
                self.unheard.setdefault(endpoint, now)
        return curve

    def drop(self, key: bytes) -> None:
        """Forget a closed socket."""
        self._at.pop(key, None)

    def keys_at(self, endpoint: str) -> list[bytes]:
        """The keys of the sockets that dial an endpoint."""
        return [key for key, places in self._at.items() if endpoint in places]

    def silent(self, now: float) -> list[str]:
        """Peers that are silent for `SILENT_S`, or are not dialled because they refuse this node."""
        return [
            endpoint
            for places in self._at.values()
            for endpoint in places
            if now - self._silent_since(endpoint, now) >= SILENT_S or self._shut.is_shut(endpoint)
        ]

    def _silent_since(self, endpoint: str, now: float) -> float:
        """Since when a peer is silent; `now`: it is not. A peer that was heard is silent from this look on."""
        return self.unheard.setdefault(endpoint, now) if self._does_hear else self.unheard.get(endpoint, now)
