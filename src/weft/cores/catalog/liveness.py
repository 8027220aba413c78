"""Which instances are there: beats, silence, and what follows from it (BEA-010 to BEA-023; specs/02, 2.4)."""

from collections.abc import Callable
from typing import Any, Protocol

from weft.base.now import Now
from weft.cores.catalog.book import Book
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.station import Station
from weft.wire.catalog.messages import Beats, Message


class Registrar(Protocol):
    """What liveness needs of `registry.Registry`: the one place that changes what an instance is."""

    move: Callable[..., Any]
    leave: Callable[..., Any]
    remove: Callable[..., Any]
    of_beat: Callable[..., Instance | None]


class Pusher(Protocol):
    """What liveness needs of `serving.Serving`: words to the DEALER that an instance is bound to."""

    def push(self, instance: Instance, message: Message) -> bool:
        """False: it has none, or that is closed. A message without a time gets one in the peer's format."""


class Liveness:
    """Spans are measured on a clock that stands still while the broker does (BEA-022)."""

    def __init__(self, station: Station, book: Book, registry: Registrar, serving: Pusher) -> None:
        self._station, self._book, self._registry, self._serving = station, book, registry, serving

    @property
    def is_held(self) -> bool:
        """Whether nobody is called dead for now (BEA-023)."""
        return False

    def began(self, instance: Instance) -> None:
        """It is registered, registered again, back, or (`is_restored`) known from before this start: give it its time."""

    def heard(self, instance: Instance, via: str, now: Now) -> bool:
        """It gave a sign of life by `udp` or `tcp`, or answered a `probe`: O(1). False: it does not count, it had left."""
        return True

    def ended(self, instance: Instance) -> None:
        """It is INACTIVE, or removed."""

    def beats(self, beats: Beats, peer: bytes, now: Now) -> None:
        """A datagram came: at most one instance per line, of that address, is alive; nobody is registered by it (BEA-011)."""

    def probed(self, message: Message, peer: bytes, now: Now) -> None:
        """Whoever was asked at that address answers."""

    def note_late(self, now: Now) -> None:
        """Said first in every turn: who is called later than it asked for has stood still, and so have all deadlines (BEA-022)."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When the next silence, probe, reaping or eviction is due."""
        return None

    def shown(self, instance: Instance, now: Now) -> dict[str, Any]:
        """What `dbp.liveness` says of an instance (MON-008)."""
        return {}
