"""The ROUTER: what peers say, the table of connections, at most one answer each (CAT-005 to CAT-011, CAT-020)."""

from typing import TYPE_CHECKING

from weft.base.effects import Source
from weft.base.now import Now
from weft.cores.catalog.connections import Connections
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import Garbled
from weft.cores.catalog.registry import Registry
from weft.cores.catalog.station import Station
from weft.wire.catalog.messages import Message

if TYPE_CHECKING:
    from weft.cores.catalog.book import Book
    from weft.cores.catalog.queries import Queries


class Serving:
    """Answers who asks, registers who comes, and closes who breaks the rules."""

    def __init__(
        self, station: Station, book: "Book", registry: Registry, connections: Connections, queries: "Queries"
    ) -> None:
        self.station, self.book, self.registry = station, book, registry
        self.connections, self.queries = connections, queries

    def hear(self, message: Message, source: Source, now: Now) -> None:
        """A message on the ROUTER: done, and answered at most once."""
        raise NotImplementedError

    def garbled(self, order: Garbled, now: Now) -> None:
        """Something came that is no message (R14)."""
        raise NotImplementedError

    def push(self, instance: Instance, message: Message) -> bool:
        """Say something unasked, to the bound DEALER only; False: there is none (CAT-006)."""
        raise NotImplementedError

    def failed(self, peer: bytes) -> None:
        """What was said last to a peer could not be sent: it is gone, or takes nothing."""
        raise NotImplementedError
