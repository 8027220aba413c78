"""Configuration messages of the dialect `strict`: five frames each, except WTF (CFG-001).

update    = KVPUB / HUGZ                                 PUB +2 -> SUB
snap-sync = ICANHAZ ( ( *( KVSYNC / KVPACK ) KTHXBAI ) / WTF )        DEALER or REQ -> ROUTER +3

message   0          1               2             3            4
ICANHAZ   "ICANHAZ"  empty           empty         empty        subtree
KVSYNC    key        number          empty         empty        value
KVPACK    "KVPACK"   empty           empty         properties   pairs
KTHXBAI   "KTHXBAI"  number          empty         empty        subtree
KVPUB     key        number          root's UUID   properties   value, empty: deleted
HUGZ      "HUGZ"     8 zero bytes    empty         empty        empty
WTF       "WTF"      u32 code        text

An ICANHAZ with the property `digest`: true asks for the properties `count` and `digest` of the KTHXBAI: how many pairs the
answer had, and their digest in 32 hex digits (FLD-002). Who does not know them leaves them out.

An ICANHAZ with the property `packed`: true accepts KVPACK in place of KVSYNC: 1 to 4,096 pairs of the subtree in the order of
their keys, each key once, as one MessagePack array of [key, number, value]. Who does not know it sends KVSYNC, and a
parent may do so anyway. Last writes of chains are never packed.

Weft's nodes end the properties of such an ICANHAZ, such a KTHXBAI, a KVPACK, and every KVPUB that they write with `sum`: the
CRC-32, in eight hex digits, of all five frames, of the properties only the part before it (FLD-030). An altered message is refused as
`bad-sum`. A peer that does not know the property ignores it, and a message without it is accepted. A KVPUB is forwarded
unchanged, so its sum is that of the root (CFG-040). The digest proves the pairs of a snapshot. HUGZ and WTF have no sum:
whatever a node does because of them, it asks its parent again.

number = epoch * 2**40 + counter, u64 in network order (CFG-003)

Strings are UTF-8 without length or terminator; JSON is sent canonical and received in any layout (CFG-002).

Encoders write exactly these frames. Decoders also take what older and foreign peers send (CFG-014), and raise PeerError
with what is wrong: `frame-count`, `envelope`, `command`, `key`, `sequence`, `uuid`, `properties`, `value`, `subtree`,
`code`, `too-large` (CFG-008); `refusal` makes the WTF that answers it.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import product
from operator import lt
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE, PeerError
from weft.base.paths import KEY_BYTES_MAX, are_keys
from weft.wire import jsontext, parts
from weft.wire.envelope import Answer, Asked, opened, split
from weft.wire.parts import (
    NO_NUMBER,
    NUMBER_BYTES,
    NUMBER_END,
    is_count,
    read_decimal,
    read_key,
    read_lines,
    read_number,
    read_subtree,
    read_uuid,
)

PROPERTIES_BYTES_MAX: Final = 4 << 10
VALUE_BYTES_MAX: Final = 1 << 20
BUNDLE_BYTES_MAX: Final = 8 << 20
BUNDLE_PAIRS_MAX: Final = 200_000  # as many as a store may hold
PACK_PAIRS_MAX: Final = 4_096  # a pair takes 8 bytes at least, and 150 of memory when it is decoded
PACK_BYTES_MAX: Final = VALUE_BYTES_MAX + (4 << 10)  # one pair of the largest, or many small ones
TEXT_BYTES_MAX: Final = 200
CODE_MAX: Final = (1 << 32) - 1
ABSOLUTE: Final = 1e9  # a `ttl` in text from here on is an instant, not a span (CFG-064)
FRAMES: Final = 5
COUNTER_BITS: Final = 40
DIGEST_BYTES: Final = 16
EPOCH_MAX: Final = (1 << 23) - 1
UNSPECIFIED, MALFORMED, UNKNOWN_COMMAND, NOT_AUTHORISED, UNKNOWN_NODE, BUSY, TOO_LARGE = range(7)
NOT_READY, WRONG_DIALECT, STALE_EPOCH, NO_GROUP, NO_QUORUM, NOT_ROOT = range(7, 13)
"""Codes of WTF (CFG-007)."""
TIP: Final = "/.tip"
CHAINS: Final = parts.CHAINS
"""Before a path: the last number there (CFG-019), or the last write of each chain there (CFG-040)."""


class ICanHaz(msgspec.Struct, frozen=True, gc=False):
    """A child asks for all pairs of a subtree."""

    subtree: str
    is_bundle: bool = False
    """It wants one answer of many frames (CFG-013)."""
    dialect: str = "strict"
    """`chp`: asked in two frames; the answer takes the dialect of the request (CFG-014)."""
    wants_digest: bool = False
    """The end is to say how many pairs there were, and their digest."""
    takes_packs: bool = False
    """Pairs may come packed."""


class KvSync(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False):
    """One pair of a snapshot; its number orders nothing (CFG-039)."""

    key: Annotated[str, Meta(min_length=2, max_length=KEY_BYTES_MAX)]
    number: Annotated[int, Meta(ge=0, le=NUMBER_END - 1)]
    value: Annotated[bytes, Meta(min_length=1, max_length=VALUE_BYTES_MAX)]


class KvPack(msgspec.Struct, frozen=True, gc=False):
    """Many pairs of a snapshot in the order of their keys; `pack` makes one."""

    pairs: Annotated[list[KvSync], Meta(min_length=1, max_length=PACK_PAIRS_MAX)]
    body: bytes
    """The same pairs, encoded."""


class KThxBai(msgspec.Struct, frozen=True, gc=False):
    """The end of a snapshot. `number`: highest of any write there, deletions included (CFG-018)."""

    subtree: str | None
    """None: not given; it belongs to the oldest open request (CFG-014)."""
    number: int
    count: int = 0
    """How many pairs the answer had; given only together with `digest`."""
    digest: bytes = b""
    """Digest of these pairs, 16 bytes; empty: not given."""


class Bundle(msgspec.Struct, frozen=True, gc=False):
    """A whole snapshot in one message (CFG-013)."""

    pairs: tuple[KvSync, ...]
    end: KThxBai


class KvPub(msgspec.Struct, frozen=True, gc=False):
    """One write of the root. The known properties are parsed; `raw` holds the frame as it came (CFG-006, CFG-040)."""

    key: str
    number: int
    uuid: bytes
    """Of the root that wrote it; empty if a foreign parent does not name it."""
    value: bytes
    """Empty: deleted (CFG-005)."""
    prev: int | None = None
    """The write before it in the same chain (CFG-017); None: a foreign parent does not name it."""
    ttl: float | None = None
    is_more: bool = False
    """More writes that belong together follow (CFG-026)."""
    raw: bytes = b""
    """The properties frame as received; empty: made from the fields above when encoded."""


class Hugz(msgspec.Struct, frozen=True, gc=False):
    """A beat. `tip`: a number that a foreign parent put into it, only a hint (CFG-014)."""

    tip: int = 0


class Wtf(msgspec.Struct, frozen=True, gc=False):
    """A refusal; code as in CFG-007, text of at most 200 bytes."""

    code: int
    text: str = ""


Update = KvPub | Hugz
SnapshotPart = KvSync | KvPack | KThxBai | Bundle | Wtf

_ICANHAZ: Final = b"ICANHAZ"
_ICANHAZ_CHP: Final = b"ICANHAZ?"
_KTHXBAI: Final = b"KTHXBAI"
_KVPACK: Final = b"KVPACK"
_HUGZ: Final = b"HUGZ"
_WTF: Final = b"WTF"
_ASKS: Final = frozenset({_ICANHAZ, _ICANHAZ_CHP})
_WISHES: Final = ("bundle", "digest", "packed")
"""Properties of a request, in the order of canonical JSON."""
_PROPERTIES: Final = {
    wishes: jsontext.encode({name: True for name, is_set in zip(_WISHES, wishes, strict=True) if is_set})
    if any(wishes)
    else b""
    for wishes in product((False, True), repeat=len(_WISHES))
}
_HUGZ_FRAMES: Final = (_HUGZ, NO_NUMBER, b"", b"", b"")
_ASCII_ZEROS: Final = b"0" * NUMBER_BYTES
_ONLY_PREV: Final = re.compile(rb'\{"prev":(0|[1-9][0-9]{0,17})(?:,"sum":"[0-9a-f]{8}")?\}')
_PROPERTIES_AT: Final = 3
"""Where among the five frames the properties stand."""
_encode_pairs: Final = msgspec.msgpack.Encoder().encode
_decode_pairs: Final = msgspec.msgpack.Decoder(
    Annotated[list[KvSync], Meta(min_length=1, max_length=PACK_PAIRS_MAX)]
).decode
_DIGEST: Final = re.compile(f"[0-9a-f]{{{2 * DIGEST_BYTES}}}")
_REFUSALS: Final = {
    "command": UNKNOWN_COMMAND,
    "too-large": TOO_LARGE,
    "denied": NOT_AUTHORISED,
    "not-yours": NOT_AUTHORISED,
    "no-key": NOT_AUTHORISED,
}


def encode_update(message: Update) -> list[bytes]:
    """The frames of an update; those of a received KVPUB are its own, unchanged (CFG-040)."""
    if type(message) is Hugz:
        return list(_HUGZ_FRAMES)
    assert type(message) is KvPub
    assert 0 < message.number < NUMBER_END
    assert len(message.value) <= VALUE_BYTES_MAX
    properties = message.raw or _properties_of(message)
    return [message.key.encode(), message.number.to_bytes(NUMBER_BYTES), message.uuid, properties, message.value]


def seal_update(message: Update) -> list[bytes]:
    """As a node sends it: with a sum, but a received one unchanged (FLD-030)."""
    frames = encode_update(message)
    return jsontext.sealed(frames, _PROPERTIES_AT) if type(message) is KvPub and not message.raw else frames


def decode_update(frames: list[bytes]) -> Update:
    """What a parent has published."""
    if len(frames) != FRAMES:
        raise PeerError("frame-count", f"{len(frames)} frames", frames[0] if frames else b"")
    name, number, uuid, properties, value = frames
    if name == _HUGZ or name.endswith(b"/HUGZ"):
        return _hugz(frames)
    jsontext.is_sealed(frames, _PROPERTIES_AT)
    key = read_key(name)
    write = read_number(number, 1)
    read_uuid(uuid)
    if len(value) > VALUE_BYTES_MAX:
        raise PeerError("too-large", f"a value of {len(value)} bytes", name)
    if not properties:
        return KvPub(key, write, uuid, value)
    if (match := _ONLY_PREV.fullmatch(properties)) is not None:
        return KvPub(key, write, uuid, value, int(match[1]), None, False, properties)
    known = read_properties(properties)
    ttl = known.get("ttl") or None
    return KvPub(key, write, uuid, value, known.get("prev"), ttl, known.get("more") is True, properties)


def encode_ask(message: ICanHaz) -> list[bytes]:
    """The frames of a request: behind a delimiter, but in the dialect `chp` two bare ones."""
    subtree = message.subtree.encode()
    if message.dialect == "chp":
        return [_ICANHAZ_CHP, subtree]
    return [b"", _ICANHAZ, b"", b"", _PROPERTIES[message.is_bundle, message.wants_digest, message.takes_packs], subtree]


def seal_ask(message: ICanHaz) -> list[bytes]:
    """As a node sends it: with a sum if it asks for a digest (FLD-030)."""
    frames = encode_ask(message)
    return [frames[0], *jsontext.sealed(frames[1:], _PROPERTIES_AT)] if message.wants_digest else frames


def decode_ask(frames: list[bytes]) -> Asked:
    """The request of a child, from the frames behind its identity (CFG-010, CFG-011)."""
    envelope, message = split(frames, _ASKS)
    command = message[0] if message else b""
    if command not in _ASKS:
        raise PeerError("command", "not ICANHAZ", command)
    dialect = "strict" if command == _ICANHAZ else "chp"
    if len(message) == 2 and dialect == "chp":
        return Asked(envelope, ICanHaz(read_subtree(message[1]), dialect=dialect))
    if len(message) != FRAMES:
        raise PeerError("frame-count", f"{len(message)} frames", command)
    jsontext.is_sealed(message, _PROPERTIES_AT)
    _, number, uuid, properties, subtree = message
    if number:
        read_number(number)
    read_uuid(uuid)
    known = read_properties(properties)
    is_bundle, wants_digest, takes_packs = [known.get(name) is True for name in _WISHES]
    return Asked(envelope, ICanHaz(read_subtree(subtree), is_bundle, dialect, wants_digest, takes_packs))


def encode_answer(answer: Answer) -> list[bytes]:
    """The frames of an answer; WTF 6 stands for a bundle over 8 MiB (CFG-013)."""
    message = answer.message
    if type(message) is KvSync:
        return [*answer.envelope, *_pair_frames(message)]
    if type(message) is KvPack:
        return [*answer.envelope, _KVPACK, b"", b"", b"", message.body]
    if type(message) is KThxBai:
        return [*answer.envelope, *_end_frames(message)]
    if type(message) is Bundle:
        return [*answer.envelope, *_bundle_frames(message)]
    return [*answer.envelope, *wtf_frames(message)]


def seal_answer(answer: Answer) -> list[bytes]:
    """As a node sends it: packed pairs, and an end with a digest, have a sum (FLD-030)."""
    frames, message = encode_answer(answer), answer.message
    if type(message) is not KvPack and (type(message) is not KThxBai or not message.digest):
        return frames
    return [*frames[:-FRAMES], *jsontext.sealed(frames[-FRAMES:], _PROPERTIES_AT)]


def decode_answer(frames: list[bytes]) -> SnapshotPart:
    """What a parent answers, with or without the delimiter."""
    message = opened(frames)
    if len(message) == FRAMES:
        return _READERS.get(message[0], _pair)(message)
    if len(message) in (2, 3):
        return read_wtf(message)
    if message and len(message) % FRAMES == 0:
        return _bundle(message)
    raise PeerError("frame-count", f"{len(message)} frames", message[0] if message else b"")


def read_properties(frame: bytes) -> dict[str, Any]:
    r"""The properties of a frame: none, a JSON object, or lines of text; those that are known have their types (CFG-006).

    >>> read_properties(b'{"prev":7,"x":1}'), read_properties(b"ttl=5\n")
    ({'prev': 7, 'x': 1}, {'ttl': 5.0})
    """
    if not frame:
        return {}
    if len(frame) > PROPERTIES_BYTES_MAX:
        raise PeerError("too-large", f"properties of {len(frame)} bytes", frame)
    lines = read_lines(frame)
    if lines is not None:
        return _typed_lines(lines, frame)
    found = jsontext.decode_object(frame, PROPERTIES_BYTES_MAX, "properties")
    for name, is_sound in _KNOWN.items():
        value = found.get(name)
        if value is not None and not is_sound(value):
            raise PeerError("properties", f"{name} of another type", frame)
    return found


def wtf_frames(message: Wtf) -> list[bytes]:
    """The three frames of a refusal; a longer text is cut to 200 bytes."""
    assert 0 <= message.code <= CODE_MAX
    return [_WTF, message.code.to_bytes(4), _short(message.text).encode()]


def read_wtf(frames: list[bytes]) -> Wtf:
    """A refusal, of two or three frames, or of two with a code of eight bytes (CFG-014)."""
    head, *rest = frames
    if head == _WTF and len(rest) in (1, 2) and len(rest[0]) == 4:
        return Wtf(int.from_bytes(rest[0]), _text(rest[1] if len(rest) == 2 else b""))
    if len(head) == NUMBER_BYTES and len(rest) == 1:
        code = int.from_bytes(head)
        return Wtf(code if code <= CODE_MAX else UNSPECIFIED, _text(rest[0]))
    raise PeerError("code" if head == _WTF else "frame-count", "neither WTF nor a code of eight bytes", head)


def refusal(error: PeerError) -> Wtf:
    """What to answer on a ROUTER to a message that was malformed, or not allowed (CFG-007, CFG-008)."""
    return Wtf(_REFUSALS.get(error.code, MALFORMED), str(error)[:TEXT_BYTES_MAX])


def _is_span(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < ABSOLUTE


def _is_flag(value: Any) -> bool:
    return type(value) is bool


_KNOWN: Final = {"prev": is_count, "ttl": _is_span, "more": _is_flag, "bundle": _is_flag}


def _typed_lines(lines: dict[str, str], frame: bytes) -> dict[str, Any]:
    """Text properties: of the known ones it can only hold `ttl`; an instant in place of a span says nothing here."""
    found: dict[str, Any] = {name: text for name, text in lines.items() if name not in _KNOWN}
    if "ttl" in lines:
        ttl = read_decimal(lines["ttl"])
        if ttl is None:
            raise PeerError("properties", "ttl is no number", frame)
        if ttl < ABSOLUTE:
            found["ttl"] = ttl
    return found


def _properties_of(message: KvPub) -> bytes:
    if message.ttl is None and not message.is_more:
        return b"" if message.prev is None else b'{"prev":%d}' % message.prev
    known: dict[str, Any] = {}
    if message.is_more:
        known["more"] = True
    if message.prev is not None:
        known["prev"] = message.prev
    if message.ttl is not None:
        known["ttl"] = int(message.ttl) if message.ttl == int(message.ttl) else message.ttl
    return jsontext.encode(known)


def _hugz(frames: list[bytes]) -> Hugz:
    _, number, uuid, properties, value = frames
    read_uuid(uuid)
    read_properties(properties)
    if value:
        raise PeerError("value", "a beat has none", value)
    return Hugz() if number in (NO_NUMBER, _ASCII_ZEROS) else Hugz(read_number(number))


def _pair_frames(pair: KvSync) -> tuple[bytes, ...]:
    assert pair.value, "no pair of a snapshot is empty (CFG-005)"
    return pair.key.encode(), pair.number.to_bytes(NUMBER_BYTES), b"", b"", pair.value


def _pair(frames: list[bytes]) -> KvSync:
    name, number, uuid, properties, value = frames
    key = read_key(name)
    read_uuid(uuid)
    if properties:
        read_properties(properties)
    if not 0 < len(value) <= VALUE_BYTES_MAX:
        raise PeerError("too-large" if value else "value", f"a value of {len(value)} bytes", name)
    return KvSync(key, read_number(number), value)


def pack(pairs: Sequence[KvSync]) -> KvPack:
    """Pairs in the order of their keys as one message."""
    assert 0 < len(pairs) <= PACK_PAIRS_MAX, len(pairs)
    body = _encode_pairs(pairs)
    assert len(body) <= PACK_BYTES_MAX, len(body)
    return KvPack(list(pairs), body)


def _pack(frames: list[bytes]) -> KvPack:
    jsontext.is_sealed(frames, _PROPERTIES_AT)
    name, number, uuid, properties, body = frames
    if number:
        read_number(number)
    read_uuid(uuid)
    read_properties(properties)
    if len(body) > PACK_BYTES_MAX:
        raise PeerError("too-large", f"pairs of {len(body)} bytes", name)
    try:
        pairs = _decode_pairs(body)
    except UNREADABLE as error:
        raise PeerError("value", str(error)[:200], body) from None
    keys = [pair.key for pair in pairs]
    if not (are_keys(keys) and all(map(lt, keys, keys[1:]))):
        raise PeerError("key", "packed keys are no keys, or not in order", body)
    at = bisect_left(keys, CHAINS + "/")
    if at < len(keys) and keys[at].startswith(CHAINS + "/"):
        raise PeerError("key", "a packed chain", body)
    return KvPack(pairs, body)


def _end_frames(end: KThxBai) -> tuple[bytes, ...]:
    proof = b'{"count":%d,"digest":"%s"}' % (end.count, end.digest.hex().encode()) if end.digest else b""
    return _KTHXBAI, end.number.to_bytes(NUMBER_BYTES), b"", proof, (end.subtree or "").encode()


def _end(frames: list[bytes]) -> KThxBai:
    jsontext.is_sealed(frames, _PROPERTIES_AT)
    _, number, uuid, properties, subtree = frames
    read_uuid(uuid)
    count, digest = _proof(read_properties(properties), properties)
    if number in (b"", NO_NUMBER) and len(subtree) == NUMBER_BYTES and subtree[:1] != b"/":
        return KThxBai(None, read_number(subtree), count, digest)
    return KThxBai(read_subtree(subtree) or None, read_number(number), count, digest)


_READERS: Final[dict[bytes, Callable[[list[bytes]], SnapshotPart]]] = {_KTHXBAI: _end, _KVPACK: _pack}


def _proof(known: dict[str, Any], frame: bytes) -> tuple[int, bytes]:
    """Count and digest that an end gives for its pairs, or neither."""
    digest, count = known.get("digest"), known.get("count")
    if digest is None:
        return 0, b""
    if type(digest) is not str or not _DIGEST.fullmatch(digest) or type(count) is not int or not is_count(count):
        raise PeerError("properties", "count and digest of another type", frame)
    return count, bytes.fromhex(digest)


def _bundle_frames(bundle: Bundle) -> list[bytes]:
    frames = [frame for pair in bundle.pairs for frame in _pair_frames(pair)]
    frames += _end_frames(bundle.end)
    if sum(map(len, frames)) > BUNDLE_BYTES_MAX:
        return wtf_frames(Wtf(TOO_LARGE, "too large for one message"))
    return frames


def _bundle(frames: list[bytes]) -> Bundle:
    starts = range(0, len(frames) - FRAMES, FRAMES)
    if len(starts) > BUNDLE_PAIRS_MAX or sum(map(len, frames)) > BUNDLE_BYTES_MAX:
        raise PeerError("too-large", f"a bundle of {len(frames)} frames", frames[0])
    if frames[-FRAMES] != _KTHXBAI:
        raise PeerError("frame-count", "a bundle without an end", frames[0])
    return Bundle(tuple(_pair(frames[at : at + FRAMES]) for at in starts), _end(frames[-FRAMES:]))


def _text(frame: bytes) -> str:
    return _short(frame[:TEXT_BYTES_MAX].decode(errors="replace"))


def _short(text: str) -> str:
    return text.encode()[:TEXT_BYTES_MAX].decode(errors="ignore")


def number_of(epoch: int, counter: int) -> int:
    """The number of a write (CFG-003).

    >>> hex(number_of(1, 11))
    '0x1000000000b'
    """
    return epoch << COUNTER_BITS | counter


def epoch_of(number: int) -> int:
    """The epoch of a number."""
    return number >> COUNTER_BITS


def counter_of(number: int) -> int:
    """The counter of a number."""
    return number & ((1 << COUNTER_BITS) - 1)


def chain_of(key: str) -> str:
    """The chain of a key: up to its third slash inclusive, or the whole key if it has two segments (CFG-016).

    >>> chain_of("/CONFIG/web/metric/cpu"), chain_of("/TOPO/root")
    ('/CONFIG/web/', '/TOPO/root')
    """
    parts = key.split("/", 3)
    return key if len(parts) < 4 else f"/{parts[1]}/{parts[2]}/"
