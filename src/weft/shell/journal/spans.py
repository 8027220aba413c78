"""Which numbers of which origins a segment holds: what is lost if it is given up, and what its damage has destroyed."""

from collections.abc import Iterable, Iterator

from weft.base.identity import Origin
from weft.base.mail import INBOX, OUTBOX
from weft.base.ranges import RangeSet
from weft.base.records import Entry, LostRecord, StreamRecord
from weft.base.spool import Span
from weft.shell.files import Files
from weft.shell.journal.segment import Segment

Numbers = dict[tuple[int, Origin], RangeSet]


def held(files: Files, segment: Segment) -> tuple[Span, ...]:
    """All numbers that the readable records of a segment hold or announce as lost, in order of first appearance.

    Announced losses count, because whoever gives the segment up has to announce them again.
    """
    return tuple(_spans(_numbers(segment.entries(files))))


def lacking(files: Files, segment: Segment) -> tuple[Span, ...]:
    """The numbers that a segment held and that cannot be read any more.

    The footer lists what it held. Without a footer: all numbers between two readable ones of an origin, since they were
    written in order.
    """
    readable = _numbers(segment.entries(files))
    listed: Numbers = {}
    for entry in segment.footer(files) or ():
        listed.setdefault((entry.stream, Origin(entry.origin, entry.era)), RangeSet()).add(entry.first, entry.last)
    if not listed:
        listed = {key: _between(ranges) for key, ranges in readable.items() if key[0] not in (OUTBOX, INBOX)}
    return tuple(_spans({key: numbers - readable.get(key, RangeSet()) for key, numbers in listed.items()}))


def _between(ranges: RangeSet) -> RangeSet:
    """All numbers from the first to the last. Mail is left out: each node decides which of it goes on."""
    known = list(ranges)
    return RangeSet([(known[0][0], known[-1][1])])


def _numbers(entries: Iterable[Entry]) -> Numbers:
    found: Numbers = {}
    for _, record in entries:
        if isinstance(record, StreamRecord):
            found.setdefault((record.stream, record.source), RangeSet()).add(record.sequence, record.last)
        elif isinstance(record, LostRecord):
            found.setdefault((record.stream, record.source), RangeSet()).add(record.first, record.last)
    return found


def _spans(numbers: Numbers) -> Iterator[Span]:
    for (stream, origin), ranges in numbers.items():
        for first, last in ranges:
            yield Span(stream, origin.node, origin.era, first, last)
