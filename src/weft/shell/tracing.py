"""Finds one record at this node: what its journal and its carrier know about it (OBS-007).

The footer of a closed segment lists its numbers, so few segments are read. Reading one takes a tenth of a second, so it
happens in a thread.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

from weft.base.mail import INBOX, OUTBOX
from weft.base.records import Entry, LostRecord, Stream, StreamRecord
from weft.cores.carrier.core import Carrier
from weft.node.node import Node
from weft.shell.files import Files
from weft.shell.journal import Journal
from weft.shell.journal.segment import Segment

SEGMENTS_MAX: Final = 8  # read for one answer: 128 MiB
FOUND_MAX: Final = 32
DIGITS_MAX: Final = 18  # so that a number fits into 64 bits
STREAMS: Final = {stream.name.lower(): (int(stream),) for stream in Stream} | {
    "messages": (int(Stream.MESSAGES), OUTBOX, INBOX)
}
"""Numbers of streams, by the names that people use: mail under way counts as messages."""
NAMES: Final = {number: name for name, numbers in STREAMS.items() for number in numbers}


def is_by(origin: str, text: str) -> bool:
    """Whether a text names an origin: its full name, or the beginning of its last part, with or without hyphens.

    >>> is_by("Hall 5/5f3a9c21aa", "5f3a-9c21"), is_by("Hall 5/5f3a9c21aa", "9c21"), is_by("hall", "hall")
    (True, False, True)
    """
    return origin == text or ("/" in origin and origin.rpartition("/")[2].startswith(text.lower().replace("-", "")))


class Wanted(NamedTuple):
    """The number of a record and its origin; without stream or era: those of any."""

    origin: str
    """A node's UUID in hex, another origin's text, or the beginning of its last part: `5f3a9c21` of `Hall 5/5f3a9c21…`."""
    sequence: int
    streams: tuple[int, ...] = ()
    era: int | None = None

    def is_of(self, stream: int, origin: Any, era: int | None) -> bool:
        """Whether it can be a number of this stream, origin and era."""
        is_era = self.era is None or era is None or era == self.era
        return is_era and (not self.streams or stream in self.streams) and self._is_by(origin)

    def _is_by(self, origin: Any) -> bool:
        if isinstance(origin, bytes):
            return origin.hex() == self.origin
        return is_by(origin, self.origin)

    def covers(self, first: int, last: int) -> bool:
        return first <= self.sequence <= last


def wanted_of(query: str) -> Wanted | None:
    """Read `origin=…&sequence=…&stream=…&era=…`; None if the query is invalid."""
    fields = {name: values[-1] for name, values in parse_qs(query).items()}
    number, era = fields.get("sequence", ""), fields.get("era", "")
    if not fields.get("origin") or not is_number(number) or (era and not is_number(era)):
        return None
    streams = STREAMS.get(fields.get("stream", ""), ())
    if "stream" in fields and not streams:
        return None
    return Wanted(fields["origin"], int(number), streams, int(era) if era else None)


def is_number(text: str, digits_max: int = DIGITS_MAX) -> bool:
    """Whether a part of an address is a number without a sign, of at most so many digits."""
    return text.isascii() and text.isdigit() and len(text) <= digits_max


class Tracer:
    """Reads the journal of a running node; may be used in any thread."""

    def __init__(self, node: Node, journal: Journal, files: Files) -> None:
        self._node, self._journal, self._files = node, journal, files

    def body(self, wanted: Wanted) -> bytes:
        """Everything that this node knows about a number, as JSON."""
        return json.dumps([self._line(*entry) for entry in self._entries(wanted)]).encode() + b"\n"

    def _entries(self, wanted: Wanted) -> list[Entry]:
        found: list[Entry] = []
        looked = 0
        for segment in reversed(self._journal.shelf.segments):
            if looked == SEGMENTS_MAX or len(found) >= FOUND_MAX:
                break
            try:
                if self._may_hold(segment, wanted):
                    looked += 1
                    found += _matching(segment.entries(self._files), wanted)
            except FileNotFoundError:
                continue  # deleted meanwhile
        return sorted(found, key=lambda entry: entry[0])[:FOUND_MAX]

    def _may_hold(self, segment: Segment, wanted: Wanted) -> bool:
        footer = segment.footer(self._files)
        return footer is None or any(
            wanted.is_of(line.stream, line.origin, line.era) and wanted.covers(line.first, line.last) for line in footer
        )

    def _line(self, lsn: int, record: Any) -> dict[str, Any]:
        origin = record.origin.hex() if isinstance(record.origin, bytes) else record.origin
        line = {"stream": NAMES.get(record.stream, str(record.stream)), "origin": origin, "era": record.era, "lsn": lsn}
        if isinstance(record, LostRecord):
            return {**line, "first": record.first, "last": record.last, "lost": record.why, "stage": self._stage(lsn)}
        return {
            **line,
            "first": record.sequence,
            "last": record.last,
            "at": record.at,
            "received": record.received,
            "key": record.key,
            "is_mail": record.stream in (OUTBOX, INBOX),
            "stage": "arrived" if record.stream == INBOX else self._stage(lsn),
        }

    def _stage(self, lsn: int) -> str:
        """How far a record has come: at a root `kept` or `drained`; elsewhere `waiting`, `sent`, `held` or `safe`."""
        if self._node.settings.level == "root":
            return "drained" if lsn <= self._node.released.get("drain", 0) else "kept"
        carrier = self._node.cores.get("carrier")
        return carrier.outbox.stage(lsn) if isinstance(carrier, Carrier) else "waiting"


def _matching(entries: Iterator[Entry], wanted: Wanted) -> Iterator[Entry]:
    for lsn, record in entries:
        if isinstance(record, StreamRecord):
            is_it = wanted.covers(record.sequence, record.last)
        elif isinstance(record, LostRecord):
            is_it = wanted.covers(record.first, record.last)
        else:
            continue
        if is_it and wanted.is_of(record.stream, record.origin, record.era):
            yield lsn, record
