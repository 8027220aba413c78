"""Decides which records of the journal become which segment of the lake. It holds numbers, not records.

The records stay in the journal. Per stream this core notes the range of lsn that waits, how many rows it holds, and
since when. When a segment is due, the core names the range and the shell reads the journal. So a lake that fails for
long does not make the recorder's memory grow.

What the lake already has is read from the lake alone: at the start the manifests are inspected, and the journal is read
again from the end of the last segments (LAK-007). The core's own cursor, a core record, only says where to begin
reading, and which start may have written since: a copy of the node's disk may write under its name, too. The same
reading serves a drain that falls behind: above a limit of waiting rows it notes no more records, and reads them from the
journal later, when there is room (LAK-015).
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from weft.base.budget import Budget
from weft.base.effects import Effect, Source
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry, EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.base.spool import FetchRecords, Journaled, RecordsFetched, Released
from weft.cores.drain import limits
from weft.cores.drain.lane import Lane, Moment, Noted
from weft.cores.drain.messages import (
    BeginBehind,
    DrainClosed,
    DrainSettings,
    InspectLake,
    LakeBack,
    LakeFailed,
    LakeFound,
    LakeFull,
    LakeRefused,
    SecondWriter,
    SegmentFailed,
    SegmentPublished,
    SegmentWritten,
    Stop,
    StreamTip,
)
from weft.cores.drain.states import On, State
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.timers import earliest

CURSOR: Final = 1
"""Kind of the one core record."""


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where to begin reading at the next start. If the lake has less than the cursor says, the lake is right."""

    released: int
    tips: tuple[tuple[int, int, int], ...]
    """Stream, number and last lsn of the last published segments."""
    start: int = 0
    """The start of this node that may have published more; 0: none, or one of a version that did not say."""
    end: int = 0
    """The last lsn of that start, if starts that have not found the lake have come after it; else 0."""


