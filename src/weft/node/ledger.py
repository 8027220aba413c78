"""Numbers the node's events, like the records of every stream, so that the lake can show that none is missing."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from weft.base.now import Now
from weft.base.records import Carried, CoreRecord, Entry, EraRecord, Record, Stream, StreamRecord
from weft.node.events import describe

NAME: Final = "node"
LAST_EVENT: Final = 1  # kind of the core record: [era, last sequence]


class Ledger:
    """Turns events into numbered journal records."""

    def __init__(self, node: bytes, era: int, name: str = "") -> None:
        self.node, self.era = node, era
        self._common = {"fmt": "json", "node": name} if name else {"fmt": "json"}
        self._before = (0, 0)  # era and last sequence of the previous start
        self._last = 0

    def restore(self, entries: Iterable[Entry]) -> None:
        """Find the last number of the previous era."""
        for _, record in entries:
            self._note(record)

    def _note(self, record: Record) -> None:
        if isinstance(record, CoreRecord) and record.core == NAME and record.kind == LAST_EVENT:
            era, last = msgspec.msgpack.decode(record.data, type=tuple[int, int])
            self._before = max(self._before, (era, last))
        elif isinstance(record, StreamRecord) and record.stream == Stream.EVENTS and record.origin == self.node:
            self._before = max(self._before, (record.era or 0, record.sequence))

    def condense(self) -> Iterable[CoreRecord]:
        latest = (self.era, self._last) if self._last else self._before
        yield CoreRecord(NAME, LAST_EVENT, msgspec.msgpack.encode(latest))

    def records(self, event: Any, now: Now) -> tuple[Carried, ...]:
        """The records of one event. Before the first one of this era a record names the end of the previous era."""
        name, level, fields = describe(event)
        self._last += 1
        record = StreamRecord(
            stream=Stream.EVENTS,
            origin=self.node,
            era=self.era,
            sequence=self._last,
            at=now.wall,
            received=now.wall,
            key=name,
            payload=msgspec.json.encode(fields),
            attributes={"level": level, **self._common},
        )
        if self._last > 1 or self._before == (0, 0):
            return (record,)
        return EraRecord(Stream.EVENTS, self.node, self.era, *self._before), record
