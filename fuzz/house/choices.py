"""Reads choices from bytes, so that any bytes are a well-formed story: what to say, to whom, when.

When the bytes are used up, every choice is the first one and every number 0. Equal bytes give equal choices.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")
EDGES: Final = (0, 1, 2, 7, 63, 64, 255, 1 << 20, 1 << 31, 1 << 40, (1 << 53) - 1, 1 << 53, (1 << 63) - 1)
"""Numbers at which something changes in one format or another."""


class Choices:
    """One input, read from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def is_over(self) -> bool:
        """Whether all bytes are used up."""
        return self._at >= len(self._data)

    def byte(self) -> int:
        """A number from 0 to 255."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def below(self, count: int) -> int:
        """A number from 0 to before `count`, at most 65,536."""
        return self.byte() % count if count <= 256 else (self.byte() << 8 | self.byte()) % count

    def pick(self, options: Sequence[T]) -> T:
        """One of them."""
        return options[self.below(len(options))]

    def flag(self, of: int = 2) -> bool:
        """True once in `of`."""
        return self.byte() % of == of - 1

    def number(self, near: int = 1) -> int:
        """Mostly a small step from `near`, else one at which formats break."""
        kind = self.byte()
        if kind < 160:
            return max(0, near + kind % 8 - 2)
        return max(0, self.pick(EDGES) + kind % 3 - 1)

    def blob(self, most: int = 255) -> bytes:
        """Some bytes as they stand there."""
        size = self.below(most + 1)
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        """All bytes that are left."""
        rest, self._at = self._data[self._at :], len(self._data)
        return rest


def frames_of(data: bytes) -> list[bytes]:
    """A multipart: each frame stands behind its length in two bytes."""
    frames = []
    while data:
        size = int.from_bytes(data[:2])
        frames.append(data[2 : 2 + size])
        data = data[2 + size :]
    return frames


def joined(frames: Sequence[bytes]) -> bytes:
    """The bytes of a multipart, as `frames_of` reads them."""
    return b"".join(len(frame).to_bytes(2) + frame for frame in frames)
