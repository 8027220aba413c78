"""Numbers for samples: from 1 in every era, without gaps, given after the chain (MEA-023).

The journaled samples are the memory: from them a restart finds where the preceding era ended. The first record of an
era names that end, so that completeness can be checked across restarts.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from weft.base.errors import UserError
from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord, Entry, EraRecord, Record, Stream, StreamRecord
from weft.wire.samples import SampleBatch, encode_pieces

KEY: Final = "weft.metric"
NAME: Final = "measurement"
END: Final = 1  # kind of the core record: [era, last sequence]
OTHERS: Final = (2, 3, 4)  # kinds of alarms.py

_END: Final = msgspec.msgpack.Decoder(tuple[int, int])


class Numbering:
    """The last number of this node's samples: `last` in this `era`; and the era `before` with its last number."""

    def __init__(self, node: bytes, era: int) -> None:
        self.node, self.era, self.last = node, era, 0
        self.before = (0, 0)

    def restore(self, entries: Iterable[Entry]) -> None:
        """Find the end of the last era with samples. Records that a snapshot already contains change nothing."""
        for _, record in entries:
            end = self._end_of(record)
            if end is not None:
                assert end[0] < self.era, f"era {self.era} began before"
                self.before = max(self.before, end)

    def _end_of(self, record: Record) -> tuple[int, int] | None:
        if isinstance(record, CoreRecord):
            return _kept(record) if record.core == NAME and record.kind not in OTHERS else None
        if not isinstance(record, StreamRecord | EraRecord):
            return None
        if record.stream != Stream.SAMPLES or record.origin != self.node:
            return None
        return (record.era or 0, record.last if isinstance(record, StreamRecord) else 0)

    def condense(self) -> Iterator[CoreRecord]:
        """One record from which `restore` restores the same state."""
        end = (self.era, self.last) if self.last else self.before
        if end != (0, 0):
            yield CoreRecord(NAME, END, msgspec.msgpack.encode(end))

    def records(self, batch: SampleBatch, extra: dict[str, Any], now: Now) -> Iterator[Record]:
        """The numbered record of a batch, preceded by the link to the preceding era if there was one."""
        if not self.last and self.before != (0, 0):
            yield EraRecord(Stream.SAMPLES, self.node, self.era, *self.before)
        for piece, body in encode_pieces(batch):
            rows = len(piece.rows)
            yield StreamRecord(
                stream=Stream.SAMPLES,
                origin=self.node,
                era=self.era,
                sequence=self.last + 1,
                at=piece.t0_ms * MILLISECOND,
                received=now.wall,
                key=KEY,
                payload=body,
                attributes={"n": rows, **extra},
            )
            self.last += rows


def _kept(record: CoreRecord) -> tuple[int, int]:
    if record.kind != END:
        why = (
            f"the journal has a record of the measurement core of kind {record.kind}, which this version does not know"
        )
        raise UserError("newer-data", why, "start the version of Weft that wrote it, or a newer one")
    return _END.decode(record.data)
