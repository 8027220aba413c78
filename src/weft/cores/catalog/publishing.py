"""What the broker publishes: every change, and ticks by which a watcher notices that it missed one (CAT-040..044)."""

from weft.base.effects import Send
from weft.base.now import Now
from weft.cores.catalog.book import Book
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.station import EVENTS, Asker, Change, Station
from weft.wire.catalog.messages import Publication, Subscription


class Publishing:
    """The XPUB of events, as far as the core knows it."""

    def __init__(self, station: Station, book: Book, queries: Queries) -> None:
        self._station, self._book = station, book
        station.listeners.append(self.changed)
        queries.add("dbp.watch", self.watch)
        queries.add("dbp.changes", self.changes)

    def publish(self, topic: bytes, *frames: bytes) -> None:
        """Say something to whoever subscribed to the topic."""
        self._station.effects.append(Send(EVENTS, b"", Publication(topic, frames)))

    def subscribed(self, subscription: Subscription, now: Now) -> None:
        """Somebody subscribed, or nobody is left who does."""

    def changed(self, change: Change) -> None:
        """An instance changed: publish it (CAT-040)."""

    def watch(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.watch filter` (CAT-041)."""
        raise NotImplementedError

    def changes(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.changes {"epoch","since"}` (CAT-044)."""
        raise NotImplementedError

    def wake(self, now: Now) -> None:
        """Ticks are due, or a topic that nobody watches goes."""

    def deadline(self) -> int | None:
        """When the next tick is due."""
        return None
