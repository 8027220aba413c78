"""Who is registered, and what becomes of it: the table of instances, obeyed (CAT-018 to CAT-022, CAT-050; specs/02, 2.4)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.states import On
from weft.cores.catalog.station import Asker, Station

if TYPE_CHECKING:
    from weft.cores.catalog.book import Book


class Watcher(Protocol):
    """What the registry tells whoever watches over lives: `liveness.Liveness`."""

    def began(self, instance: Instance) -> None:
        """It was registered, came back or was restored: it is expected to be heard from now on."""

    def ended(self, instance: Instance) -> None:
        """It is INACTIVE, or removed."""


class Registry:
    """All changes of instances pass here."""

    def __init__(self, station: Station, book: "Book") -> None:
        self.station, self.book = station, book
        self.liveness: Watcher | None = None

    def register(self, body: bytes, asker: Asker) -> tuple[Instance, bytes]:
        """Obey `UwU`: the instance, and the body of `OwO` (BEA-014). Refusal: nothing has changed."""
        raise NotImplementedError

    def update(self, body: bytes, asker: Asker, bound: Instance | None = None) -> Instance:
        """Obey `UoU` (CAT-018); `bound`: the instance of the connection that it came by. Refusal: nothing has changed."""
        raise NotImplementedError

    def move(self, instance: Instance, on: On, reason: str = "") -> None:
        """Something happened to an instance: what the table says is done. Without a row nothing is, and that is counted."""
        raise NotImplementedError

    def leave(self, instance: Instance, reason: str = "left") -> None:
        """It said goodbye, and can be trusted."""
        self.move(instance, On.LEFT, reason)

    def remove(self, instance: Instance, reason: str) -> None:
        """It is forgotten."""
        self.move(instance, On.REAPED, reason)

    def of_beat(self, name: str, instance_id: str | None, asker_owner: str) -> Instance | None:
        """The one instance that a beat of this owner means; None: none, or several (CAT-021, BEA-011)."""
        raise NotImplementedError

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Take back what the journal kept, in one or several pieces (CAT-051)."""
        raise NotImplementedError

    def condense(self) -> Iterable[CoreRecord]:
        """Records from which `restore` gives the same instances."""
        raise NotImplementedError
