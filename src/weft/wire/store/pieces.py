"""Payloads in pieces, for links whose messages are short (LNK-004).

    piece = {"_p0": [node, sequence, i, bytes]}          i = 1, 2 …, the last one negative

They come in any order, and more than once. What comes twice as a whole is a message that came twice (LNK-001).
"""

from typing import Annotated, Final

import msgspec

from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.wire.store.bus import NAME_BYTES_MAX, is_name
from weft.wire.store.ranges import TICK_MAX

OVERHEAD_BYTES: Final = 15  # of a piece, beside the name of its node and what it carries
OPEN_MAX: Final = 64  # payloads at once of one sender
PAYLOAD_BYTES_MAX: Final = 4 << 20
WAIT_NS: Final = 60 * SECOND
PIECES_MAX: Final = 1 << 16  # of one payload: 4 MiB in pieces of 64 bytes
OPEN_OF_ALL_MAX: Final = 1_024  # payloads at once
BYTES_OF_ALL_MAX: Final = 64 << 20
MARK: Final = b"\x81\xa3_p0"
"""How every piece begins."""

Number = Annotated[int, msgspec.Meta(ge=0, le=TICK_MAX)]
Place = Annotated[int, msgspec.Meta(ge=-PIECES_MAX, le=PIECES_MAX)]
Body = Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]


class _Piece(msgspec.Struct, frozen=True, gc=False):
    piece: tuple[Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)], Number, Place, Body] = msgspec.field(
        name="_p0"
    )


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Piece).decode


def cut(payload: bytes, node: str, sequence: int, bytes_max: int) -> list[bytes]:
    """The pieces of a payload, each of at most `bytes_max` bytes; the payload itself if it is no longer than that."""
    if len(payload) <= bytes_max:
        return [payload]
    size = bytes_max - OVERHEAD_BYTES - len(node.encode())
    assert size > 0, "a link carries more than a name"
    parts = [payload[at : at + size] for at in range(0, len(payload), size)]
    places = [*range(1, len(parts)), -len(parts)]
    return [_encode(_Piece((node, sequence, place, part))) for place, part in zip(places, parts, strict=True)]


def is_piece(payload: bytes) -> bool:
    """Whether it is a piece, not a message."""
    return payload.startswith(MARK)


class _Open:
    """A payload of which some pieces are here."""

    __slots__ = ("last", "parts", "since", "size")

    def __init__(self, since: int) -> None:
        self.since, self.last, self.size = since, 0, 0
        self.parts: dict[int, bytes] = {}

    def fits(self, place: int, part: bytes) -> bool:
        """Whether the piece may belong to the same payload as those that are here."""
        if place < 0 and (max(self.parts, default=0) > -place or self.last not in (0, -place)):
            return False
        return self.parts.get(abs(place), part) == part and not 0 < self.last < place

    def add(self, place: int, part: bytes) -> None:
        """Keep it, unless it is here."""
        if abs(place) not in self.parts:
            self.parts[abs(place)] = part
            self.size += len(part)
            self.last = -place if place < 0 else self.last

    @property
    def is_whole(self) -> bool:
        """Whether all pieces up to the last are here."""
        return len(self.parts) == self.last


Key = tuple[str, int]
"""Node and sequence: which payload."""


class Pieces:
    """Joins pieces; payloads that do not fit, or are never finished, are given up, the oldest first."""

    def __init__(self) -> None:
        self._open: dict[Key, _Open] = {}
        """By the age of their first piece."""
        self.incomplete = 0
        """Payloads that were given up."""

    def take(self, payload: bytes, now: Now) -> bytes | None:
        """The payload that this piece completes, if it does; PeerError `malformed`, `bad-field` or `too-large`."""
        node, sequence, place, part = _read(payload)
        self._forget(now.mono)
        key = (node, sequence)
        if key in self._open and not self._open[key].fits(place, part):
            self._give_up(key)  # its sender has started anew, and counts from the beginning
        open_ = self._open.setdefault(key, _Open(now.mono))
        open_.add(place, part)
        if open_.is_whole:
            del self._open[key]
            return b"".join(open_.parts[i] for i in range(1, open_.last + 1))
        self._limit(key)
        return None

    def _forget(self, mono: int) -> None:
        while self._open:
            key, open_ = next(iter(self._open.items()))
            if mono - open_.since < WAIT_NS:
                return
            self._give_up(key)

    def _limit(self, key: Key) -> None:
        """Limit the number of payloads and their bytes: of one sender, and of all senders together."""
        if self._open[key].size > PAYLOAD_BYTES_MAX:
            self._give_up(key)
            raise PeerError("too-large", f"more than {PAYLOAD_BYTES_MAX} bytes in pieces")
        own = [other for other in self._open if other[0] == key[0]]
        while len(own) > OPEN_MAX or sum(self._open[other].size for other in own) > PAYLOAD_BYTES_MAX:
            self._give_up(own.pop(0))
        while len(self._open) > OPEN_OF_ALL_MAX or sum(open_.size for open_ in self._open.values()) > BYTES_OF_ALL_MAX:
            self._give_up(next(iter(self._open)))

    def _give_up(self, key: Key) -> None:
        del self._open[key]
        self.incomplete += 1


def _read(payload: bytes) -> tuple[str, int, int, bytes]:
    try:
        node, sequence, place, part = _decode(payload).piece
    except msgspec.ValidationError as error:
        raise PeerError("bad-field", str(error), payload) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PeerError("malformed", str(error), payload) from None
    if not place or not is_name(node):
        raise PeerError("bad-field", "a piece of no place or no node", payload)
    return node, sequence, place, part
