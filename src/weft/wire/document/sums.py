"""The checksum that an operation carries from its author to whoever keeps it (FLD-030).

    <set eid="…" source="a0…01" timestamp="1763800000.25" sequence="7" crc32="0a1b2c3d">…</set>

It is the last attribute of the first tag: CRC-32 of all the other bytes, in eight hex digits. A reference leaves it out, so
peers that do not know it fold the same document; and an operation that they pass on unchanged can be checked by its receiver.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final
from zlib import crc32

from weft.base.errors import PeerError
from weft.wire.document.operations import SUM, header_of

_DIGITS: Final = 8


def with_sum(body: bytes) -> bytes:
    """The operation that `emit` gave, with its checksum; it is 17 bytes longer.

    >>> with_sum(b'<remove eid="x"/>'), with_sum(b'<set path="a">1</set>')
    (b'<remove eid="x" crc32="1804f27f"/>', b'<set path="a" crc32="25376410">1</set>')
    """
    end = body.index(b">")
    end -= body[end - 1 : end] == b"/"
    return body[:end] + _piece(f"{crc32(body):0{_DIGITS}x}") + body[end:]


def is_altered(body: bytes, attributes: Mapping[str, str]) -> bool:
    """Whether the bytes are not those for which their checksum was made. `attributes`: of the first tag.

    Bytes without a checksum, of an author of another make or of an earlier version, may be altered or not.
    """
    digits = attributes.get(SUM)
    if digits is None:
        return False
    before, piece, behind = body.partition(_piece(digits))
    return not piece or f"{crc32(before + behind):0{_DIGITS}x}" != digits


def is_proved(body: bytes) -> bool:
    """Whether a checksum proves that the bytes are as their author made them."""
    try:
        attributes = header_of(body).attributes
    except PeerError:
        return False
    return SUM in attributes and not is_altered(body, attributes)


def rank(body: bytes) -> tuple[bool, bytes]:
    """Of two bodies of one number the one of the lower rank counts (GSP-011): a proved one, else the lower SHA-256."""
    return not is_proved(body), sha256(body).digest()


def _piece(digits: str) -> bytes:
    return f' {SUM}="{digits}"'.encode()
