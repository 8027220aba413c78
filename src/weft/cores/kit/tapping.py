"""Decides which messages of a socket are copied to a tap, and counts all of them (MON-001, MON-004).

    seen = copied + dropped + sampled

This module knows neither sockets nor the wire format; services and brokers count in the same way.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from weft.base.now import SECOND

WINDOW_NS: Final = SECOND // 10
"""Length of a window. Each window may copy its share of `rate`; once the share is used up, messages pass uncopied, at
almost no cost, until the next window.
"""
FAR: Final = 1 << 62


class Cut(msgspec.Struct, frozen=True, gc=False):
    """The copied part of a message: its frames, each possibly truncated, and whether anything is missing."""

    frames: tuple[bytes, ...]
    sizes: tuple[int, ...]
    """Lengths of the frames, when only lengths are copied."""
    bytes: int
    is_cut: bool


class Idle(NamedTuple):
    """How many of the next messages need no look, and until which instant (monotonic ns) that holds."""

    messages: int
    until: int


class Sampler:
    """Counts messages and decides which of them are copied."""

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
        """When this window ends, and how many copies it may still make."""
        self.seen = self.copied = self.dropped = self.sampled = 0

    def takes(self, way: str, socket: str, mono: int) -> bool:
        """Count a message. True: copy it; it counts as copied unless `lose` is called."""
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
        """Count `count` messages that passed while `idle` said that none is copied."""
        if self._wants(way, socket):
            self.seen += count
            self.sampled += count

    def idle(self, mono: int) -> "Idle":
        """How many of the next messages will not be copied, and until when that holds."""
        if not self._left and mono < self._ends_at:
            return Idle(FAR, self._ends_at)
        return Idle((-self.seen) % self._sample, FAR)

    def lose(self, count: int = 1) -> None:
        """Count copies as dropped: there was no room for them."""
        self.copied -= count
        self.dropped += count


def cut(frames: Sequence[bytes], frame_max: int) -> Cut:
    """Truncate each frame to `frame_max` bytes; 0: keep only the lengths.

    >>> cut([b"abc", b"d"], 2)
    Cut(frames=(b'ab', b'd'), sizes=(), bytes=4, is_cut=True)
    >>> cut([b"abc", b"d"], 0)
    Cut(frames=(), sizes=(3, 1), bytes=4, is_cut=True)
    """
    size = sum([len(frame) for frame in frames])
    if not frame_max:
        return Cut((), tuple(map(len, frames)), size, is_cut=True)
    if size <= frame_max:
        return Cut(tuple(frames), (), size, is_cut=False)
    shown = tuple([frame[:frame_max] for frame in frames])
    return Cut(shown, (), size, is_cut=size != sum(map(len, shown)))
