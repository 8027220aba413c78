"""What the journal and the cores that use it tell each other.

The journal of a node is its outbox: the carrier sends up, and the drain writes to the lake, what stands in it behind
their cursors. Neither keeps a second copy on disk.
"""

import msgspec

from weft.base.records import Entry, Record


class Journaled(msgspec.Struct, frozen=True, gc=False):
    """Order: these records stand in the journal from `first_lsn` on; they are durable before what is sent now leaves."""

    first_lsn: int
    records: tuple[Record, ...]


class FetchRecords(msgspec.Struct, frozen=True, gc=False):
    """Work: read the journal behind `after`, about `bytes_max` bytes of it; answered by `RecordsFetched`."""

    holder: str
    """The core that asks, and gets the answer."""
    after: int
    bytes_max: int


class RecordsFetched(msgspec.Struct, frozen=True, gc=False):
    """Order: all that stands in the journal with `after < lsn <= upto`, in order; damaged records are absent."""

    holder: str
    after: int
    upto: int
    entries: tuple[Entry, ...]


class Span(msgspec.Struct, frozen=True, gc=False):
    """Consecutive records of one origin in one stream, as a segment's footer lists them (JRN-011)."""

    stream: int
    origin: bytes | str
    era: int | None
    first: int
    last: int


class DropOldest(msgspec.Struct, frozen=True, gc=False):
    """Order: the spool is full; give up everything up to `upto`, and announce what the parent has not got (MEA-025)."""

    upto: int
    spans: tuple[Span, ...]


class Released(msgspec.Struct, frozen=True, gc=False):
    """Event: `holder` needs no record up to `upto` any more; the journal may forget what all holders have released."""

    holder: str
    upto: int
