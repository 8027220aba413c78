"""Which messages of a socket are copied, and the accounts of that (MON-001, MON-004).

    seen = copied + dropped + sampled

Nothing here knows sockets or the wire: a service and a broker count in the same way.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.base.now import SECOND

WINDOW_NS: Final = SECOND // 10
"""In each there is its share of `rate`: what comes beyond it waits for the next one, and costs almost nothing until then."""
FAR: Final = 1 << 62


class Cut(NamedTuple):
    """What is told of a message: frames, each as far as it is told, and whether something is missing."""

    frames: tuple[bytes, ...]
    sizes: tuple[int, ...]
    """Of the frames, where only these are told."""
    bytes: int
    is_cut: bool


class Idle(NamedTuple):
    """So many messages may pass without a look, but not beyond that instant."""

    messages: int
    until: int


class Sampler:
    """Counts messages, and says which of them are to be copied."""

    __slots__ = (
        *("_ends_at", "_left", "_sample", "_share", "_sockets", "_span_ns", "_ways"),
        *("copied", "dropped", "sampled", "seen"),
    )

    def __init__(self, sockets: Sequence[str], way: str, sample: int, rate: int) -> None:
        self._sockets = frozenset(sockets)
        self._ways = ("in", "out") if way == "both" else (way,)
        self._sample = sample
        self._span_ns = max(WINDOW_NS, SECOND // rate)
        self._share = max(1, rate * self._span_ns // SECOND)
        self._ends_at = self._left = 0
        """Of this window: when it ends, and how many copies are left in it."""
        self.seen = self.copied = self.dropped = self.sampled = 0

    def takes(self, way: str, socket: str, mono: int) -> bool:
        """Count a message; True: it is to be copied, and counts as copied until `lose` says otherwise."""
        if not self._wants(way, socket):
            return False
        self.seen += 1
        if self._sample > 1 and (self.seen - 1) % self._sample:
            self.sampled += 1
            return False
        if mono >= self._ends_at:
            self._ends_at, self._left = mono + self._span_ns, self._share
        if not self._left:
            self.sampled += 1
            return False
        self._left -= 1
        self.copied += 1
        return True

    def _wants(self, way: str, socket: str) -> bool:
        return way in self._ways and (not self._sockets or socket in self._sockets)

    def skip(self, way: str, socket: str, count: int) -> None:
        """So many messages passed of which `idle` had said that none is to be copied."""
        if self._wants(way, socket):
            self.seen += count
            self.sampled += count

    def idle(self, mono: int) -> "Idle":
        """How many of the messages that come next are not copied in any case, and until when that holds."""
        if not self._left and mono < self._ends_at:
            return Idle(FAR, self._ends_at)
        return Idle((-self.seen) % self._sample, FAR)

    def lose(self, count: int = 1) -> None:
        """There was no room for copies that were to be made."""
        self.copied -= count
        self.dropped += count


def cut(frames: Sequence[bytes], frame_max: int) -> Cut:
    """A message, each frame cut to so many bytes; 0: their lengths only.

    >>> cut([b"abc", b"d"], 2)
    Cut(frames=(b'ab', b'd'), sizes=(), bytes=4, is_cut=True)
    >>> cut([b"abc", b"d"], 0)
    Cut(frames=(), sizes=(3, 1), bytes=4, is_cut=True)
    """
    size = sum(map(len, frames))
    if not frame_max:
        return Cut((), tuple(map(len, frames)), size, is_cut=True)
    shown = tuple([frame[:frame_max] for frame in frames])
    return Cut(shown, (), size, is_cut=size != sum(map(len, shown)))
