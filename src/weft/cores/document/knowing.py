"""What each ACTIVE peer has, what it was told and what it was sent, in bounded memory (GSP-010, GSP-022 to GSP-025).

Sources have places in one table that all peers share, so the state of a peer is an array of numbers: 256 peers and
8,192 sources take 16 MiB. A source of which no peer has shown an operation keeps its place until it is needed for
another one.
"""

from array import array
from collections import deque
from collections.abc import Iterator

from weft.cores.document.limits import ANSWER_MAX, NAMED_MAX, PACE_BYTES, PACE_MAX, PACE_NS, TOLD_MAX
from weft.cores.document.peers import Peer


class Places:
    """Sources by place."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._named: dict[bytes, None] = {}
        """Those of which no peer has shown an operation; the oldest first."""

    def find(self, source: bytes) -> int | None:
        """Its place, if it has one."""
        return self._places.get(source)

    def take(self, source: bytes, *, is_real: bool) -> tuple[int, bytes | None]:
        """The place of a source, a new one if it had none; and the source that had this place until now.

        `is_real`: the log has operations of it.
        """
        place = self._places.get(source)
        if place is not None:
            if is_real:
                self._named.pop(source, None)
            return place, None
        loser = None
        if not is_real:
            if len(self._named) >= NAMED_MAX:
                loser = next(iter(self._named))
                del self._named[loser]
            self._named[source] = None
        place = len(self._places) if loser is None else self._places.pop(loser)
        self._places[source] = place
        return place, loser


class Run:
    """Operations of a source sent at one time."""

    __slots__ = ("at", "first", "last", "source")

    def __init__(self, source: bytes, first: int, last: int, at: int) -> None:
        self.source, self.first, self.last, self.at = source, first, last, at


class Sent:
    """What was sent to one peer recently."""

    def __init__(self) -> None:
        self._runs: deque[Run] = deque()
        self._by_source: dict[bytes, list[Run]] = {}

    def add(self, source: bytes, first: int, last: int, at: int) -> None:
        """Operations first..last were sent now."""
        runs = self._by_source.setdefault(source, [])
        if runs and runs[-1].at == at and runs[-1].last + 1 == first:
            runs[-1].last = last
            return
        run = Run(source, first, last, at)
        runs.append(run)
        self._runs.append(run)

    def forget(self, before: int) -> None:
        """Forget what was sent earlier; it may be sent again."""
        while self._runs and self._runs[0].at <= before:
            source = self._runs.popleft().source
            runs = self._by_source[source]
            runs.pop(0)
            if not runs:
                del self._by_source[source]

    def since(self, source: bytes, before: int) -> list[tuple[int, int]]:
        """Ranges sent after an instant, in no particular order."""
        return [(run.first, run.last) for run in self._by_source.get(source, ()) if run.at > before]


class Knowing:
    """The state of one ACTIVE peer."""

    def __init__(self, peer: Peer, now: int) -> None:
        self.peer, self.uuid, self.active_at = peer, peer.id, now
        self.knows = array("q")
        """By place: the number of operations without a gap."""
        self.announced = array("q")
        """By place: the number that we last told it,"""
        self.told_at = array("q")
        """and when."""
        self.to_tell: dict[bytes, None] = {}
        """Sources to tell it of."""
        self.sent = Sent()
        self.owed: dict[bytes, tuple[int, int]] = {}
        """Answers that its pace holds back: what it has, and how many operations it may get."""
        self.unlike_at: int | None = None
        """Since when it has other bytes than we under equal numbers."""
        self.is_unlike_told = False
        self.compared = (b"", 0)
        """The source and number up to which its bytes were asked for, to find the difference."""
        self.equal = -1
        """The number of operations in our log when its check equalled ours."""
        self._window_at = now - PACE_NS
        self._window_count = self._window_bytes = self._window_told = 0

    def known(self, place: int) -> int:
        """How much of a source it is known to have."""
        return self.knows[place] if place < len(self.knows) else 0

    def last_told(self, place: int) -> int:
        """How much of a source we told it that we have."""
        return self.announced[place] if place < len(self.announced) else 0

    def learn(self, place: int, upto: int) -> None:
        """It has this much of a source."""
        if self.known(place) < upto:
            self.set(self.knows, place, upto)

    def forget_known(self) -> None:
        """Forget what it is believed to have: it may have lost some, or never had it."""
        self.knows = array("q", bytes(self.knows.itemsize * len(self.knows)))

    @staticmethod
    def set(table: "array[int]", place: int, value: int) -> None:
        """Write into a table that grows."""
        if place >= len(table):
            table.extend([0] * (place + 1 - len(table)))
        table[place] = value

    def clear(self, place: int) -> None:
        """Another source has this place from now on."""
        for table in (self.knows, self.announced, self.told_at):
            if place < len(table):
                table[place] = 0

    def next_pieces(self, sources: list[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
        """Starting points for answers that together bring everything, continuing where the last ones ended."""
        begins = [(source, first) for source, latest in sources for first in range(0, latest, ANSWER_MAX)]
        behind = [piece for piece in begins if piece > self.compared]
        for self.compared in behind or begins:
            yield self.compared

    # Pace (GSP-024)

    def has_room(self, size: int, now: int) -> bool:
        """Whether an operation of this size may be sent now."""
        self._turn_window(now)
        return self._window_count < PACE_MAX and self._window_bytes + size <= PACE_BYTES

    def may_tell(self, now: int) -> bool:
        """Whether a GSIP may be sent now."""
        self._turn_window(now)
        return self._window_told < TOLD_MAX

    def note_sent(self, size: int, now: int) -> None:
        """An operation is sent."""
        self._turn_window(now)
        self._window_count += 1
        self._window_bytes += size

    def note_told(self) -> None:
        """A GSIP is sent."""
        self._window_told += 1

    def _turn_window(self, now: int) -> None:
        if now - self._window_at >= PACE_NS:
            self._window_at = now
            self._window_count = self._window_bytes = self._window_told = 0

    @property
    def due_at(self) -> int | None:
        """When what waits for its pace may continue."""
        return self._window_at + PACE_NS if self.owed or self.to_tell else None


def gaps(runs: list[tuple[int, int]], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The parts of first..last that no range covers, ascending."""
    for begin, end in sorted(runs):
        if begin > last:
            break
        if begin > first:
            yield first, begin - 1
        first = max(first, end + 1)
    if first <= last:
        yield first, last
