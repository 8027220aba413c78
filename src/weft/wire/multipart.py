"""One multipart of a chain or node link: a header of MessagePack, then payload frames (CLI-003, CLI-004).

    multipart = header *payload
    header    = one msgpack map with text keys, at most 64 KiB, nothing after it; key "op" names the message

A `Dialect` is the set of messages of one kind of link. It reads a header into a typed message or raises PeerError `bad-
header`, `unknown-op` or `bad-frames`; unknown keys are ignored. Nothing is allocated by a claimed length, and depth is
bounded. Writers emit keys in the order of the fields, shortest integers, and nothing for a field that has its default.
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final
from zlib import crc32

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE, PeerError

HEADER_BYTES_MAX: Final = 64 << 10
PAYLOAD_BYTES_MAX: Final = 1 << 20  # one frame
MULTIPART_BYTES_MAX: Final = 4 << 20
MULTIPART_FRAMES_MAX: Final = 257  # the header and 256 payload frames
MESSAGES_MAX: Final = 256  # items of one batch
ITEM_FRAMES_MAX: Final = 16
BAD_SUM: Final = "bad-sum"
"""The refusal of a message that was altered on the way: no fault of its sender, who sends it again (FLD-030)."""
_SUM: Final = b"\xa3sum\xce"  # the key, and the head of a number of four bytes
_SUM_BYTES: Final = len(_SUM) + 4
_FIXMAP_MAX, _MAP16 = 0x8F, 0xDE

_encode = msgspec.msgpack.Encoder().encode


class _Op(msgspec.Struct):
    op: Annotated[str, Meta(max_length=32)]


class Dialect:
    """The messages of one kind of link: tagged Structs with `tag_field="op"`."""

    def __init__(self, *types: type[msgspec.Struct]) -> None:
        self._decode = msgspec.msgpack.Decoder(reduce(or_, types)).decode
        self._decode_op = msgspec.msgpack.Decoder(_Op).decode
        self.ops: Final = {str(kind.__struct_config__.tag) for kind in types}

    def read(self, frames: list[bytes]) -> Any:
        """The typed header of a multipart within its limits; PeerError otherwise."""
        check_size(frames)
        header = frames[0]
        try:
            return self._decode(header)
        except UNREADABLE as error:
            raise PeerError(self._code(header), str(error)[:200], header) from None

    def _code(self, header: bytes) -> str:
        try:
            return "bad-header" if self._decode_op(header).op in self.ops else "unknown-op"
        except UNREADABLE:
            return "bad-header"


def write(header: msgspec.Struct) -> bytes:
    """The header frame of a message."""
    return _encode(header)


def check_size(frames: list[bytes]) -> None:
    """PeerError `bad-header` or `bad-frames` for a multipart beyond its limits."""
    if not frames or len(frames[0]) > HEADER_BYTES_MAX:
        raise PeerError("bad-header", "no header, or one over 64 KiB")
    if len(frames) == 1:
        return
    if len(frames) > MULTIPART_FRAMES_MAX:
        raise PeerError("bad-frames", f"{len(frames)} frames")
    size = sum(map(len, frames))
    if size > MULTIPART_BYTES_MAX or (size > PAYLOAD_BYTES_MAX and max(map(len, frames)) > PAYLOAD_BYTES_MAX):
        raise PeerError("bad-frames", f"{size} bytes")


def sealed(header: bytes, payload: Iterable[bytes] = ()) -> bytes:
    """The header with one more key at its end: `sum`, over everything before that key and the payload frames."""
    if header[0] < _FIXMAP_MAX:
        begin = bytes((header[0] + 1,)) + header[1:]
    else:
        count, skip = (header[0] - 0x80, 1) if header[0] == _FIXMAP_MAX else (int.from_bytes(header[1:3]), 3)
        begin = bytes((_MAP16,)) + (count + 1).to_bytes(2) + header[skip:]
    return begin + _SUM + sum_of(begin, payload).to_bytes(4)


def is_altered(header: bytes, payload: Iterable[bytes] = ()) -> bool:
    """Whether a message was altered on the way: of its last key, `sum`, and the number behind it, just one is right.

    Of a message without that key, as a peer says it that makes no sums, neither is.
    """
    begin, end = header[:-_SUM_BYTES], header[-_SUM_BYTES:]
    return (end[:-4] == _SUM) != (end[-4:] == sum_of(begin, payload).to_bytes(4))


def sum_of(begin: bytes, payload: Iterable[bytes]) -> int:
    """CRC-32 of a first frame, and of each further one behind its length."""
    found = crc32(begin)
    for frame in payload:
        found = crc32(frame, crc32(len(frame).to_bytes(4), found))
    return found
