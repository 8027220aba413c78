"""Keeps the last refused messages, so that a person can see what was sent (CFG-093).

They are kept in memory only. Each entry and their sum are bounded, and many of one kind leave room for others.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import Now

MESSAGES_MAX: Final = 100
BYTES_MAX: Final = 64 << 10  # of all messages together
KIND_MAX: Final = 25  # messages of one channel and code
FRAMES_MAX: Final = 8  # frames kept of one message
FRAME_BYTES_MAX: Final = 256  # bytes kept of one frame
WHY_MAX: Final = 200  # characters of the reason
PEER_BYTES_MAX: Final = 300  # the longest endpoint
OVERHEAD_BYTES: Final = 100  # size of an entry without its bytes and texts

assert OVERHEAD_BYTES + FRAMES_MAX * FRAME_BYTES_MAX + WHY_MAX + PEER_BYTES_MAX < BYTES_MAX, (
    "else the largest entry has no room"
)


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A refused message, shortened."""

    channel: str
    peer: bytes
    at: int
    """Wall-clock ns."""
    code: str
    why: str
    frames: tuple[bytes, ...]
    """The first bytes of the first frames."""
    sizes: tuple[int, ...]
    """The whole length of these frames."""
    count: int
    """The number of frames of the message."""

    @property
    def bytes(self) -> int:
        """Its approximate size in memory."""
        return OVERHEAD_BYTES + sum(map(len, self.frames)) + len(self.why) + len(self.peer)


class Quarantine:
    """The last refused messages."""

    def __init__(self) -> None:
        self.bytes = 0
        self._kept: deque[Refused] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Refused]:
        """The newest first."""
        return reversed(self._kept)

    def keep(self, source: Source, frames: list[bytes], error: PeerError, now: Now) -> None:
        """Keep a refused message. If there is no room, the oldest of its channel and code goes, or the oldest of all."""
        shown = tuple([bytes(frame[:FRAME_BYTES_MAX]) for frame in frames[:FRAMES_MAX]])
        sizes = tuple(map(len, frames[:FRAMES_MAX]))
        peer, why = source.peer[:PEER_BYTES_MAX], error.why[:WHY_MAX]
        message = Refused(source.channel, peer, now.wall, error.code, why, shown, sizes, len(frames))
        alike = [known for known in self._kept if (known.channel, known.code) == (message.channel, message.code)]
        if len(alike) >= KIND_MAX:
            self._kept.remove(alike[0])
            self.bytes -= alike[0].bytes
        self._kept.append(message)
        self.bytes += message.bytes
        while len(self._kept) > MESSAGES_MAX or self.bytes > BYTES_MAX:
            self.bytes -= self._kept.popleft().bytes

    def rows(self) -> list[dict[str, Any]]:
        """The entries for display, newest first; bytes as hex, a peer as text if it is an address."""
        return [
            {
                "at": kept.at,
                "channel": kept.channel,
                "peer": _name_of(kept.peer),
                "code": kept.code,
                "why": kept.why,
                "count": kept.count,
                "frames": [
                    {"bytes": size, "hex": frame.hex()} for size, frame in zip(kept.sizes, kept.frames, strict=True)
                ],
            }
            for kept in self
        ]


def _name_of(peer: bytes) -> str:
    """A peer's address, or its routing id as hex.

    >>> _name_of(b"10.0.0.1:27500"), _name_of(bytes([1, 46, 58]))
    ('10.0.0.1:27500', '012e3a')
    """
    text = peer.decode("ascii", "replace")
    return text if all("!" <= letter <= "~" for letter in text) else peer.hex()
