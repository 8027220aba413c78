"""As much of Protocol Buffers as two messages of others need: fields are written, and a short answer is read.

message = field*      field = varint(number << 3 | type) value
type 0: varint    1: 8 bytes, little-endian    2: varint length, then so many bytes
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from weft.base.errors import PeerError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
VARINT_BYTES_MAX: Final = 10
_DOUBLE: Final = Struct("<d")
_FIXED64: Final = Struct("<Q")


def varint(number: int) -> bytes:
    """A number of 64 bits; a negative one as its two's complement.

    >>> varint(300).hex(), varint(-1).hex()
    ('ac02', 'ffffffffffffffffff01')
    """
    number &= (1 << 64) - 1
    if number < 0x80:
        return bytes((number,))
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def integer(field: int, value: int) -> bytes:
    """A field of type int64."""
    return varint(field << 3 | VARINT) + varint(value)


def fixed64(field: int, value: int) -> bytes:
    """A field of type fixed64."""
    return varint(field << 3 | FIXED64) + _FIXED64.pack(value)


def double(field: int, value: float) -> bytes:
    """A field of type double."""
    return varint(field << 3 | FIXED64) + _DOUBLE.pack(value)


def message(field: int, *parts: bytes) -> bytes:
    """A field that is a message, or bytes, made of these parts."""
    return b"".join((varint(field << 3 | BYTES), varint(sum(map(len, parts))), *parts))


def text(field: int, value: str) -> bytes:
    """A field of type string; what UTF-8 has no form for becomes a question mark.

    >>> text(1, "a").hex()
    '0a0161'
    """
    return message(field, value.encode("utf-8", "replace"))


def read(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: their numbers and values. PeerError `malformed` for what is none."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind, -1)
        if kind == BYTES:
            size, at = _read_varint(data, at)
        if size < 0 or at + size > len(data):
            raise PeerError("malformed", f"field {number} of type {kind} goes beyond its message", data)
        yield number, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(data[at : at + VARINT_BYTES_MAX]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise PeerError("malformed", "a number without an end", data)
