"""Which records the root has seen, so that none is kept twice (CHN-035, CHN-036, MEA-027).

A set of ranges per stream and origin. Nothing expires by time; bounds are the number of starts of one origin and the
number of gaps in its numbers. A record too old to be checked is kept and counted as `unsure`: a second copy is better
than none.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, TypeGuard

from weft.base.identity import Origin
from weft.base.ranges import RangeSet
from weft.base.records import Record, StreamRecord
from weft.base.vectors import VersionVector
from weft.cores.carrier import limits
from weft.cores.carrier.memory import SeenKept
from weft.wire.carried import is_mail

ORIGINS_PER_RECORD: Final = 500  # of a snapshot: a record of about 16 KiB


class Verdict(Enum):
    NEW = "none of its numbers was here"
    KNOWN = "all of its numbers were here"
    OVERLAPS = "some of its numbers were here"
    UNSURE = "too old to be compared"


class Seen:
    """The numbers of all origins in all streams. Equal contents are equal values."""

    def __init__(self) -> None:
        self._ranges: dict[tuple[int, Any, int | None], RangeSet] = {}
        self._eras: dict[tuple[int, Any], list[int]] = {}

    def take(self, record: StreamRecord) -> Verdict:
        """Classify a record, and remember it if it is NEW. O(1) for consecutive numbers."""
        ranges = self._ranges.get((record.stream, record.origin, record.era))
        if ranges is None:
            ranges = self._open(record.stream, record.origin, record.era)
            if ranges is None:
                return Verdict.UNSURE
        first, last = record.sequence, record.last
        if first <= ranges.highest:
            if ranges.covers(first, last):
                return Verdict.KNOWN
            if ranges.overlap(first, last):
                return Verdict.OVERLAPS
        ranges.add(first, last)
        if len(ranges) > limits.SEEN_RANGES_MAX:
            ranges.remove(*next(iter(ranges)))
        return Verdict.NEW

    def without_repeats(self, records: Sequence[Record], mail: StreamRecord) -> list[Record]:
        """The records that a root keeps in place of mail, except those that it has already; remembers them.

        A former root sends up mail that it turned into a record of the lake; the mail itself may come later (CHN-035).
        """
        return [each for each in records if not _is_for_lake(each, mail) or self.take(each) is not Verdict.KNOWN]

    def missing(self, record: StreamRecord) -> list[tuple[int, int]]:
        """The numbers of a record that were not seen."""
        ranges = self._ranges.get((record.stream, record.origin, record.era))
        first, last = record.sequence, record.last
        return [(first, last)] if ranges is None else ranges.gaps(last, since=first)

    def _open(self, stream: int, origin: Any, era: int | None) -> RangeSet | None:
        """Make room for one more start of an origin; None if it is older than all remembered ones."""
        if era is not None:
            eras = self._eras.setdefault((stream, origin), [])
            if len(eras) >= limits.SEEN_ERAS_MAX:
                if era < eras[0]:
                    return None
                del self._ranges[stream, origin, eras.pop(0)]
            eras.append(era)
            eras.sort()
        ranges = self._ranges[stream, origin, era] = RangeSet()
        return ranges

    def condense(self) -> Iterator[SeenKept]:
        """Pieces from which `adopt` restores the contents."""
        streams: dict[int, list[tuple[Origin, RangeSet]]] = {}
        for (stream, origin, era), ranges in self._ranges.items():
            streams.setdefault(stream, []).append((Origin(origin, era), ranges))
        for stream, entries in sorted(streams.items()):
            for at in range(0, len(entries), ORIGINS_PER_RECORD):
                yield SeenKept(stream, VersionVector(entries[at : at + ORIGINS_PER_RECORD]).encode())

    def adopt(self, memory: SeenKept) -> None:
        """Restore a piece of a snapshot."""
        for origin, numbers in VersionVector.decode(memory.vector):
            key = (memory.stream, origin.node, origin.era)
            ranges = self._ranges.get(key)
            if ranges is None:
                ranges = self._open(*key)
            if ranges is not None:
                ranges.update(numbers)

    def adopt_vectors(self, vectors: Iterable[tuple[int, bytes]]) -> list[SeenKept]:
        """Add the numbers of streams, each with a vector of any size; returns them in pieces for the journal."""
        merged = Seen()
        for stream, vector in vectors:
            merged.adopt(SeenKept(stream, vector))
        pieces = list(merged.condense())
        for piece in pieces:
            self.adopt(piece)
        return pieces

    def __len__(self) -> int:
        return len(self._ranges)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Seen):
            return NotImplemented
        return self._ranges == other._ranges

    __hash__ = None  # type: ignore[assignment]  # mutable: must not be a key


def seen_of(record: StreamRecord) -> SeenKept:
    """The record to write when a record is not kept as it came, so that `adopt` knows its numbers."""
    numbers = RangeSet([(record.sequence, record.last)])
    return SeenKept(record.stream, VersionVector([(record.source, numbers)]).encode())


def _is_for_lake(record: Record, mail: StreamRecord) -> TypeGuard[StreamRecord]:
    """Whether a record kept in place of mail goes to the lake, under the identity of the mail."""
    if type(record) is not StreamRecord or is_mail(record):
        return False
    return record.sequence == mail.sequence and record.origin == mail.origin and record.era == mail.era


class Notes:
    """Losses and era links kept recently. Repeating one changes nothing, so each is kept once."""

    def __init__(self) -> None:
        self._lately: dict[bytes, None] = {}

    def is_new(self, note: bytes) -> bool:
        """Whether these bytes are not among the last ones; remembers them."""
        if note in self._lately:
            return False
        if len(self._lately) >= limits.NOTES_MAX:
            del self._lately[next(iter(self._lately))]
        self._lately[note] = None
        return True
