"""What becomes of records and mail that have arrived: met before or not, for this node or another, kept or changed."""

from collections.abc import Callable, Sequence

from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import Record, StreamRecord
from weft.cores.carrier.identities import Identities, Meeting
from weft.cores.carrier.memory import to_record
from weft.cores.carrier.seen import seen_of
from weft.cores.carrier.station import Station

Screen = Callable[[StreamRecord, Now], Sequence[Record]]
"""What to keep in the journal in place of a record that has arrived."""


def keep_all(record: StreamRecord, _now: Now) -> Sequence[Record]:
    """The screen of a node without chains."""
    return (record,)


class Mailroom:
    """Judges arrivals. `screen` is asked about each that is new here and not on its way to another node (RTE-003)."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self.screen: Screen = keep_all
        self.met = Identities()

    def pass_record(self, record: StreamRecord, now: Now) -> Sequence[Record]:
        """What to keep in place of a record. A root that keeps something else remembers that it has seen this one."""
        kept = self.screen(record, now)
        if not self._station.settings.is_root or (len(kept) == 1 and kept[0] is record):
            return kept
        return (*kept, to_record(seen_of(record)))

    def pass_mail(self, record: StreamRecord, now: Now) -> Sequence[Record]:
        """What to keep in place of mail; PeerError for what must not come. It is met once, by whatever way (CHN-035)."""
        counters = self._station.counters
        if record.origin == self._station.node:
            raise PeerError("loop", "what this node has sent itself")
        meeting = self.met.meet(record.origin, record.era or 0, record.sequence)
        if meeting is Meeting.DUPLICATE:
            counters.known += 1
            return ()
        counters.unsure += meeting is Meeting.UNSURE
        counters.accepted += 1
        return self.screen(record, now)
