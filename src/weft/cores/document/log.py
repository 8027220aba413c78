"""Every operation of every source, and how far each is known without a gap (specs/04, section 3)."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from weft.base.records import CoreRecord, Entry
from weft.cores.document.station import Station
from weft.wire.document.operations import Operation


class Kept(NamedTuple):
    """One operation of the log."""

    body: bytes
    received_ns: int
    """Wall clock."""
    received_from: bytes
    """UUID of the peer; our own: it was entered here."""


class Taken(NamedTuple):
    """What became of a body that was heard."""

    code: str
    """`new`, `held`, `duplicate`, `fork`, `no_header`, `own_source`, `shed`, `full`."""
    source: bytes = b""
    sequence: int = 0
    is_further: bool = False
    """Whether the gapless prefix of its source has grown."""


class Log:
    """Pure memory with records: what enters it is kept by the station."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.on_reused: Callable[[bytes, bytes], None] = lambda peer, uuid: None
        self.on_fork: Callable[[Operation], object] = lambda operation: None

    def begin(self) -> None:
        """Keep name and schema of the session, once."""

    def latest(self, source: bytes) -> int:
        """Length of the gapless prefix."""
        return 0

    def highest(self, source: bytes) -> int:
        """The greatest number that is held of a source, beyond gaps too."""
        return 0

    def body(self, source: bytes, sequence: int) -> bytes:
        """The bytes of a prefix operation."""
        return self.kept(source, sequence).body

    def kept(self, source: bytes, sequence: int) -> Kept:
        """A prefix operation; KeyError where there is none."""
        raise KeyError((source, sequence))

    def sources(self) -> list[tuple[bytes, int]]:
        """(uuid, latest) of all with a prefix, by uuid."""
        return []

    def held(self) -> list[tuple[bytes, int]]:
        """(uuid, sequence) of what is held beyond gaps."""
        return []

    @property
    def count(self) -> int:
        """Operations in all prefixes."""
        return 0

    @property
    def check(self) -> int:
        """Of all prefixes (PEE-022)."""
        return 0

    def arrival(self, position: int) -> tuple[bytes, int]:
        """(source, sequence) of the prefix operation that became known as the `position`-th, from 0."""
        raise IndexError(position)

    def position(self, source: bytes, sequence: int) -> int:
        """The converse of `arrival`."""
        raise KeyError((source, sequence))

    def eff(self, source: bytes, sequence: int) -> float:
        """Effective time of a prefix operation (DOC-010)."""
        raise KeyError((source, sequence))

    def take(self, body: bytes, sender: bytes) -> Taken:
        """Hear a body from a peer (GSP-010 to GSP-015)."""
        return Taken("no_header")

    def append(self, body: bytes) -> Operation:
        """Take the next own operation; a wall stands in front of what the turn says."""
        raise NotImplementedError

    def fresh(self) -> list[Operation]:
        """What entered prefixes since the last time, in order of arrival; asking empties it."""
        return []

    def restore(self, entries: Iterable[Entry]) -> None:
        """Take back records of this session, in any order, doubled or not."""

    def condense(self) -> Iterable[CoreRecord]:
        """Records from which `restore` makes the same log."""
        return ()
