"""A volatile stream: numbered mail in order, a window of it in flight, none of it on disk (CHN-032).

Mail that is not acknowledged in time is given up and leaves a hole in the numbers, so the receiver takes any number
above the last one it has. After a link has broken, everything in flight is sent again.
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
        """Whether its bytes are among those that wait."""
        self.until = 0
        """Monotonic nanoseconds at which it is given up; `why` is the reason then."""
        self.why = "unreachable"
        self.to: bytes | None = None
        """The node that it was sent to, whether or not it has arrived."""


class Stream:
    """The sending side. `due` is when `expire` is wanted, or earlier; 0: not at all."""

    def __init__(self, era: int) -> None:
        self.era = era
        self.due = 0
        self.bytes = 0
        self._letters: deque[Letter] = deque()
        self._flight = self._flight_bytes = 0

    def __len__(self) -> int:
        return len(self._letters)

    def add(self, letter: Letter) -> None:
        """Behind all others; its number is higher than theirs."""
        self._letters.append(letter)
        self.bytes += letter.size
        self.due = min(self.due, letter.until) if self.due else letter.until

    def first(self, number: int) -> int:
        """The lowest number that is not acknowledged; `number` if there is none."""
        return self._letters[0].number if self._letters else number

    def begin(self, peer: bytes) -> list[Letter]:
        """A link begins; returns what is given up: it went to another node, and may be there."""
        lost = [letter for letter in self._letters if letter.to not in (None, peer)]
        self._keep(lambda letter: letter.to in (None, peer))
        self.go_back()
        return lost

    def go_back(self) -> None:
        """Send everything again."""
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
        """What has arrived (reason empty), or was refused for good, and why."""
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
        """What has waited too long; each says why it is given up."""
        late = [letter for letter in self._letters if letter.until <= mono]
        if late:
            self._keep(lambda letter: letter.until > mono)
        self.due = min((letter.until for letter in self._letters), default=0)
        return late

    def _keep(self, is_kept: Callable[[Letter], bool]) -> None:
        """Only these are left; those of them in flight stay there, since they are the first."""
        flight = [letter for letter in islice(self._letters, self._flight) if is_kept(letter)]
        self._letters = deque(letter for letter in self._letters if is_kept(letter))
        self._flight, self._flight_bytes = len(flight), sum(letter.size for letter in flight)
        self.bytes = sum(letter.size for letter in self._letters)


class Heard:
    """The receiving side: how far each node's stream has come. Lost with the process, as all of it may be."""

    def __init__(self) -> None:
        self._streams: OrderedDict[tuple[bytes, bool], tuple[int, int]] = OrderedDict()

    def upto(self, node: bytes, era: int, *, is_child: bool) -> int:
        """The last number taken of that era; of any other than the last one heard nothing is known."""
        known, upto = self._streams.get((node, is_child), (era, 0))
        return upto if era == known else 0

    def note(self, node: bytes, era: int, upto: int, *, is_child: bool) -> None:
        """Numbers up to `upto` of that stream are taken."""
        self._streams[node, is_child] = (era, upto)
        self._streams.move_to_end((node, is_child))
        if len(self._streams) > limits.CHILDREN_KNOWN_MAX:
            self._streams.popitem(last=False)
