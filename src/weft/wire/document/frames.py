"""What peers of a session say, as ZeroMQ carries it (PEE-004 to PEE-006; seed: Messages).

    sent      = type body [sum]                            ; by a DEALER: its identity is no frame
    delivered = identity ["" ] [identity] type [body [sum]] ; by a ROUTER; at most 4 frames
    sum       = 4OCTET                                     ; CRC-32 of the type, and of the body behind its length
    body      = endpoint / session / text / beat / seconds / *(uuid SP number LF) / XML / pack
    pack      = zlib of 1*500(length XML)                  ; length: 4OCTET, big-endian; at most 1 MiB inflated

Only the strict forms are sent; other forms are read, too, as PEE-005 lists. Whether an operation has a
header is not judged here (`operations.header_of`), so every body of `XMSG` is accepted. A sum is sent to peers that have `c1`
among the capabilities of their BEAT; what was altered on the way is refused as `bad_sum` (FLD-030).
"""

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.wire.document import endpoints
from weft.wire.document.messages import (
    OPERATION_BYTES_MAX,
    PACK_BYTES_MAX,
    PACK_LENGTH_BYTES,
    PACK_MAX,
    SESSION_BYTES_MAX,
    UUID_BYTES,
    Beat,
    Bout,
    Chat,
    Envelope,
    Gbye,
    Gsip,
    Helo,
    Message,
    PeerAt,
    Progress,
    Time,
    Xmsg,
    Xpak,
)
from weft.wire.multipart import sum_of

FRAMES_MIN: Final = 2
FRAMES_MAX: Final = 4
SUM_BYTES: Final = 4
SEQUENCE_MAX: Final = (1 << 53) - 1  # GSP-012
SECONDS_MAX: Final = 253_402_300_799.0  # the year 9999: later times are no operation's either (DOC-011)
CHAT_BYTES_MAX: Final = 65_536  # as much as an operation of ours (GSP-013); people write less
GBYE_CHARACTERS_MAX: Final = 256  # of a text that only people read
SOURCES_MAX: Final = 4_096  # lines of one GSIP: so many sources has a session (GSP-014)
GSIP_BYTES_MAX: Final = 128 * SOURCES_MAX  # twice what such lines have
CAPS_MAX: Final = 16
CAPS_CHARACTERS_MAX: Final = 256
PADDING: Final = b" \t\r\n\v\f\0"
"""What is cut off the end of a body, except of an operation and of what people write."""

_NUMBER: Final = re.compile(r"[0-9]{1,16}")
_SECONDS: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX: Final = re.compile(r"[0-9A-Fa-f]{8}")
_UUID: Final = re.compile(r"\{?(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\}?")


def decode(frames: Sequence[bytes]) -> Envelope:
    """The sender and the message, of the frames that a ROUTER delivers.

    PeerError `bad_identity`, `bad_frames`, `bad_sum`, `unknown_type` or `bad_body`: the last word of the counter's name
    (PEE-006).

    >>> decode([bytes.fromhex("b0000000000040008000000000000002"), b"TIME"]).message
    Time(seconds=None, has_sum=False)
    """
    sender = frames[0] if frames else b""
    if len(sender) != UUID_BYTES:
        raise PeerError("bad_identity", f"{len(sender)} bytes", sender)
    kind, *rest = _without_envelope(sender, frames)
    body = rest[0] if rest else b""
    if (has_sum := len(rest) > 1) and rest[1] != _sum(kind, body):
        raise PeerError("bad_sum", "altered on the way", kind)
    read = _READ.get(kind)
    if read is None:
        raise PeerError("unknown_type", "", kind)
    message = read(body)
    return Envelope(sender, msgspec.structs.replace(message, has_sum=True) if has_sum else message)


def encode(message: Message) -> list[bytes]:
    """Type and body of a message, in its strict form.

    >>> encode(Beat(7, 0x10000000, 0, ("z1",)))
    [b'BEAT', b'7 10000000 00000000 z1']
    """
    word, write = _WRITE[type(message)]
    body = write(message)
    return [word, body, _sum(word, body)] if message.has_sum else [word, body]


def word_of(message: Message) -> str:
    """The type of a message as the seed writes it: the last word of the names of its counters."""
    return _WRITE[type(message)][0].decode()


def uuid_of(text: str) -> bytes:
    """The 16 bytes of a UUID with or without hyphens and braces, in any case; ValueError for anything else."""
    if not _UUID.fullmatch(text) or text.startswith("{") != text.endswith("}"):
        raise ValueError("no UUID")
    return bytes.fromhex(text.strip("{}").replace("-", ""))


def uuid_text(uuid: bytes) -> str:
    """Lower-case, with hyphens."""
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _sum(kind: bytes, body: bytes) -> bytes:
    return sum_of(kind, (body,)).to_bytes(SUM_BYTES)


def _without_envelope(sender: bytes, frames: Sequence[bytes]) -> Sequence[bytes]:
    """The type, and behind it the body and the sum, if they are there."""
    begin = 1
    for skipped in (b"", sender):
        if begin < len(frames) and frames[begin] == skipped:
            begin += 1
    rest = frames[begin:]
    if not FRAMES_MIN <= len(frames) <= FRAMES_MAX or not (
        1 <= len(rest) <= 2 or (len(rest) == 3 and len(rest[2]) == SUM_BYTES)
    ):
        raise PeerError("bad_frames", f"{len(frames)} frames", sender)
    return rest


# Reading


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise PeerError("bad_body", str(error)[:200], body) from None


def _trimmed(body: bytes, bytes_max: int) -> str:
    """Text of a bounded length without what pads its end."""
    body = body.rstrip(PADDING)
    if len(body) > bytes_max:
        raise PeerError("bad_body", f"{len(body)} bytes", body)
    return _text(body)


