"""The last value of each topic, for who comes late (LVC-002..008)."""

from weft.base.now import Now
from weft.cores.catalog.book import Book
from weft.cores.catalog.publishing import Publishing
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.station import Change, Station
from weft.wire.catalog.messages import Subscription


class Values:
    """Last messages by (name, instance, topic), all frames verbatim (LVC-002)."""

    def __init__(self, station: Station, book: Book, queries: Queries, publishing: Publishing) -> None:
        self.station, self.book, self.publishing = station, book, publishing
        station.listeners.append(self.changed)

    def hear(self, key: tuple[str, str], frames: tuple[bytes, ...], now: Now) -> None:
        """The last message of its topic is another one now."""

    def changed(self, change: Change) -> None:
        """Values of who is INACTIVE are stale; of who is removed, gone (LVC-007)."""

    def subscribed(self, subscription: Subscription, now: Now) -> None:
        """Who subscribes to `lcv/…` gets what is kept at once (LVC-005)."""

    def wake(self, now: Now) -> None:
        """The rest of what subscribers were promised."""

    def deadline(self) -> int | None:
        return None
