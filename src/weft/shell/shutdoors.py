"""Doors that refuse this node's key: it knocks there less and less often, and says so (SEC-052).

libzmq tries a door that refuses it ten times a second, for ever, and tells nobody. So whoever was dialled and says nothing
is knocked at once by a socket that is watched. If it refuses, what was dialled there is taken back, nothing waits for it,
and a single knock follows after a pause that doubles to a minute; the first one that is let in lets all dial again.
"""

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

FIRST_S: Final = 1.0
MOST_S: Final = 60.0
SPREAD: Final = 0.2  # so that a fleet that is shut out does not knock in unison
SILENT_S: Final = 5.0  # beats come each second or two: who says nothing for longer may not know us
KNOWN_MAX: Final = 1_024  # doors that are remembered; the oldest is tried anew then
QUIET_S: Final = 60.0  # before one that let us in, and has nothing to say, is knocked at again
OK, AWAY, REFUSED, OTHER = "ok", "away", "key-refused", "other-key"
"""What comes of a knock: let in; nobody there; this key is not known or may not come in; nobody with the key that was expected."""


class Place(NamedTuple):
    """A port that was dialled, and has said nothing for a while."""

    endpoint: str
    """`host:port`."""
    socket: str
    """Type of the socket that dials it."""
    servers: tuple[str, ...]
    """Keys that may be met there."""


class Shut(NamedTuple):
    """A door that refuses us."""

    why: str
    tries: int
    again_at: float


class ShutDoors:
    """Who refuses this node, and when it is knocked at again. Times are those of a clock that does not step."""

    def __init__(self, chance: Callable[[float, float], float] = random.uniform) -> None:
        self._chance = chance
        self._shut: dict[str, Shut] = {}
        self._rests: dict[str, float] = {}

    def is_shut(self, endpoint: str) -> bool:
        """Whether nothing is to be dialled there."""
        return endpoint in self._shut

    def is_due(self, endpoint: str, now: float) -> bool:
        """Whether it may be knocked at now."""
        shut = self._shut.get(endpoint)
        return now >= (shut.again_at if shut is not None else self._rests.get(endpoint, 0.0))

    def note(self, endpoint: str, outcome: str, now: float) -> bool:
        """What came of a knock; whether the door is another than before: it has shut, or lets us in."""
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
        """Keys have changed, ours or those of others: everybody may be tried at once."""
        self._rests.clear()
        self._shut = {endpoint: shut._replace(again_at=0.0) for endpoint, shut in self._shut.items()}

    def facts(self, now: float) -> list[dict[str, Any]]:
        """Each door that refuses us, for the status."""
        return [
            {"at": endpoint, "why": shut.why, "tries": shut.tries, "again_s": max(0, round(shut.again_at - now))}
            for endpoint, shut in self._shut.items()
        ]


class Awaited:
    """Where the sockets of one channel are dialled with keys, and since when nothing was heard there."""

    def __init__(self, shut: ShutDoors) -> None:
        self._shut = shut
        self._at: dict[bytes, str] = {}
        """By what `Source.peer` of a socket is."""
        self.unheard: dict[str, float] = {}
        """Since when nothing was heard, through however many sockets; who is not here was heard since the last look."""

    def note(self, key: bytes, endpoint: str, now: float) -> bool:
        """Something is to be heard there; whether that door refuses us, so that nothing is dialled."""
        if len(self.unheard) >= KNOWN_MAX:
            del self.unheard[next(iter(self.unheard))]
        self._at[key] = endpoint
        self.unheard.setdefault(endpoint, now)
        return self._shut.is_shut(endpoint)

    def note_heard(self, key: bytes) -> None:
        """It said something."""
        self.unheard.pop(self._at.get(key, ""), None)

    def drop(self, key: bytes) -> None:
        """The socket is closed."""
        self._at.pop(key, None)

    def keys_at(self, endpoint: str) -> list[bytes]:
        """Whose sockets are dialled there."""
        return [key for key, where in self._at.items() if where == endpoint]

    def silent(self, now: float) -> list[str]:
        """Where nothing was heard for a while, or nothing is dialled since that door refuses us."""
        return [
            endpoint
            for endpoint in self._at.values()
            if now - self.unheard.setdefault(endpoint, now) >= SILENT_S or self._shut.is_shut(endpoint)
        ]
