"""Which mail has been here already, by identity: for what comes by two ways or again after a start (CHN-035).

Per origin and era a node remembers the highest sequence and, of the window below it, which ones it has met.
Remembering never expires by time. What is below the window is taken and counted `unsure`: a second copy is better than
none. The order in which numbers are met does not matter to what is remembered in the end, so that a journal can be
replayed behind a snapshot that has a part of it already.
"""

from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum
from typing import Final

from weft.base.budget import Part
from weft.cores.carrier import limits
from weft.cores.carrier.memory import Met, MetKept

Pair = tuple[bytes, int]
PAGE_SHIFT: Final = 11  # 2,048 numbers: 32 pages are the window
PAGE_MASK: Final = (1 << PAGE_SHIFT) - 1


class Meeting(Enum):
    NEW = "not met before"
    DUPLICATE = "met before"
    UNSURE = "below the window"


class Window:
    """One origin's era: the highest sequence met, and a bit for each that was. O(1) for the next number in line.

    The bits stand in pages, so that a number costs one page and not the window. What is below the window goes page by
    page. Memory: 12 KiB for a window full of holes.
    """

    __slots__ = ("high", "pages")

    def __init__(self) -> None:
        self.high = 0
        self.pages: dict[int, int] = {}

    def meet(self, sequence: int, width: int) -> Meeting:
        """Judge a sequence, and remember it if it is NEW."""
        if sequence <= self.high - width:
            return Meeting.UNSURE
        page, bit = sequence >> PAGE_SHIFT, 1 << (sequence & PAGE_MASK)
        bits = self.pages.get(page, 0)
        if bits & bit:
            return Meeting.DUPLICATE
        self.pages[page] = bits | bit
        if sequence > self.high:
            is_next = page > self.high >> PAGE_SHIFT
            self.high = sequence
            if is_next:
                first = (sequence - width + 1) >> PAGE_SHIFT
                self.pages = {at: kept for at, kept in self.pages.items() if at >= first}
        return Meeting.NEW

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return limits.WINDOW_COST + limits.PAGE_COST * len(self.pages)

    def bits(self, width: int) -> int:
        """What was met within the window: bit k is its lowest number + k."""
        base = min(self.pages)
        whole = 0
        for page, bits in self.pages.items():
            whole |= bits << ((page - base) << PAGE_SHIFT)
        below = self._lowest(width) - (base << PAGE_SHIFT)
        return whole >> below if below > 0 else whole << -below

    def adopt(self, high: int, bits: int, width: int) -> None:
        """Take back what `bits` gave."""
        lowest = self._lowest(width, high)
        first = lowest >> PAGE_SHIFT
        bits <<= lowest & PAGE_MASK
        self.high = high
        while bits:
            self.pages[first] = bits & ((1 << (PAGE_MASK + 1)) - 1)
            bits >>= PAGE_MASK + 1
            first += 1

    def _lowest(self, width: int, high: int = 0) -> int:
        return max(0, (high or self.high) - width + 1)


class Identities:
    """All windows, the one longest without anything new first. Equal contents are equal values."""

    def __init__(self, width: int = limits.IDENTITIES, *, is_durable: bool = True) -> None:
        self._width, self._is_durable = width, is_durable
        self._windows: OrderedDict[Pair, Window] = OrderedDict()
        self._news: dict[Pair, list[int]] = {}
        self.bytes = 0
        """Of memory."""
        self.room = Part("met", lambda: self.bytes)
        """Of the core's budget; here, all there is."""

    def meet(self, origin: bytes, era: int, sequence: int) -> Meeting:
        """Judge an identity, and remember it if it is NEW; `news` names it then."""
        pair = (origin, era)
        window = self._windows.get(pair)
        before = 0 if window is None else window.cost
        if window is None:
            window = Window()
        meeting = window.meet(sequence, self._width)
        if meeting is Meeting.NEW:
            self._use(pair, window, before)
            if self._is_durable:
                numbers = self._news.pop(pair, [])
                numbers.append(sequence)
                self._news[pair] = numbers
        return meeting

    def _use(self, pair: Pair, window: Window, before: int) -> None:
        self._windows[pair] = window
        self._windows.move_to_end(pair)
        self.bytes += window.cost - before
        while len(self._windows) > 1 and (len(self._windows) > limits.IDENTITY_PAIRS_MAX or self.room.is_over):
            self.bytes -= self._windows.popitem(last=False)[1].cost

    def news(self) -> list[Met]:
        """What was met since the last question: to be made durable with whatever became of it."""
        news, self._news = self._news, {}
        return [Met(origin, era, numbers) for (origin, era), numbers in news.items()]

    def replay(self, met: Met) -> None:
        """Take back what was met; what is known of it already changes nothing."""
        pair = (met.origin, met.era)
        known = self._windows.get(pair)
        before, window = (0, Window()) if known is None else (known.cost, known)
        if Meeting.NEW in [window.meet(number, self._width) for number in met.numbers]:
            self._use(pair, window, before)

    def condense(self) -> Iterator[MetKept]:
        """A piece for each pair, in the order in which `adopt` wants them."""
        for (origin, era), window in self._windows.items():
            bits = window.bits(self._width)
            yield MetKept(origin, era, window.high, bits.to_bytes((bits.bit_length() + 7) // 8, "big"))

    def adopt(self, kept: MetKept) -> None:
        """Take back a piece of a snapshot."""
        window = Window()
        window.adopt(kept.high, int.from_bytes(kept.bits, "big"), self._width)
        pair = (kept.origin, kept.era)
        known = self._windows.get(pair)
        self._use(pair, window, 0 if known is None else known.cost)

    def state(self) -> list[tuple[Pair, int, int]]:
        """Everything, comparable, in order."""
        return [(pair, window.high, window.bits(self._width)) for pair, window in self._windows.items()]

    def __len__(self) -> int:
        return len(self._windows)
