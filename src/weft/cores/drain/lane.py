"""One stream on its way into the lake: its waiting records, cut into segments, and the last segment published."""

from collections import deque
from typing import NamedTuple

from weft.base.now import seconds
from weft.cores.drain import limits
from weft.cores.drain.messages import DrainSettings, StreamTip, WriteSegment
from weft.cores.drain.states import TABLE, On, State
from weft.cores.kit.outbox import Outbox


class Cut(NamedTuple):
    """A range of the stream's records that becomes one segment.

    Only the extent is kept; the records stay in the journal.
    """

    first_lsn: int
    last_lsn: int
    rows: int
    bytes: int


class Noted(NamedTuple):
    """One record, as far as its lane needs it."""

    lsn: int
    rows: int
    bytes: int
    passed: int
    """Bytes of the journal noted so far, of all streams."""


class Moment(NamedTuple):
    """The input of one turn of a lane: when, and the record if there is one."""

    mono: int
    record: Noted | None = None


class Lane:
    """The state of one stream. `turn` is its only verb; its effects go into the core's outbox."""

    def __init__(self, stream: int, settings: DrainSettings, outbox: Outbox) -> None:
        self.stream, self.settings = stream, settings
        self.state = State.IDLE
        self.tip = StreamTip(stream, 0, 0, "0" * 32)
        self.is_closing = False
        self.start = 0
        """The start of the node that writes the segments."""
        self._outbox = outbox
        self._cuts: deque[Cut] = deque()
        self._open: Cut | None = None
        self._writing: Cut | None = None
        self._opened_at = 0
        self._heard_at = 0
        self._opened_passed = 0
        self._retry_at = 0
        self._retry_ns = limits.RETRY_NS
        self.rows = 0
        """Rows noted and not yet in a segment."""
        self.bytes = 0

    def turn(self, on: On, moment: Moment) -> None:
        """Process one input, according to the table."""
        cell = TABLE.get((self.state, on))
        if cell is None:
            return
        self.state = cell.then
        getattr(self, cell.do)(moment)

    def due(self) -> int | None:
        """When the input DUE comes, monotonic ns; None: no time is set."""
        if self.state in (State.FULL, State.FAILED):
            return self._retry_at
        if self.state is not State.OPEN:
            return None
        if self._cuts or self.is_closing:
            return 0
        is_full = self._open is not None and self._open.rows >= limits.FULL_ROWS
        age_s = self.settings.age_s * (limits.FULL_SHARE if is_full else 1.0)
        return min(self._opened_at + seconds(age_s), self._heard_at + seconds(self.settings.idle_s))

    def first_waiting(self) -> int | None:
        """The lowest lsn that is noted and not in a published segment."""
        for cut in (self._writing, *list(self._cuts)[:1], self._open):
            if cut is not None:
                return cut.first_lsn
        return None

    @property
    def is_empty(self) -> bool:
        return self._open is None and not self._cuts

    # What the table names.

    def note(self, moment: Moment) -> None:
        """Add the record to the open cut; if that is full, close it and open a new one."""
        record = moment.record
        assert record is not None
        self.rows += record.rows
        self.bytes += record.bytes
        self._heard_at = moment.mono
        cut = self._open
        if cut is not None and self._has_room(cut, record):
            self._open = Cut(cut.first_lsn, record.lsn, cut.rows + record.rows, cut.bytes + record.bytes)
            return
        if cut is not None:
            self._cuts.append(cut)
        self._open = Cut(record.lsn, record.lsn, record.rows, record.bytes)
        self._opened_at, self._opened_passed = moment.mono, record.passed

    def order_segment(self, moment: Moment) -> None:
        """Order the oldest cut to be written; a cut that failed before is first."""
        if self._writing is None:
            if self._cuts:
                self._writing = self._cuts.popleft()
            else:
                self._writing, self._open = self._open, None
        cut, tip = self._writing, self.tip
        assert cut is not None, "nothing is DUE where nothing waits"
        work = WriteSegment(self.stream, tip.number + 1, cut.first_lsn, cut.last_lsn, tip.prior, self.start)
        self._outbox.perform(work)

    def advance(self, moment: Moment) -> None:
        """The segment exists: drop its cut."""
        assert self._writing is not None
        self.rows -= self._writing.rows
        self.bytes -= self._writing.bytes
        self._writing = None
        self._retry_ns = limits.RETRY_NS

    def wait_longer(self, moment: Moment) -> None:
        """Retry soon, with a pause that doubles each time."""
        self._retry_at = moment.mono + self._retry_ns
        self._retry_ns = min(2 * self._retry_ns, limits.RETRY_NS_MOST)

    def wait_long(self, moment: Moment) -> None:
        """Retry after the longest pause: a failed device does not recover within a second."""
        self._retry_at = moment.mono + limits.RETRY_NS_MOST

    def rest(self, moment: Moment) -> None:
        """Nothing to do: waiting records stay in the journal."""

    def _has_room(self, cut: Cut, record: Noted) -> bool:
        return (
            cut.rows + record.rows <= self.settings.rows_max
            and cut.bytes + record.bytes <= self.settings.bytes_max
            and record.passed - self._opened_passed <= limits.SPAN_BYTES_MAX
        )
