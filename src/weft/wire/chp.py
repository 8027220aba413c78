r"""The dialect `chp`: what servers and clients of the Clone pattern say (CFG-060..064).

snapshot  = "ICANHAZ?" subtree                           client DEALER -> server ROUTER, P
            *KVSYNC KTHXBAI                              and back, both without a delimiter
update    = KVPUB / HUGZ                                 server PUB -> client SUB, P + 1
write     = KVSET                                        client PUB -> server SUB, P + 2

message   0          1            2      3           4
KVSYNC    key        number       UUID   properties  value
KTHXBAI   "KTHXBAI"  number       empty  empty       subtree
KVPUB     key        number       UUID   properties  value, empty: deleted
KVSET     key        8 zero bytes UUID   properties  value, empty: delete
HUGZ      "HUGZ"     8 zero bytes empty  empty       empty

Properties are lines `name=value\n` of at most 255 bytes in all. Keys are any text of 1 to 255 bytes: one Python client
writes bare numbers. A `ttl` counts seconds; from 10^9 on it is an instant, of seconds or of milliseconds. There is no
refusal on the wire; decoders raise PeerError as those of `wire.replication`.
"""

import math
from typing import Final

import msgspec

from weft.base.errors import PeerError
from weft.wire import replication
from weft.wire.envelope import Answer, Asked
from weft.wire.parts import NO_NUMBER, NUMBER_BYTES, read_decimal, read_lines, read_number, read_uuid
from weft.wire.replication import ABSOLUTE, FRAMES, VALUE_BYTES_MAX, Hugz, ICanHaz, KThxBai

KEY_BYTES_MAX: Final = 255
PROPERTIES_BYTES_MAX: Final = 255
ABSOLUTE_MS: Final = 1e11  # a `ttl` from here on is an instant in milliseconds; as seconds it would be the year 5138
_HUGZ: Final = b"HUGZ"
_KTHXBAI: Final = b"KTHXBAI"
_WORDS: Final = ("HUGZ", "KTHXBAI", "ICANHAZ?", "ICANHAZ")


class Pair(msgspec.Struct, frozen=True, gc=False):
    """What KVSYNC, KVPUB and KVSET have in common."""

    key: str
    number: int
    uuid: bytes
    """Of the KVSET that caused it (CFG-062); may be empty."""
    value: bytes
    """Empty: deleted, or to be deleted."""
    ttl_s: float | None = None
    expires_ms: int | None = None
    """When it ends by the server's wall clock, where that is what `ttl` says (CFG-064)."""
    raw: bytes = b""
    """The properties frame as received; empty: made from the fields above when encoded."""


class KvSync(Pair, frozen=True, gc=False):
    """One pair of a snapshot."""


class KvPub(Pair, frozen=True, gc=False):
    """One write of the server."""


class KvSet(Pair, frozen=True, gc=False):
    """A client wants this written; its number is 0."""


def encode_ask(message: ICanHaz) -> list[bytes]:
    """The two frames with which a follower asks."""
    return [b"ICANHAZ?", message.subtree.encode()]


def decode_ask(frames: list[bytes]) -> Asked:
    """The request of a client, from the frames behind its identity; one in the dialect `strict` is read too."""
    return replication.decode_ask(frames)


def encode_answer(answer: Answer) -> list[bytes]:
    """The frames of a KVSYNC or KTHXBAI, in the envelope of the request: a client of CHP has none (CFG-061)."""
    message = answer.message
    if type(message) is KThxBai:
        number = message.number.to_bytes(NUMBER_BYTES)
        return [*answer.envelope, _KTHXBAI, number, b"", b"", (message.subtree or "").encode()]
    assert type(message) is KvSync
    return [*answer.envelope, *_frames(message)]


