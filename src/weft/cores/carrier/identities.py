"""Which mail was here already, by identity: mail may come by two routes, or again after a restart (CHN-035).

Per origin and era a node remembers the highest sequence, and which sequences of the window below it it has met. Nothing
expires by time. Mail below the window is accepted and counted as `unsure`: a second copy is better than none. The
remembered state does not depend on the order of the sequences, so journal records that a snapshot already contains can
be replayed on top of it.
"""

from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum
from typing import Final

from weft.base.budget import Part
from weft.cores.carrier import limits
from weft.cores.carrier.memory import Met, MetKept

Pair = tuple[bytes, int]
PAGE_SHIFT: Final = 11  # 2,048 numbers; a window has 32 pages
PAGE_MASK: Final = (1 << PAGE_SHIFT) - 1


class Meeting(Enum):
    NEW = "not met before"
    DUPLICATE = "met before"
    UNSURE = "below the window"


class Window:
    """One origin's era: the highest sequence met, and one bit for each sequence met. O(1) for the next sequence.

    The bits are kept in pages, so one sequence costs one page and not the whole window. Pages below the window are
    dropped. Memory: 12 KiB for a window full of gaps.
    """

    __slots__ = ("high", "pages")

    def __init__(self) -> None:
        self.high = 0
        self.pages: dict[int, int] = {}

    def meet(self, sequence: int, width: int) -> Meeting:
        """Classify a sequence, and remember it if it is NEW."""
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
                self.pages = {at: page_bits for at, page_bits in self.pages.items() if at >= first}
        return Meeting.NEW

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return limits.WINDOW_COST + limits.PAGE_COST * len(self.pages)

    def bits(self, width: int) -> int:
        """The sequences met within the window: bit k stands for the lowest number + k."""
        base = min(self.pages)
        whole = 0
        for page, bits in self.pages.items():
            whole |= bits << ((page - base) << PAGE_SHIFT)
        below = self._lowest(width) - (base << PAGE_SHIFT)
        return whole >> below if below > 0 else whole << -below

    def adopt(self, high: int, bits: int, width: int) -> None:
        """Restore what `bits` returned."""
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
    """All windows, the one without news for longest first. Equal contents are equal values."""

    def __init__(self, width: int = limits.IDENTITIES, *, is_durable: bool = True) -> None:
        self._width, self._is_durable = width, is_durable
        self._windows: OrderedDict[Pair, Window] = OrderedDict()
        self._news: dict[Pair, list[int]] = {}
        self.bytes = 0
        """Of memory."""
        self.room = Part("met", lambda: self.bytes)
        """Its part of the core's budget; the whole of it here."""

    def meet(self, origin: bytes, era: int, sequence: int) -> Meeting:
        """Classify an identity, and remember it if it is NEW; `news` then includes it."""
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
        """The identities met since the last call, to be made durable together with what became of the mail."""
        news, self._news = self._news, {}
        return [Met(origin, era, numbers) for (origin, era), numbers in news.items()]

    def replay(self, met: Met) -> None:
        """Restore met identities; those known already change nothing."""
        pair = (met.origin, met.era)
        window_before = self._windows.get(pair)
        before, window = (0, Window()) if window_before is None else (window_before.cost, window_before)
        if Meeting.NEW in [window.meet(number, self._width) for number in met.numbers]:
            self._use(pair, window, before)

    def condense(self) -> Iterator[MetKept]:
        """One piece per origin and era, in the order that `adopt` needs."""
        for (origin, era), window in self._windows.items():
            bits = window.bits(self._width)
            yield MetKept(origin, era, window.high, bits.to_bytes((bits.bit_length() + 7) // 8, "big"))

    def adopt(self, memory: MetKept) -> None:
        """Restore a piece of a snapshot."""
        window = Window()
        window.adopt(memory.high, int.from_bytes(memory.bits, "big"), self._width)
        pair = (memory.origin, memory.era)
        window_before = self._windows.get(pair)
        self._use(pair, window, 0 if window_before is None else window_before.cost)

    def state(self) -> list[tuple[Pair, int, int]]:
        """Everything, comparable, in order."""
        return [(pair, window.high, window.bits(self._width)) for pair, window in self._windows.items()]

    def __len__(self) -> int:
        return len(self._windows)
