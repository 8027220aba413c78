"""Journal records as bytes, and back (JRN, section 5.2).

A record is one MessagePack array whose first item is its tag; what it means stands in `base.records`. A batch is
what one turn makes durable: each record behind its length, in one buffer that begins with room for the batch's
head, so that nothing is copied between a record and the disk; `wire.segments` knows heads and files.

Decoding is validation: typed, and bounded before anything untyped is touched. The two places where a record may
hold anything, its origin and its attributes, are measured on the bytes first, so hostile input costs no more
memory than it is long. A tag of a later version is kept as it came (JRN-014).
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Annotated, Any, Final

import msgspec

from weft.base.errors import OurFault, PeerError
from weft.base.identity import NODE_ID_BYTES, ORIGIN_BYTES_MAX
from weft.base.records import (
    CoreRecord,
    DamageRecord,
    EraRecord,
    LostRecord,
    Record,
    SafeRecord,
    StreamRecord,
    UnknownRecord,
)
from weft.base.vectors import NUMBER_MAX

BODY_BYTES_MAX: Final = 16 << 20  # of one batch; a reader needs this much memory
LENGTH_BYTES: Final = 4
RECORD_BYTES_MAX: Final = BODY_BYTES_MAX - LENGTH_BYTES
TEXT_BYTES_MAX: Final = 4 << 10  # a key, a reason, a file name; the longest are store paths
ATTRIBUTES_BYTES_MAX: Final = 64 << 10  # decoded untyped: at worst 70 bytes of memory per byte
ROWS_MAX: Final = 1_000_000  # rows of one record of samples; a batch of MEA-022 has 1,000
TAG_MAX: Final = 127  # a tag is one byte of MessagePack
KNOWN_TAGS: Final = range(1, 7)
HEAD_BYTES: Final = 32

assert ATTRIBUTES_BYTES_MAX < RECORD_BYTES_MAX, "attributes are a part of a record"


class BatchTooLarge(OurFault):
    """These records do not fit into one batch. Nothing was written."""


_Known = CoreRecord | StreamRecord | LostRecord | SafeRecord | DamageRecord | EraRecord


class _StreamOutline(msgspec.Struct, tag=2, array_like=True, gc=False):
    """A stream record with its two untyped fields left undecoded: to measure a large one before it is decoded."""

    stream: int
    origin: msgspec.Raw
    era: int | None
    sequence: int
    at: int
    received: int
    key: Annotated[str, msgspec.Meta(max_length=TEXT_BYTES_MAX)]
    payload: msgspec.Raw
    attributes: msgspec.Raw


def _raw_of(record: Any) -> msgspec.Raw:
    if type(record) is not UnknownRecord:
        raise TypeError(f"{type(record).__name__} has no bytes")
    return msgspec.Raw(record.raw)


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=_raw_of)
_decode: Final = msgspec.msgpack.Decoder(_Known).decode
_decode_raw: Final = msgspec.msgpack.Decoder(msgspec.Raw).decode
_decode_outline: Final = msgspec.msgpack.Decoder(_StreamOutline).decode
_pack_length: Final = Struct(">I").pack_into

_FIXARRAY, _FIXARRAY_END, _ARRAY16 = 0x90, 0x9F, 0xDC
_FIXSTR, _FIXSTR_END, _STR8, _BIN8 = 0xA1, 0xBF, 0xD9, 0xC4
_ORIGIN_AT: Final = 3  # behind array head, tag and stream, one byte each
_TAGS_WITH_ORIGIN: Final = (2, 3, 4, 6)
_STREAM_HEAD: Final = b"\x9a\x02"  # nearly all records belong to a stream,
_NODE_HEAD: Final = b"\xc4\x10"  # and their origin is a node


def encode_record(record: Record) -> bytes:
    """The bytes of one record; OurFault if it is one that no reader would take."""
    try:
        data = _encoder.encode(record)
    except (OverflowError, UnicodeEncodeError, TypeError) as error:
        raise OurFault(f"{record!r:.200} cannot be encoded: {error}") from error
    if len(data) > RECORD_BYTES_MAX or not is_sound(record):
        raise OurFault(f"{record!r:.200} must not be written")
    if len(data) > ATTRIBUTES_BYTES_MAX:
        _refuse_wide(record, data)
    return data


def _refuse_wide(record: Record, data: bytes | memoryview) -> None:
    """OurFault for attributes that `decode_record` would not take."""
    if type(record) is StreamRecord:
        try:
            _measure(2, data)
        except PeerError as error:
            raise OurFault(f"{record!r:.200} must not be written: {error.why}") from error


def decode_record(data: bytes | memoryview) -> Record:
    """The record of these bytes; PeerError `too-large` or `malformed` for everything else, in linear time."""
    if len(data) > RECORD_BYTES_MAX:
        raise PeerError("too-large", f"a record of {len(data)} bytes", bytes(data[:256]))
    try:
        if data[:2] != _STREAM_HEAD or data[3:5] != _NODE_HEAD or len(data) > ATTRIBUTES_BYTES_MAX:
            tag = _tag_of(data)
            if tag not in KNOWN_TAGS:
                _decode_raw(data)
                return UnknownRecord(tag, bytes(data))
            if tag in _TAGS_WITH_ORIGIN:
                _measure(tag, data)
        record: Record = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("malformed", str(error), bytes(data[:256])) from error
    if not _SOUND[type(record)](record):
        raise PeerError("malformed", "a field is out of bounds", bytes(data[:256]))
    return record


def _tag_of(data: bytes | memoryview) -> int:
    head = data[0] if len(data) > 3 else 0
    tag = -1
    if _FIXARRAY < head <= _FIXARRAY_END:
        tag = data[1]
    elif head == _ARRAY16 and data[3] not in KNOWN_TAGS:  # a record with a known tag is always a short array
        tag = data[3]
    if not 0 < tag <= TAG_MAX:
        raise PeerError("malformed", "not an array that begins with a tag", bytes(data[:256]))
    return tag


def _measure(tag: int, data: bytes | memoryview) -> None:
    """Refuse what would decode into something large or odd where a field takes anything."""
    if len(data) < _ORIGIN_AT + 2 or not 0 < data[2] <= TAG_MAX:
        raise PeerError("malformed", "not a stream", bytes(data[:256]))
    head, length = data[_ORIGIN_AT], data[_ORIGIN_AT + 1]
    is_node = head == _BIN8 and length == NODE_ID_BYTES
    is_name = _FIXSTR <= head <= _FIXSTR_END or (head == _STR8 and 0 < length <= ORIGIN_BYTES_MAX)
    if not (is_node or is_name):
        raise PeerError("malformed", "an origin is 16 bytes, or text of at most 128", bytes(data[:256]))
    if tag == 2 and len(data) > ATTRIBUTES_BYTES_MAX:
        attributes = _decode_outline(data).attributes
        if len(memoryview(attributes)) > ATTRIBUTES_BYTES_MAX:
            raise PeerError("too-large", "attributes over 64 KiB", bytes(data[:256]))


class Run(msgspec.Struct, array_like=True, gc=False):
    """Consecutive numbers of one origin in one stream, as the footer of a file lists them."""

    stream: int
    origin: Any
    era: int | None
    first: int
    last: int
    records: int
    """How many hold these numbers."""
    offset: int = 0
    """Where the batch of the first one begins; `wire.segments.Footer` fills it in."""


def encode_body(records: Sequence[Record]) -> tuple[bytearray, list[Run]]:
    """The beginnings of a batch: room for its head and its records, each behind its length; and the numbers they hold.

    One buffer, no copy; OurFault for a record that no reader would take, BatchTooLarge over 16 MiB.
    `wire.segments.close_batch` makes a batch of it.

    In a large turn a record mostly differs from the one before it only in its times, its payload, and its number,
    which is the next one: then it is as sound as that one, belongs to the same run, and is not looked at again.
    """
    encode_into, pack_length, sound = _encoder.encode_into, _pack_length, _SOUND
    buffer, at = bytearray(HEAD_BYTES), HEAD_BYTES
    runs: list[Run] = []
    record = stream = origin = era = key = None
    last = following = 0  # the number of the last record that was looked at, and the one behind those that follow it
    try:
        for record in records:
            encode_into(record, buffer, at + LENGTH_BYTES)
            began, at = at, len(buffer)
            pack_length(buffer, began, at - began - LENGTH_BYTES)
            if (
                type(record) is StreamRecord
                and record.sequence == following
                and record.stream == stream
                and record.key == key
                and record.origin == origin
                and record.era == era
                and not record.attributes
            ):
                following += 1
                continue
            if not sound[type(record)](record):
                raise OurFault(f"{record!r:.200} must not be written")
            if at - began > ATTRIBUTES_BYTES_MAX:
                _refuse_wide(record, bytes(buffer[began + LENGTH_BYTES : at]))
            if type(record) is not StreamRecord:
                continue
            if following - last > 1:
                _grow(runs[-1], following - 1)
            stream, origin, era, key = record.stream, record.origin, record.era, record.key
            last = record.last if record.attributes else record.sequence
            runs.append(Run(stream, origin, era, record.sequence, last, 1))
            following = last + 1
    except (OverflowError, UnicodeEncodeError, TypeError) as error:
        raise OurFault(f"{record!r:.200} cannot be encoded: {error}") from error
    if following - last > 1:
        _grow(runs[-1], following - 1)
    if len(buffer) - HEAD_BYTES > BODY_BYTES_MAX:
        raise BatchTooLarge(f"a batch of {len(buffer) - HEAD_BYTES} bytes is over the limit of {BODY_BYTES_MAX}")
    return buffer, runs


def _grow(run: Run, last: int) -> None:
    """Let a run reach to the number `last`, with a record for each."""
    run.records += last - run.last
    run.last = last


# What must hold of a record beyond the types of its fields, by kind; the same for writing and for reading.


def is_sound(record: Any) -> bool:
    """Whether all fields are within their limits."""
    return _SOUND[type(record)](record)


def _is_sound_stream(record: StreamRecord) -> bool:
    origin, era, attributes = record.origin, record.era, record.attributes
    return (
        ((type(origin) is bytes and len(origin) == NODE_ID_BYTES) or _is_name(origin))
        and record.sequence > 0
        and 0 < record.stream <= TAG_MAX
        and len(record.key) <= TEXT_BYTES_MAX
        and (era is None or era >= 0)
        and (not attributes or "n" not in attributes or _are_rows(attributes["n"], record.sequence))
    )


def _are_rows(count: Any, sequence: int) -> bool:
    return type(count) is int and 0 < count <= ROWS_MAX and sequence + count - 1 <= NUMBER_MAX


def _is_name(origin: Any) -> bool:
    return isinstance(origin, str) and 0 < len(origin.encode()) <= ORIGIN_BYTES_MAX


def _is_origin(record: LostRecord | SafeRecord | EraRecord) -> bool:
    origin = record.origin
    is_node = isinstance(origin, bytes) and len(origin) == NODE_ID_BYTES
    return (is_node or _is_name(origin)) and 0 < record.stream <= TAG_MAX and (record.era is None or record.era >= 0)


def _is_sound_lost(record: LostRecord) -> bool:
    return _is_origin(record) and 0 < record.first <= record.last and len(record.why) <= TEXT_BYTES_MAX


def _is_sound_safe(record: SafeRecord) -> bool:
    return _is_origin(record) and record.upto >= 0


def _is_sound_era(record: EraRecord) -> bool:
    return _is_origin(record) and 0 <= record.era_before < record.era and record.last_before >= 0


def _is_sound_core(record: CoreRecord) -> bool:
    return 0 < len(record.core) <= ORIGIN_BYTES_MAX and record.kind >= 0


def _is_sound_damage(record: DamageRecord) -> bool:
    return 0 < record.first_lsn <= record.end_lsn and max(len(record.file), len(record.why)) <= TEXT_BYTES_MAX


def _is_sound_unknown(record: UnknownRecord) -> bool:
    return 0 < record.tag <= TAG_MAX


_SOUND: Final[dict[type, Callable[[Any], bool]]] = {
    CoreRecord: _is_sound_core,
    StreamRecord: _is_sound_stream,
    LostRecord: _is_sound_lost,
    SafeRecord: _is_sound_safe,
    DamageRecord: _is_sound_damage,
    EraRecord: _is_sound_era,
    UnknownRecord: _is_sound_unknown,
}
