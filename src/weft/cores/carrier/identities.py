"""Which mail has been here already, by identity: for what comes by two ways or again after a start (CHN-035).

Per origin and era a node remembers the highest sequence and, of the window below it, which ones it has met.
Remembering never expires by time. What is below the window is taken and counted `unsure`: a second copy is better than
none. The order in which numbers are met does not matter to what is remembered in the end, so that a journal can be
replayed behind a snapshot that has a part of it already.
"""

from collections.abc import Iterator
from enum import Enum

from weft.cores.carrier import limits
from weft.cores.carrier.memory import Met, MetKept

Pair = tuple[bytes, int]


class Meeting(Enum):
    NEW = "not met before"
    DUPLICATE = "met before"
    UNSURE = "below the window"


class Window:
    """One origin's era. Bit k of `bits`: `high - k` was met. Memory: an eighth of the window in bytes."""

    __slots__ = ("bits", "high")

    def __init__(self, high: int = 0, bits: int = 0) -> None:
        self.high, self.bits = high, bits

    def meet(self, sequence: int, width: int) -> Meeting:
        """Judge a sequence, and remember it if it is NEW."""
        ahead = sequence - self.high
        if ahead > 0:
            self.bits = ((self.bits << ahead) | 1) & ((1 << width) - 1) if ahead < width else 1
            self.high = sequence
            return Meeting.NEW
        if -ahead >= width:
            return Meeting.UNSURE
        if self.bits >> -ahead & 1:
            return Meeting.DUPLICATE
        self.bits |= 1 << -ahead
        return Meeting.NEW


class Identities:
    """All windows, the one longest without anything new first. Equal contents are equal values."""

    def __init__(self, width: int = limits.IDENTITIES, *, is_durable: bool = True) -> None:
        self._width, self._is_durable = width, is_durable
        self._windows: dict[Pair, Window] = {}
        self._news: dict[Pair, list[int]] = {}

    def meet(self, origin: bytes, era: int, sequence: int) -> Meeting:
        """Judge an identity, and remember it if it is NEW; `news` names it then."""
        pair = (origin, era)
        window = self._windows.get(pair) or Window()
        meeting = window.meet(sequence, self._width)
        if meeting is Meeting.NEW:
            self._use(pair, window)
            if self._is_durable:
                numbers = self._news.pop(pair, [])
                numbers.append(sequence)
                self._news[pair] = numbers
        return meeting

    def _use(self, pair: Pair, window: Window) -> None:
        self._windows.pop(pair, None)
        if len(self._windows) >= limits.IDENTITY_PAIRS_MAX:
            del self._windows[next(iter(self._windows))]
        self._windows[pair] = window

    def news(self) -> list[Met]:
        """What was met since the last question: to be made durable with whatever became of it."""
        news, self._news = self._news, {}
        return [Met(origin, era, numbers) for (origin, era), numbers in news.items()]

    def replay(self, met: Met) -> None:
        """Take back what was met; what is known of it already changes nothing."""
        pair = (met.origin, met.era)
        window = self._windows.get(pair) or Window()
        if Meeting.NEW in [window.meet(number, self._width) for number in met.numbers]:
            self._use(pair, window)

    def condense(self) -> Iterator[MetKept]:
        """A piece for each pair, in the order in which `adopt` wants them."""
        for (origin, era), window in self._windows.items():
            bits = window.bits.to_bytes((window.bits.bit_length() + 7) // 8, "big")
            yield MetKept(origin, era, window.high, bits)

    def adopt(self, kept: MetKept) -> None:
        """Take back a piece of a snapshot."""
        self._use((kept.origin, kept.era), Window(kept.high, int.from_bytes(kept.bits, "big")))

    def state(self) -> list[tuple[Pair, int, int]]:
        """Everything, comparable, in order."""
        return [(pair, window.high, window.bits) for pair, window in self._windows.items()]

    def __len__(self) -> int:
        return len(self._windows)
