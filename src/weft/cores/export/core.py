"""What monitoring systems outside have got of the journal's samples (MET-006).

The journal is the spool: nothing is copied. Of each receiver the core remembers how far it is, as a record, and releases
the journal up to the slowest one. A receiver that is away holds at most half of the journal; what it then loses is
counted and told. Delivery is at least once, in the order of the journal.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from weft.base.budget import Budget
from weft.base.chance import Chance
from weft.base.effects import Effect, Source
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry, Record, Stream, StreamRecord
from weft.base.spool import Journaled, Released
from weft.cores.export.lane import MEMORIES, Lane
from weft.cores.export.messages import NAME, ExportSettings, GiveWay, RangeFailed, RangeSent
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.timers import earliest

KEY: Final = "weft.metric"
COUNTED: Final = ("samples", "refused", "skipped", "failed", "given_up", "stale")
"""Names of all counters."""


def has_samples(record: Record) -> bool:
    """Whether a record is something for the receivers."""
    return isinstance(record, StreamRecord) and record.stream == Stream.SAMPLES and record.key == KEY


class Export:
    """The export core: a lane per receiver."""

    name = NAME

    def __init__(self, settings: ExportSettings, chance: Chance) -> None:
        self.budget = Budget()
        self.counts: Counter[str] = Counter()
        self._outbox = Outbox()
        self.lanes = {sink: Lane(sink, self._outbox, chance, self.counts) for sink in settings.sinks}
        self._released = 0
        self._has_begun = False

    # The verbs of every core.

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore how far each receiver is; the place of one that the file no longer names is forgotten."""
        for lsn, record in entries:
            if isinstance(record, CoreRecord) and record.core == NAME:
                place = MEMORIES.from_record(record)
                if place.sink in self.lanes:
                    self.lanes[place.sink].restored(place)
            elif has_samples(record):
                for lane in self.lanes.values():
                    lane.restored_samples(lsn)

    def condense(self) -> Iterator[CoreRecord]:
        for lane in self.lanes.values():
            if lane.place is not None:
                yield MEMORIES.to_record(lane.place)

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """PeerError: this core has no peers."""
        raise PeerError("not-spoken", "the export core hears no messages")

    def command(self, order: Any, now: Now) -> None:
        """Obey an order of messages.py."""
        self._begin()
        if isinstance(order, Journaled):
            self._journaled(order, now)
        elif isinstance(order, GiveWay):
            for lane in self.lanes.values():
                lane.give_way(order.upto, now)
        elif isinstance(order, RangeSent | RangeFailed) and order.sink in self.lanes:
            self.lanes[order.sink].hear(order, now)
        self._release()

    def wake(self, now: Now) -> None:
        """Do what is due."""
        self._begin()
        for lane in self.lanes.values():
            lane.wake(now)
        self._release()

    def deadline(self) -> int | None:
        return earliest(*[lane.due_at for lane in self.lanes.values()]) if self._has_begun else 0

    def effects(self) -> list[Effect]:
        return self._outbox.take()

    # In every turn

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            for lane in self.lanes.values():
                lane.begin()

    def _journaled(self, order: Journaled, now: Now) -> None:
        last = order.first_lsn + len(order.records) - 1
        samples = max((lsn for lsn, each in enumerate(order.records, order.first_lsn) if has_samples(each)), default=0)
        for lane in self.lanes.values():
            lane.journaled(order.first_lsn, last, samples, now)

    def _release(self) -> None:
        places = [lane.place for lane in self.lanes.values()]
        known = [place.warm for place in places if place is not None]
        if len(known) == len(places) and known and min(known) > self._released:
            self._released = min(known)
            self._outbox.tell(Released(NAME, self._released))

    # For people

    def facts(self) -> dict[str, Any]:
        """Numbers for the status."""
        waiting = sum(lane.waiting for lane in self.lanes.values())
        return {"waiting": waiting, **{name: self.counts[name] for name in COUNTED}}