def _endpoint(body: bytes) -> str:
    try:
        return endpoints.parse(_trimmed(body, endpoints.ENDPOINT_CHARACTERS_MAX))
    except PeerError as error:
        raise PeerError("bad_body", error.why, body) from None


def _beat(body: bytes) -> Beat:
    """Never refused: whatever it contains, its sender is alive."""
    sequence, view, check, caps, *_ = [
        *body[:1024].decode("utf-8", "replace").rstrip("\0 \t\r\n").split(),
        "",
        "",
        "",
        "",
    ]
    if not _NUMBER.fullmatch(sequence) or int(sequence) > SEQUENCE_MAX:
        return Beat()
    if not (_HEX.fullmatch(view) and _HEX.fullmatch(check)):
        return Beat(int(sequence))
    able = tuple([cap for cap in caps[:CAPS_CHARACTERS_MAX].split(",") if cap][:CAPS_MAX])
    return Beat(int(sequence), int(view, 16), int(check, 16), able)


def _time(body: bytes) -> Time:
    text = _trimmed(body, 64)
    if not text:
        return Time()
    seconds = float(text) if _SECONDS.fullmatch(text) else -1.0
    if not 0.0 <= seconds <= SECONDS_MAX:
        raise PeerError("bad_body", "no time", body)
    return Time(seconds)


def _gsip(body: bytes) -> Gsip:
    lines = [words for line in _trimmed(body, GSIP_BYTES_MAX).split("\n") if (words := line.split())]
    if not 1 <= len(lines) <= SOURCES_MAX:
        raise PeerError("bad_body", f"{len(lines)} lines", body)
    return Gsip(tuple([_held(words) for words in lines]))


def _held(words: list[str]) -> Progress:
    """Words after the number are ignored (PEE-005)."""
    try:
        source, upto = uuid_of(words[0]), words[1]
    except (ValueError, IndexError) as error:
        raise PeerError("bad_body", str(error)) from None
    if not _NUMBER.fullmatch(upto) or int(upto) > SEQUENCE_MAX:
        raise PeerError("bad_body", "no number", upto.encode())
    return Progress(source, int(upto))


def _chat(body: bytes) -> Chat:
    if len(body) > CHAT_BYTES_MAX:
        raise PeerError("bad_body", f"{len(body)} bytes of chat")
    return Chat(_text(body))


def _pack(body: bytes) -> Xpak:
    """Never inflates more than a pack may have (GSP-027)."""
    inflater = zlib.decompressobj()
    try:
        rest = memoryview(inflater.decompress(body, PACK_BYTES_MAX + 1))
    except zlib.error as error:
        raise PeerError("bad_body", str(error), body) from None
    if not inflater.eof or inflater.unused_data or len(rest) > PACK_BYTES_MAX:
        raise PeerError("bad_body", "no whole pack", body)
    bodies: list[bytes] = []
    while rest:
        size = int.from_bytes(rest[:PACK_LENGTH_BYTES])
        operation, rest = rest[PACK_LENGTH_BYTES : PACK_LENGTH_BYTES + size], rest[PACK_LENGTH_BYTES + size :]
        if len(bodies) == PACK_MAX or len(operation) != size or not 0 < size <= OPERATION_BYTES_MAX:
            raise PeerError("bad_body", f"operation {len(bodies) + 1} of the pack has no such length", body)
        bodies.append(bytes(operation))
    if not bodies:
        raise PeerError("bad_body", "an empty pack", body)
    return Xpak(tuple(bodies))


_READ: Final[dict[bytes, Callable[[bytes], Message]]] = {
    b"HELO": lambda body: Helo(_endpoint(body)),
    b"PEER": lambda body: PeerAt(_endpoint(body)),
    b"BOUT": lambda body: Bout(_trimmed(body, SESSION_BYTES_MAX)),
    b"GBYE": lambda body: Gbye(_text(body.rstrip(PADDING))[:GBYE_CHARACTERS_MAX]),
    b"CHAT": _chat,
    b"BEAT": _beat,
    b"TIME": _time,
    b"GSIP": _gsip,
    b"XMSG": Xmsg,
    b"XPAK": _pack,
}


# Writing


def _beat_body(beat: Beat) -> bytes:
    words = [] if beat.sequence is None else [str(beat.sequence)]
    if words and beat.view is not None and beat.check is not None:
        words += [f"{beat.view:08x}", f"{beat.check:08x}"]
        words += [",".join(beat.caps)] if beat.caps else []
    return " ".join(words).encode()


def _gsip_body(gsip: Gsip) -> bytes:
    return "\n".join([f"{uuid_text(source)} {upto}" for source, upto in gsip.entries]).encode()


def _pack_body(pack: Xpak) -> bytes:
    return zlib.compress(b"".join([len(body).to_bytes(PACK_LENGTH_BYTES) + body for body in pack.bodies]), 6)


_WRITE: Final[dict[type, tuple[bytes, Callable[[Any], bytes]]]] = {
    Helo: (b"HELO", lambda message: message.endpoint.encode()),
    PeerAt: (b"PEER", lambda message: message.endpoint.encode()),
    Bout: (b"BOUT", lambda message: message.session.encode()),
    Gbye: (b"GBYE", lambda message: message.text.encode()),
    Chat: (b"CHAT", lambda message: message.text.encode()),
    Beat: (b"BEAT", _beat_body),
    Time: (b"TIME", lambda message: b"" if message.seconds is None else repr(message.seconds).encode()),
    Gsip: (b"GSIP", _gsip_body),
    Xmsg: (b"XMSG", lambda message: message.body),
    Xpak: (b"XPAK", _pack_body),
}
