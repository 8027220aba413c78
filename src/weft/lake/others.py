"""What another program has written into a drain: a copy of the node's disk, which runs elsewhere.

Both write under one name, and each writes behind the other. What was in the journal when the disk was copied, both have.
"""

from typing import Final

from weft.base.records import EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.base.vectors import VersionVector
from weft.lake.columns import Account, last_of
from weft.lake.manifest import Manifest, origin_of, record_name

BY_START: Final = frozenset({Stream.SAMPLES, Stream.MESSAGES, Stream.LOGS, Stream.EVENTS, Stream.CATALOG})
"""The streams whose eras are starts: no two starts give the same number."""


class Others:
    """The records of one stream that are in segments of others, so that they are not written twice."""

    def __init__(self) -> None:
        self._received = VersionVector()
        self._lost: set[tuple[str, int | None, int, int, str]] = set()

    def add(self, manifest: Manifest) -> None:
        """Note what a segment of another program holds."""
        self._received.update(manifest.vector())
        self._lost.update(manifest.lost)

    def have(self, record: Record) -> bool:
        """Whether a record of this stream is in one of their segments.

        Where numbers do not tell starts apart, the same number may be another record there; so that is written again, and the
        tables count it once.
        """
        if isinstance(record, StreamRecord):
            if record.era is None or record.stream not in BY_START:
                return False
            seen = self._received[origin_of(record_name(record), record.era)]
            return seen.covers(record.sequence, max(record.sequence, last_of(record)))
        if isinstance(record, LostRecord | EraRecord):
            account = Account()
            account.announced(record)
            return account.lost[0] in self._lost
        return False