class Trouble:
    """The streams whose last segment failed; 0: the lake itself. It is told once, until the lake works again."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._streams: set[int] = set()

    def worse(self, stream: int, why: str, detail: str) -> None:
        """A segment failed; `why` is `full` or `failed`."""
        if not self._streams:
            self._outbox.tell(LakeFull(detail) if why == "full" else LakeFailed(detail))
        self._streams.add(stream)

    def better(self, stream: int) -> None:
        """A segment was written."""
        if stream in self._streams:
            self._streams.remove(stream)
            if not self._streams:
                self._outbox.tell(LakeBack())


class Drain:
    """The drain core: a lane per stream, one cursor over all of them."""

    name = "drain"

    def __init__(self, settings: DrainSettings | None = None, start: int = 0) -> None:
        self._start = start
        self._outbox = Outbox()
        self.budget = Budget()
        chosen = settings or DrainSettings()
        assert 1 <= chosen.rows_max <= limits.ROWS_MOST, chosen
        self.lanes = {int(stream): Lane(stream, chosen, self._outbox) for stream in Stream}
        self.seen = 0
        """All records up to this lsn are noted, or are in the lake."""
        self._cursor = Cursor(0, ())
        self._heard = 0  # the last lsn known to be in the journal
        self._end = 0  # the last lsn of the starts before this one
        self._is_born = False  # whether the journal has a record of this start
        self._passed = 0
        self._inspect_ns = limits.RETRY_NS
        self._inspect_at: int | None = 0
        self._is_found = False
        self._is_live = False  # no record stands in the journal between `seen` and the next one that is reported
        self._is_fetching = False
        self._fetch_at: int | None = None
        self._released = 0
        self._trouble = Trouble(self._outbox)
        self._is_alone = True
        self._stop_at: int | None = None
        self._was_live = False
        self._is_closed = False

    # The verbs of a core.

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore the cursor; the journal is read once the lake has said how much it has."""
        for lsn, record in entries:
            self._end = max(self._end, lsn)
            if isinstance(record, CoreRecord) and record.core == self.name:
                assert record.kind == CURSOR, record.kind
                self._cursor = msgspec.msgpack.decode(record.data, type=Cursor)
        self._start = self._start or (0 if self._cursor.end else self._cursor.start)

    def condense(self) -> Iterable[CoreRecord]:
        return (self._cursor_record(),)

    def receive(self, message: Any, source: Source, now: Now) -> None:
        raise PeerError("unexpected", "the drain has no links")

    def command(self, order: Any, now: Now) -> None:
        """Obey an order; KeyError for an unknown type, which is a defect of the node."""
        if not self._is_closed:
            self._ORDERS[type(order)](self, order, now)
            self._after(now)

    def wake(self, now: Now) -> None:
        if self._is_closed:
            return
        if self._inspect_at is not None and self._inspect_at <= now.mono:
            self._inspect_at = None
            if self._start != self._cursor.start and not self._cursor.end:
                self._keep(msgspec.structs.replace(self._cursor, end=self._end))
            self._outbox.perform(InspectLake(self._cursor.tips, self._cursor.start))
        if self._fetch_at is not None and self._fetch_at <= now.mono:
            self._fetch_at = None
        if self._stop_at is not None and self._stop_at <= now.mono:
            self._all(On.OVERDUE, now)
        self._after(now)

    def deadline(self) -> int | None:
        if self._is_closed:
            return None
        lanes = self.lanes.values() if self._is_found else ()
        return earliest(self._inspect_at, self._fetch_at, self._stop_at, *[lane.due() for lane in lanes])

    def effects(self) -> list[Effect]:
        return self._outbox.take()

    @property
    def behind(self) -> tuple[int, int]:
        """Rows and bytes noted and not yet in the lake; the journal may hold more."""
        lanes = self.lanes.values()
        return sum(lane.rows for lane in lanes), sum(lane.bytes for lane in lanes)

    # Orders.

    def _lake_found(self, order: LakeFound, now: Now) -> None:
        """Begin reading behind what the lake has. Where lake and cursor differ, the lake is right."""
        tips = {stream: (number, lsn) for stream, number, lsn in self._cursor.tips}
        self.seen = self._cursor.released
        for lane in self.lanes.values():
            lane.start = self._start
        for tip in order.tips:
            # On a disk that was put back the journal gives lsn that the lake has to other records.
            lsn = min(tip.lsn, self._cursor.end or self._end)
            self.lanes[tip.stream].tip = msgspec.structs.replace(tip, lsn=lsn)
            if tip.other:
                self._tell_second(tip.stream, tip.other)
        for stream, (number, _) in tips.items():
            tip = self.lanes[stream].tip
            if tip.number < number:
                self.seen = min(self.seen, tip.lsn)
        self._is_found, self._inspect_ns = True, limits.RETRY_NS
        self._trouble.better(0)
        if self._start != self._cursor.start:  # before this start writes its first segment
            self._keep(Cursor(self.seen, self._tips(), self._start))

    def _tell_second(self, stream: int, number: int) -> None:
        if self._is_alone:
            self._is_alone = False
            self._outbox.tell(SecondWriter(stream, number))

    def _begin_behind(self, order: BeginBehind, now: Now) -> None:
        """Begin behind this lsn. The records up to it are for an earlier root to drain into its lake."""
        if not self._is_found and order.lsn > self._cursor.released:
            self._keep(msgspec.structs.replace(self._cursor, released=order.lsn), limits.CURSOR_WITHIN_NS)

    def _lake_refused(self, order: LakeRefused, now: Now) -> None:
        self._inspect_at = now.mono + self._inspect_ns
        self._inspect_ns = min(2 * self._inspect_ns, limits.RETRY_NS_MOST)
        self._trouble.worse(0, order.why, order.detail)

    def _journaled(self, order: Journaled, now: Now) -> None:
        """Note new records, unless older ones have to be read from the journal first."""
        self._heard = order.first_lsn + len(order.records) - 1
        self._is_born = True
        if not self._is_live or self._stop_at is not None or self._is_swamped():
            self._is_live = False
            return
        for lsn, record in enumerate(order.records, order.first_lsn):
            self._note(lsn, record, now)
        self.seen = self._heard

    def _fetched(self, order: RecordsFetched, now: Now) -> None:
        """Note records that were read from the journal; once all are read, the drain is live."""
        self._is_fetching = False
        if order.after != self.seen:
            return
        for lsn, record in order.entries:
            self._note(lsn, record, now)
        self.seen = max(self.seen, order.upto)
        if self.seen >= self._heard:
            self._is_live = order.upto == order.after or self._is_born
        elif order.upto == order.after:
            self._fetch_at = now.mono + limits.FETCH_AGAIN_NS

    def _segment_written(self, order: SegmentWritten, now: Now) -> None:
        lane = self.lanes[order.stream]
        assert order.number > lane.tip.number, (order.number, lane.tip)
        if order.number > lane.tip.number + 1:
            self._tell_second(order.stream, lane.tip.number + 1)
        lane.turn(On.WRITTEN_ALL if lane.is_empty else On.WRITTEN_MORE, Moment(now.mono))
        if lane.state is State.CLOSED:
            return  # it came after the stop: the next start learns it from the manifest
        lane.tip = StreamTip(order.stream, order.number, order.last_lsn, order.digest)
        self._trouble.better(order.stream)
        self._publish(order)

    def _segment_failed(self, order: SegmentFailed, now: Now) -> None:
        lane = self.lanes[order.stream]
        lane.turn(On.NO_SPACE if order.why == "full" else On.REFUSED, Moment(now.mono))
        self._trouble.worse(order.stream, order.why, order.detail)
        if lane.is_closing:
            lane.turn(On.STOPPED, Moment(now.mono))

    def _stop(self, order: Stop, now: Now) -> None:
        self._stop_at, self._was_live = now.mono + limits.CLOSE_NS, self._is_live
        for lane in self.lanes.values():
            lane.is_closing = True
        self._all(On.STOPPED if self._is_found else On.OVERDUE, now)

    # In every turn.

    def _after(self, now: Now) -> None:
        if self._is_found:
            self._write_what_is_due(now)
            self._look_behind()
            if all(lane.state is State.IDLE for lane in self.lanes.values()):
                self._release()
        if self._stop_at is not None:
            self._close_if_done(now)

    def _write_what_is_due(self, now: Now) -> None:
        for lane in self.lanes.values():
            due = lane.due()
            if due is not None and due <= now.mono:
                lane.turn(On.DUE, Moment(now.mono))

    def _look_behind(self) -> None:
        """Read the journal behind `seen`, if records stand there and there is room for them."""
        if self._is_live or self._is_fetching or self._fetch_at is not None or self._stop_at is not None:
            return
        if not self._is_swamped():
            self._is_fetching = True
            self._outbox.perform(FetchRecords(self.name, self.seen, limits.FETCH_BYTES))

    def _close_if_done(self, now: Now) -> None:
        lanes = self.lanes.values()
        for lane in lanes:
            if lane.state is State.IDLE:
                lane.turn(On.STOPPED, Moment(now.mono))
        if all(lane.state is State.CLOSED for lane in lanes):
            self._is_closed = True
            is_whole = self._was_live and not any(lane.rows for lane in lanes)
            self._outbox.tell(DrainClosed(is_whole))

    # Noting and releasing.

    def _note(self, lsn: int, record: Record, now: Now) -> None:
        """Count a record into its lane, unless the lake had it when this start began.

        Messages under way have no lane.
        """
        if not isinstance(record, StreamRecord | LostRecord | EraRecord) or record.stream not in self.lanes:
            return
        lane = self.lanes[record.stream]
        if lsn <= lane.tip.lsn:
            return
        rows, size = (_rows(record), len(record.payload)) if isinstance(record, StreamRecord) else (0, 0)
        self._passed += size
        moment = Moment(now.mono, Noted(lsn, rows, size + limits.ROW_BYTES * max(rows, 1), self._passed))
        lane.turn(On.RECORD, moment)

    def _is_swamped(self) -> bool:
        rows, size = self.behind
        return rows > limits.WAITING_ROWS_MAX or size > limits.WAITING_BYTES_MAX

    def _publish(self, order: SegmentWritten) -> None:
        """Write the cursor first, then tell (LAK-005)."""
        self._keep(Cursor(self._releasable(), self._tips(), self._start), limits.CURSOR_WITHIN_NS)
        published = SegmentPublished(order.stream, order.number, order.rows, order.bytes, order.last_lsn)
        self._outbox.tell(published)
        self._release()

    def _releasable(self) -> int:
        """The lsn up to which every record is in a segment. A stream without waiting records does not hold it back."""
        waiting = [first for lane in self.lanes.values() if (first := lane.first_waiting()) is not None]
        return min([self.seen, *(first - 1 for first in waiting)])

    def _release(self) -> None:
        upto = self._releasable()
        if upto > self._released:
            self._released = upto
            self._outbox.tell(Released(self.name, upto))

    def _keep(self, cursor: Cursor, within_ns: int = 0) -> None:
        self._cursor = cursor
        self._outbox.persist((self._cursor_record(),), within_ns)

    def _tips(self) -> tuple[tuple[int, int, int], ...]:
        return tuple((s, lane.tip.number, lane.tip.lsn) for s, lane in self.lanes.items() if lane.tip.number)

    def _cursor_record(self) -> CoreRecord:
        return CoreRecord(self.name, CURSOR, msgspec.msgpack.encode(self._cursor))

    def _all(self, on: On, now: Now) -> None:
        for lane in self.lanes.values():
            lane.turn(on, Moment(now.mono))

    _ORDERS: Final[dict[type, Callable[..., None]]] = {
        BeginBehind: _begin_behind,
        Journaled: _journaled,
        RecordsFetched: _fetched,
        LakeFound: _lake_found,
        LakeRefused: _lake_refused,
        SegmentWritten: _segment_written,
        SegmentFailed: _segment_failed,
        Stop: _stop,
    }


def _rows(record: StreamRecord) -> int:
    """The number of rows that a record states; an impossible number counts as 1."""
    count = record.attributes.get("n", 1)
    return count if type(count) is int and 1 <= count <= limits.ROWS_MOST else 1
