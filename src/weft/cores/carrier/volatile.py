"""A volatile stream: numbered mail in order, a window of it in flight, nothing on disk (CHN-032).

Mail that is not acknowledged in time is given up and leaves a gap in the numbers, so the receiver accepts any number
above the last one. After a link has broken, everything in flight is sent again.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice

from weft.cores.carrier import limits
from weft.cores.carrier.outbox import header_bytes
from weft.wire.hop import Hack, Hop, HopItem
from weft.wire.multipart import MULTIPART_FRAMES_MAX


class Letter:
    """One piece of mail on one such stream."""

    __slots__ = ("frames", "is_counted", "item", "number", "size", "ticket", "to", "until", "why")

    def __init__(self, item: HopItem, frames: list[bytes], ticket: int | None) -> None:
        self.item, self.frames, self.ticket = item, frames, ticket
        self.size = limits.RECORD_BYTES + sum(map(len, frames))
        self.number = 0
        self.is_counted = False
        """Whether its bytes are counted as waiting."""
        self.until = 0
        """Monotonic ns at which it is given up; the reason is then `why`."""
        self.why = "unreachable"
        self.to: bytes | None = None
        """The node that it was sent to, arrived or not."""


class Stream:
    """The sending side. `due` is when `expire` is wanted, or earlier; 0: never."""

    def __init__(self, era: int) -> None:
        self.era = era
        self.due = 0
        self.bytes = 0
        self._letters: deque[Letter] = deque()
        self._flight = self._flight_bytes = 0

    def __len__(self) -> int:
        return len(self._letters)

    def add(self, letter: Letter) -> None:
        """Add a letter at the end; its number must be the highest."""
        self._letters.append(letter)
        self.bytes += letter.size
        self.due = min(self.due, letter.until) if self.due else letter.until

    def first(self, number: int) -> int:
        """The lowest unacknowledged number; `number` if there is none."""
        return self._letters[0].number if self._letters else number

    def begin(self, peer: bytes) -> list[Letter]:
        """A link to `peer` begins.

        Returns the letters that are given up: they were sent to another node and may have arrived there.
        """
        lost = [letter for letter in self._letters if letter.to not in (None, peer)]
        self._keep(lambda letter: letter.to in (None, peer))
        self.go_back()
        return lost

    def go_back(self) -> None:
        """Mark everything as unsent."""
        self._flight = self._flight_bytes = 0

    def take(self, peer: bytes) -> Hop | None:
        """The next batch of consecutive numbers for which the window has room."""
        items: list[HopItem] = []
        frames: list[bytes] = []
        first = size = header = 0
        while self._flight < len(self._letters) and self._has_room():
            letter = self._letters[self._flight]
            first = first or letter.number
            size += letter.size
            header += header_bytes(letter.item)
            if letter.number != first + len(items) or len(items) >= limits.BATCH_MESSAGES_MAX:
                break
            if items and (size > limits.BATCH_BYTES_MAX or header > limits.BATCH_HEADER_BYTES):
                break
            if len(frames) + letter.item.n >= MULTIPART_FRAMES_MAX:
                break
            items.append(letter.item)
            frames += letter.frames
            letter.to = peer
            self._flight += 1
            self._flight_bytes += letter.size
        return Hop(self.era, first, items, frames, mem=True) if items else None

    def _has_room(self) -> bool:
        return self._flight < limits.HOP_WINDOW and self._flight_bytes < limits.HOP_WINDOW_BYTES

    def acknowledge(self, hack: Hack) -> list[tuple[Letter, str]]:
        """The letters that have arrived (empty reason) and those refused for good, with the reason."""
        whys = dict(hack.no)
        done: list[tuple[Letter, str]] = []
        while self._letters and self._letters[0].number <= hack.upto and self._letters[0].to is not None:
            letter = self._letters.popleft()
            done.append((letter, whys.get(letter.number, "")))
            self.bytes -= letter.size
            if self._flight:
                self._flight -= 1
                self._flight_bytes -= letter.size
        if hack.back:
            self.go_back()
        return done

    def expire(self, mono: int) -> list[Letter]:
        """Give up letters that have waited too long; each with its reason."""
        late = [letter for letter in self._letters if letter.until <= mono]
        if late:
            self._keep(lambda letter: letter.until > mono)
        self.due = min((letter.until for letter in self._letters), default=0)
        return late

    def _keep(self, is_kept: Callable[[Letter], bool]) -> None:
        """Keep only these letters; those in flight stay so, since they are the first."""
        flight = [letter for letter in islice(self._letters, self._flight) if is_kept(letter)]
        self._letters = deque(letter for letter in self._letters if is_kept(letter))
        self._flight, self._flight_bytes = len(flight), sum(letter.size for letter in flight)
        self.bytes = sum(letter.size for letter in self._letters)


class Heard:
    """The receiving side: the last number of each node's stream. Lost with the process, like the mail itself."""

    def __init__(self) -> None:
        self._streams: OrderedDict[tuple[bytes, bool], tuple[int, int]] = OrderedDict()

    def upto(self, node: bytes, era: int, *, is_child: bool) -> int:
        """The last number accepted of that era; 0 for any era but the last one heard."""
        known, upto = self._streams.get((node, is_child), (era, 0))
        return upto if era == known else 0

    def note(self, node: bytes, era: int, upto: int, *, is_child: bool) -> None:
        """Numbers up to `upto` of that stream were accepted."""
        self._streams[node, is_child] = (era, upto)
        self._streams.move_to_end((node, is_child))
        if len(self._streams) > limits.CHILDREN_KNOWN_MAX:
            self._streams.popitem(last=False)
