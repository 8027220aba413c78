"""Log records of all services: normalised, kept, published, remembered (LOG-001..009)."""

from weft.base.now import Now
from weft.cores.catalog.book import Book
from weft.cores.catalog.publishing import Publishing
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.station import Station
from weft.wire.catalog.messages import Message, Subscription


class Logs:
    """What services warn of, in one place."""

    def __init__(self, station: Station, book: Book, queries: Queries, publishing: Publishing) -> None:
        self.station, self.book, self.publishing = station, book, publishing

    def hear_refill(self, message: Message, peer: bytes, now: Now) -> None:
        """A service has said records again that were asked for (LOG-006)."""

    def subscribed(self, subscription: Subscription, now: Now) -> None:
        """Which of `logs/…` is wanted."""

    def wake(self, now: Now) -> None:
        """Holes that were not filled are reported; repetitions become one record."""

    def deadline(self) -> int | None:
        return None
