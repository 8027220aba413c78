"""Gives up the oldest records of a full spool: reads them once more and announces exactly what is lost (MEA-025).

Mail that no parent has is never given up: its sender was told `spooled`. If such mail is in the way, nothing is given
up (`full` is `block`, CHN-039): the node becomes full and tells so to senders and measurement.
"""

from collections.abc import Callable
from typing import Any

from weft.base.ranges import RangeSet
from weft.base.records import Carried, EraRecord, LostRecord, Record, StreamRecord
from weft.base.spool import DropOldest, FetchRecords, RecordsFetched, Span
from weft.cores.carrier import limits
from weft.cores.carrier.context import Context
from weft.cores.carrier.memory import Doubted
from weft.cores.carrier.messages import AnnounceDamage, CaughtUp, SpoolHigh
from weft.cores.carrier.outbox import Outbox, is_carried, weight
from weft.wire.carried import MAIL_STREAMS, is_mail

WHY = "spool-full"
DAMAGE = "damage"


class Dropping:
    """A drop under way: everything behind `after` up to `upto` is read and its identities are collected.

    Announcements of earlier losses and era links in that range are collected too, and sent again.
    """

    def __init__(self, order: DropOldest, after: int, is_taken: Callable[[int], bool]) -> None:
        self.upto, self.after, self._is_taken = order.upto, after, is_taken
        self.records = self.bytes = 0
        self.promised_lsn = 0
        """The lsn of mail that must not be given up; 0: none found."""
        self._lost: dict[tuple[int, Any, int | None, str], RangeSet] = {}
        self._new: dict[tuple[int, Any, int | None], RangeSet] = {}
        self._links: list[EraRecord] = []

    def work(self, holder: str) -> FetchRecords:
        """What to read next."""
        return FetchRecords(holder, self.after, limits.FETCH_BYTES)

    def take(self, order: RecordsFetched, safe_lsn: int) -> bool:
        """Collect what was read, except what is safe by now; returns whether reading is over.

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
        """The announcements to send up in place of the records that are given up."""
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


class HighWater:
    """Tells of a spool that fills up, long before anything of it is given up (CHN-083)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._is_high = False

    def look(self) -> None:
        """Tell if the spool has become high, or is so no longer: once each, and again after a start."""
        counters, room = self._context.counters, self._context.settings.journal_bytes
        percent = limits.SPOOL_LOW_PERCENT if self._is_high else limits.SPOOL_HIGH_PERCENT
        is_high = room > 0 and counters.spool_bytes * 100 >= room * percent
        if is_high is not self._is_high:
            self._is_high = is_high
            self._context.tell(SpoolHigh(is_high, counters.spool_records, counters.spool_bytes, room))


class Backlog:
    """Tells when the parent has the records that waited while there was no link to it (CFG-091)."""

    def __init__(self, context: Context, outbox: Outbox) -> None:
        self._context, self._outbox = context, outbox
        self._upto: int | None = None
        self._held = 0

    def begin(self) -> None:
        """The link is up: what waits now is the backlog."""
        newest = self._outbox.seen_lsn
        self._upto = None if self._outbox.has_gone(newest) else newest
        self._held = self._context.counters.held

    def look(self) -> None:
        """The parent has acknowledged something: tell once if that was the rest of the backlog."""
        if self._upto is None or not self._outbox.has_gone(self._upto):
            return
        self._upto = None
        records = self._context.counters.held - self._held
        if records >= limits.BACKLOG_MIN:
            self._context.tell(CaughtUp(records))


class Damages:
    """The losses by journal damage, each announced once, and asked for once.

    The damage itself is reported at every start until a person accepts it.
    """

    def __init__(self) -> None:
        self._announced: dict[LostRecord, None] = {}
        self.doubted: dict[Doubted, None] = {}
        """The damages of which everything was asked for again."""

    def note(self, record: Carried) -> None:
        """Process a restored record, which may be such an announcement."""
        if type(record) is LostRecord and record.why == DAMAGE:
            self._announced[record] = None

    def fresh(self, order: AnnounceDamage) -> tuple[LostRecord, ...]:
        """The losses to announce now. Mail under way has no numbers that a receiver could miss."""
        lost = [
            LostRecord(span.stream, span.origin, span.era, span.first, span.last, DAMAGE)
            for span in order.spans
            if span.stream not in MAIL_STREAMS
        ]
        fresh = tuple(record for record in lost if record not in self._announced)
        self._announced.update(dict.fromkeys(fresh))
        return fresh


def _add(sets: dict[Any, RangeSet], key: tuple[Any, ...], first: int, last: int) -> None:
    ranges = sets.get(key)
    if ranges is None:
        ranges = sets[key] = RangeSet()
    ranges.add(first, last)
