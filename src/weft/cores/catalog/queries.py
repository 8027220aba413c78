"""Questions about the broker itself: names that begin with `dbp.` (CAT-034)."""

from collections.abc import Callable, Iterable
from typing import Final

from weft.cores.catalog.answers import Answers
from weft.cores.catalog.book import Book
from weft.cores.catalog.station import Asker, Station

PREFIX: Final = b"dbp."
CAPS: Final = ("f64", "lvc", "log")
"""What this broker can beyond the seed: the same in its beacon, its status and its approvals (BEA-001)."""

Query = Callable[[tuple[bytes, ...], Asker], tuple[bytes, ...]]
"""Arguments behind the name, and who asks; the body frames behind the time. Raises Refusal."""


class Queries:
    """The table of questions; other parts add theirs."""

    def __init__(self, station: Station, book: Book, answers: Answers) -> None:
        self._station, self._book, self.answers = station, book, answers
        self._table: dict[str, Query] = {}
        self.gauges: dict[str, Callable[[], Iterable[tuple[str, float]]]] = {}
        """By metric (`held`): label values and figures of now, for `dbp.metrics`; other parts add theirs."""

    def add(self, name: str, function: Query) -> None:
        """Answer a question (`dbp.topics`); the last who says so answers it."""
        self._table[name] = function

    def answer(self, body: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """The body frames behind the time for any REQUEST: names, or a query; refusals of queries are answers too."""
        raise NotImplementedError
