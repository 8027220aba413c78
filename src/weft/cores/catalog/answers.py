"""What a lookup is answered, in bytes that are kept until something changes (CAT-017, CAT-030..033)."""

from collections.abc import Iterable
from typing import Any

from weft.cores.catalog.book import Book
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.station import Station


class Answers:
    """Lookups. A name's answer is made once after each change of one of its instances, and then only copied."""

    def __init__(self, station: Station, book: Book) -> None:
        self._station, self._book = station, book
        book.forgetters.append(self.forget)

    def of(self, frames: tuple[bytes, ...]) -> bytes:
        """The answer to a REQUEST that is no query: its names as they came; none, or only empty ones, means all."""
        raise NotImplementedError

    def one(self, name: bytes) -> bytes:
        """One name: its best instance, and the others of it; else why there is none."""
        raise NotImplementedError

    def all(self) -> bytes:
        """Every name that has an instance one could use."""
        raise NotImplementedError

    def several(self, names: Iterable[bytes]) -> bytes:
        """Those found, each once, the others in `_dbp.missing`."""
        raise NotImplementedError

    def shown(self, instance: Instance) -> dict[str, Any]:
        """A record as answers show it: the sender's keys less `name`, the address one can reach, and `_dbp`."""
        raise NotImplementedError

    def record(self, instance: Instance) -> bytes:
        """`shown` as JSON; kept until the instance changes."""
        raise NotImplementedError

    def records(self, instances: Iterable[Instance]) -> bytes:
        """A JSON list of `{"name", "instance", "record"}`, joined of what is kept: the `records` of queries and watches."""
        raise NotImplementedError

    def forget(self, instance: Instance) -> None:
        """It has changed, or is gone: what was kept of it and its name is old."""
        raise NotImplementedError