def decode_answer(frames: list[bytes]) -> KvSync | KThxBai:
    """One part of a server's snapshot; some servers leave the subtree of KTHXBAI empty (CFG-064)."""
    name, number, uuid, properties, value = _five(frames)
    if name == _KTHXBAI:
        read_uuid(uuid)
        return KThxBai(_key(value) if value else None, read_number(number))
    key, ttl_s, expires_ms = _key(name), *_ttl(properties)
    return KvSync(key, read_number(number), read_uuid(uuid), _value(value), ttl_s, expires_ms, properties)


def encode_update(message: KvPub | Hugz) -> list[bytes]:
    """The frames of an update. A beat has number 0: reference clients store whatever is higher (CFG-061)."""
    if type(message) is Hugz:
        return [_HUGZ, NO_NUMBER, b"", b"", b""]
    assert type(message) is KvPub
    return _frames(message)


def decode_update(frames: list[bytes]) -> KvPub | Hugz:
    """What a server has published; its beats may carry numbers and UUIDs (CFG-064)."""
    name, number, uuid, properties, value = _five(frames)
    if name == _HUGZ or name.endswith(b"/HUGZ"):
        read_uuid(uuid)
        return Hugz(read_number(number))
    key, ttl_s, expires_ms = _key(name), *_ttl(properties)
    return KvPub(key, read_number(number, 1), read_uuid(uuid), _value(value), ttl_s, expires_ms, properties)


def encode_set(message: KvSet) -> list[bytes]:
    """The frames with which a client writes."""
    return _frames(message)


def decode_set(frames: list[bytes]) -> KvSet:
    """What a client wants written."""
    name, number, uuid, properties, value = _five(frames)
    key, ttl_s, expires_ms = _key(name), *_ttl(properties)
    return KvSet(key, read_number(number), read_uuid(uuid), _value(value), ttl_s, expires_ms, properties)


def _frames(pair: Pair) -> list[bytes]:
    properties = pair.raw or _lines(pair)
    assert len(properties) <= PROPERTIES_BYTES_MAX
    return [pair.key.encode(), pair.number.to_bytes(NUMBER_BYTES), pair.uuid, properties, pair.value]


def _lines(pair: Pair) -> bytes:
    """Whole seconds, since clients in C read no others."""
    if pair.ttl_s is not None:
        return b"ttl=%d\n" % math.ceil(pair.ttl_s)
    return b"" if pair.expires_ms is None else b"ttl=%d\n" % pair.expires_ms


def _five(frames: list[bytes]) -> list[bytes]:
    if len(frames) != FRAMES:
        raise PeerError("frame-count", f"{len(frames)} frames", frames[0] if frames else b"")
    return frames


def _key(frame: bytes) -> str:
    if not 0 < len(frame) <= KEY_BYTES_MAX:
        raise PeerError("key", f"{len(frame)} bytes", frame)
    try:
        key = frame.decode()
    except UnicodeDecodeError:
        raise PeerError("key", "not UTF-8", frame) from None
    if key in _WORDS:
        raise PeerError("key", "a word of the protocol", frame)
    return key


def _value(frame: bytes) -> bytes:
    if len(frame) > VALUE_BYTES_MAX:
        raise PeerError("too-large", f"a value of {len(frame)} bytes", frame)
    return frame


def _ttl(frame: bytes) -> tuple[float | None, int | None]:
    """A span in seconds, or an instant in milliseconds, or neither."""
    if not frame:
        return None, None
    if len(frame) > PROPERTIES_BYTES_MAX:
        raise PeerError("too-large", f"properties of {len(frame)} bytes", frame)
    lines = read_lines(frame)
    if lines is None:
        raise PeerError("properties", "not lines of text", frame)
    if "ttl" not in lines:
        return None, None
    ttl = read_decimal(lines["ttl"])
    if ttl is None:
        raise PeerError("properties", "ttl is no number", frame)
    if ttl < ABSOLUTE:
        return ttl or None, None
    return None, int(ttl if ttl >= ABSOLUTE_MS else ttl * 1_000)
