"""Giving up the oldest records of a full spool: read them once more, and announce exactly what is lost (MEA-025).

Mail that no parent has taken is never given up: whoever sent it has heard `spooled`. Where it stands, nothing is (`full`
is `block`, CHN-039): the node becomes full, and says so to those who send and measure.
"""

from collections.abc import Callable
from typing import Any

from weft.base.ranges import RangeSet
from weft.base.records import Carried, EraRecord, LostRecord, Record, StreamRecord
from weft.base.spool import DropOldest, FetchRecords, RecordsFetched, Span
from weft.cores.carrier import limits
from weft.cores.carrier.messages import AnnounceDamage
from weft.cores.carrier.outbox import is_carried, weight
from weft.wire.carried import MAIL_STREAMS, is_mail

WHY = "spool-full"
DAMAGE = "damage"


class Dropping:
    """One drop under way: everything behind `after` up to `upto` is read and its identities are noted.

    Announcements of earlier losses and era links among it are kept: they are said again.
    """

    def __init__(self, order: DropOldest, after: int, is_taken: Callable[[int], bool]) -> None:
        self.upto, self.after, self._is_taken = order.upto, after, is_taken
        self.records = self.bytes = 0
        self.promised_lsn = 0
        """Where mail stands that must not be given up; 0: none was found."""
        self._lost: dict[tuple[int, Any, int | None, str], RangeSet] = {}
        self._new: dict[tuple[int, Any, int | None], RangeSet] = {}
        self._links: list[EraRecord] = []

    def work(self, holder: str) -> FetchRecords:
        """What to read next."""
        return FetchRecords(holder, self.after, limits.FETCH_BYTES)

    def take(self, order: RecordsFetched, safe_lsn: int) -> bool:
        """Note what was read, but for what is safe by now; returns whether that was all, or all that matters.

        If the journal has nothing more to read, no more is given up.
        """
        for lsn, record in order.entries:
            if not (safe_lsn < lsn <= self.upto and is_carried(record)):
                continue
            if is_mail(record) and not self._is_taken(lsn):
                self.promised_lsn = lsn
                return True
            self._note(record)
        if order.upto <= self.after:
            self.upto = self.after
        self.after = order.upto
        return self.after >= self.upto

    def _note(self, record: Carried) -> None:
        if is_mail(record):
            pass  # a parent has it
        elif isinstance(record, StreamRecord):
            source = (record.stream, record.origin, record.era)
            _add(self._new, source, record.sequence, record.last)
            _add(self._lost, (*source, WHY), record.sequence, record.last)
        elif isinstance(record, LostRecord):
            _add(self._lost, (record.stream, record.origin, record.era, record.why), record.first, record.last)
        else:
            self._links.append(record)
        self.records += 1
        self.bytes += weight(record)

    def announcements(self) -> list[Record]:
        """What has to be said upward in place of what is given up."""
        lost = [
            LostRecord(stream, origin, era, first, last, why)
            for (stream, origin, era, why), ranges in self._lost.items()
            for first, last in ranges
        ]
        return [*self._links, *lost]

    def spans(self) -> tuple[Span, ...]:
        """What is lost now."""
        return tuple(
            Span(stream, origin, era, first, last)
            for (stream, origin, era), ranges in self._new.items()
            for first, last in ranges
        )


class Damages:
    """What a damage of the journal took, announced once: the loss is told of again at each start until it is accepted."""

    def __init__(self) -> None:
        self._said: dict[LostRecord, None] = {}

    def note(self, record: Carried) -> None:
        """A restored record: it may be an announcement."""
        if type(record) is LostRecord and record.why == DAMAGE:
            self._said[record] = None

    def fresh(self, order: AnnounceDamage) -> tuple[LostRecord, ...]:
        """What has to be announced now. Mail under way has no numbers that anybody could miss."""
        lost = [
            LostRecord(span.stream, span.origin, span.era, span.first, span.last, DAMAGE)
            for span in order.spans
            if span.stream not in MAIL_STREAMS
        ]
        fresh = tuple(record for record in lost if record not in self._said)
        self._said.update(dict.fromkeys(fresh))
        return fresh


def _add(sets: dict[Any, RangeSet], key: tuple[Any, ...], first: int, last: int) -> None:
    ranges = sets.get(key)
    if ranges is None:
        ranges = sets[key] = RangeSet()
    ranges.add(first, last)
