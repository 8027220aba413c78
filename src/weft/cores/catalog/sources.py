"""Publishers: whom the broker listens to, for last values and logs (LVC-001, LOG-001).

Each interface named `pub`, or of type `PUB`, of each instance that is not INACTIVE has a socket of its own; its tag is
name, instance and interface. What it says is a record of the logs, or else a last value.
"""

from weft.base.now import Now
from weft.cores.catalog.book import Book
from weft.cores.catalog.logs import Logs
from weft.cores.catalog.station import Change, Station
from weft.cores.catalog.values import Values
from weft.wire.catalog.messages import Taken


class Sources:
    """Who is subscribed to, and for what."""

    def __init__(self, station: Station, book: Book, values: Values, logs: Logs) -> None:
        self.station, self.book, self.values, self.logs = station, book, values, logs
        station.listeners.append(self.changed)

    def open(self, now: Now) -> None:
        """Listen to all that were restored; what changes later is heard by `changed`."""

    def changed(self, change: Change) -> None:
        """Listen to who is new or back, no longer to who is gone, anew to who moved."""

    def hear(self, taken: Taken, tag: bytes, now: Now) -> None:
        """A publisher has said something; O(1)."""
