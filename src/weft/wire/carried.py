"""Journal records and mail as items of a hop, and back (CLI-001 to CLI-008).

A record of a stream is two payload frames: its payload, unchanged, and a map of its attributes. The body of a
sample batch is never decoded on the way. The map has three reserved keys: `rx` is the first receiver's clock
(nanoseconds; absent until somebody received it), `key` the record's key if it is not the type, and on
disk `via` lists the nodes that have sent it on. Announced losses and era links travel as their journal record.

Mail is what has a destination (`to`): it leaves as a record of the outbox and arrives as one of the inbox, and its
payload frames are exactly those of the message.

`to_item` and `to_record` are inverse up to what a hop adds: a name in `via`, the time of first receipt.
"""

from collections.abc import Callable
from typing import Any, Final, TypeGuard

import msgspec

from weft.base import mail as mails
from weft.base.errors import UNREADABLE, PeerError
from weft.base.identity import NODE_ID_BYTES, is_canonical
from weft.base.mail import INBOX, OUTBOX, Mail
from weft.base.records import Carried, EraRecord, LostRecord, Stream, StreamRecord
from weft.wire import journal
from weft.wire.hop import VIA_MAX, HopItem, is_type
from weft.wire.multipart import HEADER_BYTES_MAX, MULTIPART_BYTES_MAX, PAYLOAD_BYTES_MAX

LOST: Final = "weft.lost"
ERA: Final = "weft.era"
_NOTES: Final = (LOST, ERA)
GONE: Final = "weft.gone"
MESSAGE: Final = "weft.message"
TYPES: Final[dict[int, str]] = {
    Stream.SAMPLES: "weft.metric",
    Stream.LOGS: "weft.log",
    Stream.EVENTS: "weft.event",
    Stream.CATALOG: "weft.catalog",
    Stream.CONFIGURATION: "weft.configuration",
    Stream.STORE: "weft.store",
    Stream.DOCUMENTS: "weft.documents",
}
_STREAMS: Final[dict[str, int]] = {name: int(stream) for stream, name in TYPES.items()}
DEPTH_MAX: Final = 32  # of nested attributes (SEC-042): whoever encodes them again must not run out of stack
VIA_BYTES: Final = NODE_ID_BYTES + 2  # one name in `via`
ATTRIBUTES_BYTES_MAX: Final = (
    journal.ATTRIBUTES_BYTES_MAX - VIA_MAX * VIA_BYTES - 64
)  # on disk `via` and `rx` are stored in the same map
_NESTED: Final = (dict, list, tuple)
_ORIGINS: Final = (bytes, str)
ROWS_MAX: Final = 1 << 24  # rows that one record may claim
NUMBER_MAX: Final = (1 << 64) - 1
INSTANT_MAX: Final = (1 << 63) - 1
STREAM_MAX: Final = 255
MAIL_STREAMS: Final = frozenset((OUTBOX, INBOX))
RECEIPT: Final = "weft.receipt"  # the one reserved type that is mail (RTE-006)
STEPS_MAX: Final = 16  # messages in a row, each caused by the one before (RTE-005)
TTL_MAX: Final = 255
KIND_MAX: Final = 32  # characters of a kind of destination
NAME_MAX: Final = 64
MAIL_BYTES_MAX: Final = MULTIPART_BYTES_MAX - HEADER_BYTES_MAX

_encode = msgspec.msgpack.Encoder().encode
_decode_map = msgspec.msgpack.Decoder(dict[str, Any]).decode
_decode_note: Final[Callable[[bytes], LostRecord | EraRecord]] = msgspec.msgpack.Decoder(LostRecord | EraRecord).decode


class Uncarriable(Exception):
    """A record or mail of our own that no hop can carry; `why` goes into the announcement of its loss."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def to_item(record: Carried, me: bytes, wall: int = 0) -> tuple[HopItem, list[bytes]]:
    """The item and payload frames by which node `me` sends a record on at `wall`; Uncarriable `too-big` or `ttl`."""
    if type(record) is StreamRecord:
        return _stream_item(record, me) if record.stream != OUTBOX else mail_item(mails.of_record(record), me, wall)
    if type(record) is LostRecord:
        mid = (record.origin, record.era, record.first)
        return HopItem(mid=mid, type=LOST, via=(me,), depth=0, ts=0), [_encode(record)]
    assert type(record) is EraRecord, record
    mid = (record.origin, record.era, 1)
    return HopItem(mid=mid, type=ERA, via=(me,), depth=0, ts=0), [_encode(record)]


def _stream_item(record: StreamRecord, me: bytes) -> tuple[HopItem, list[bytes]]:
    attributes = record.attributes.copy()
    via = (*attributes.pop("via", ()), me)
    name = TYPES.get(record.stream)
    if name is None:
        name = record.key if is_type(record.key) and not record.key.startswith("weft.") else MESSAGE
    if record.key != name:
        attributes["key"] = record.key
    if len(via) > 1:
        attributes["rx"] = record.received
    more = _encode(attributes)
    if len(record.payload) > PAYLOAD_BYTES_MAX or len(more) > ATTRIBUTES_BYTES_MAX:
        raise Uncarriable("too-big")
    if len(via) > VIA_MAX:
        raise Uncarriable("ttl")
    mid = (record.origin, record.era, record.sequence)
    return HopItem(mid=mid, type=name, via=via, depth=0, ts=record.at, n=2), [record.payload, more]


def mail_item(mail: Mail, me: bytes, wall: int = 0) -> tuple[HopItem, list[bytes]]:
    """The item and payload frames by which node `me` sends mail on; Uncarriable `too-big` or `ttl`.

    Mail that nobody wants any more at `wall` keeps its number and its identity, and nothing else (CHN-041).
    """
    if len(mail.via) >= hops_max(mail.to):
        raise Uncarriable("ttl")
    if sum(map(len, mail.frames)) > MAIL_BYTES_MAX or max(map(len, mail.frames)) > PAYLOAD_BYTES_MAX:
        raise Uncarriable("too-big")
    frames = [] if is_past(mail.exp, wall) else list(mail.frames)
    item = HopItem(
        mid=mail.mid,
        type=mail.type,
        to=list(mail.to),
        via=(*mail.via, me),
        depth=mail.depth,
        ts=mail.at,
        fmt=mail.fmt,
        exp=mail.exp,
        n=len(frames),
        rcpt=mail.rcpt,
    )
    return item, frames


def hops_max(to: Any) -> int:
    """How many nodes may send mail on to that destination (RTE-002, RTE-004).

    >>> hops_max(("PARENTSOF",)), hops_max(("PARENTSOF", None, 1))
    (64, 1)
    """
    ttl = to[2] if len(to) > 2 and to[2] is not None else TTL_MAX
    return min(ttl, VIA_MAX)


def is_past(exp: int, wall: int) -> bool:
    """Whether mail that expires at `exp` is not wanted at `wall` any more; 0: it never expires."""
    return 0 < exp <= wall


def is_mail(record: object) -> TypeGuard[StreamRecord]:
    """Whether a record of the journal is mail under way, going up or waiting: never for the lake."""
    return type(record) is StreamRecord and record.stream in MAIL_STREAMS


def gone_item(me: bytes, era: int, number: int) -> HopItem:
    """An item that keeps a hop number whose record is not here any more (CHN-041)."""
    return HopItem(mid=(me, era, number), type=GONE, via=(me,), depth=0, ts=0, n=0)


def is_over(item: HopItem) -> bool:
    """Whether an item only keeps its hop number: its record is gone, or its message has expired (CHN-041).

    Any other item has 1 to 16 frames (CHN-007).
    """
    return item.n == 0 and (item.exp > 0 or item.type == GONE)


def to_record(item: HopItem, frames: list[bytes], wall: int) -> Carried:
    """The record of an item received at `wall` (nanoseconds); PeerError `bad-record` or `unimplemented`.

    Mail may also be refused as `bad-type`, `loop` (RTE-005) or `ttl` (RTE-004). The payload is taken as it is; only the map of attributes is decoded. What comes out can be written into a journal:
    nothing that a peer says may stop a node at its next write.
    """
    record: Carried
    if item.to is not None:
        record = mails.to_record(_mail(item, frames), INBOX, wall)
    else:
        record = _note(item, frames) if item.type in _NOTES else _stream_record(item, frames, wall)
    if not journal.is_sound(record):
        raise PeerError("bad-record", "over a limit of journals")
    return record


def _mail(item: HopItem, frames: list[bytes]) -> Mail:
    origin, era, sequence = item.mid
    if type(origin) is not bytes or era is None or not 1 <= sequence < NUMBER_MAX or not is_identity(origin, era):
        raise PeerError("bad-record", "not the identity of a message")
    if abs(item.ts) > INSTANT_MAX or item.exp > NUMBER_MAX:
        raise PeerError("bad-record", "time")
    if item.type.startswith("weft.") and item.type != RECEIPT:
        raise PeerError("bad-type", item.type)
    to = _destination(item.to)
    if item.depth > STEPS_MAX:
        raise PeerError("loop", f"depth {item.depth}")
    if len(item.via) > hops_max(to):
        raise PeerError("ttl", f"after {len(item.via)} hops")
    return Mail(
        origin=origin,
        era=era,
        sequence=sequence,
        type=item.type,
        frames=tuple(frames),
        to=to,
        via=item.via,
        depth=item.depth,
        at=item.ts,
        fmt=item.fmt,
        exp=item.exp,
        rcpt=item.rcpt,
    )


def _destination(to: Any) -> tuple[Any, ...]:
    """`[kind, node?, ttl?]` within its limits; which kinds there are is for the node that receives it."""
    if type(to) not in (list, tuple) or not 1 <= len(to) <= 3:
        raise PeerError("bad-record", "destination")
    kind, node, ttl = (*to, None, None)[:3]
    is_node = node is None or (
        len(node) == NODE_ID_BYTES if type(node) is bytes else type(node) is str and 1 <= len(node) <= NAME_MAX
    )
    is_kind = type(kind) is str and 1 <= len(kind) <= KIND_MAX
    is_ttl = ttl is None or (type(ttl) is int and 0 <= ttl <= TTL_MAX)
    if not (is_kind and is_node and is_ttl):
        raise PeerError("bad-record", "destination")
    return tuple(to)


def _stream_record(item: HopItem, frames: list[bytes], wall: int) -> StreamRecord:
    if item.n > 2:
        raise PeerError("unimplemented", f"{item.n} payload frames")
    origin, era, sequence = item.mid
    if sequence < 1 or not is_identity(origin, era):
        raise PeerError("bad-record", "not an identity")
    if abs(item.ts) > INSTANT_MAX:
        raise PeerError("bad-record", "time")
    attributes = _attributes(frames[1]) if item.n == 2 else {}
    received = attributes.pop("rx", wall)
    rows = attributes.get("n", 1)
    if type(received) is not int or not 0 <= received <= INSTANT_MAX:
        raise PeerError("bad-record", "rx")
    if type(rows) is not int or not 1 <= rows <= ROWS_MAX:
        raise PeerError("bad-record", "attributes")
    if sequence + rows > NUMBER_MAX:
        raise PeerError("bad-record", "sequence over 64 bits")
    stream = _STREAMS.get(item.type)
    key = attributes.pop("key", item.type)
    if type(key) is not str:
        raise PeerError("bad-record", "key")
    attributes["via"] = list(item.via)
    kind = Stream.MESSAGES if stream is None else stream
    return StreamRecord(int(kind), origin, era, sequence, item.ts, received, key, frames[0], attributes)


def _attributes(frame: bytes) -> dict[str, Any]:
    if len(frame) > ATTRIBUTES_BYTES_MAX:
        raise PeerError("bad-record", "attributes over 62 KiB")
    try:
        attributes = _decode_map(frame)
    except UNREADABLE:
        raise PeerError("bad-record", "attributes", frame) from None
    if not all(_is_shallow(value, DEPTH_MAX) for value in attributes.values() if type(value) in _NESTED):
        raise PeerError("bad-record", "attributes are nested too deeply")
    return attributes


def _is_shallow(value: Any, depth: int) -> bool:
    """Whether nothing lies deeper than `depth` in a decoded value."""
    if type(value) not in _NESTED:
        return True
    inner = [*value, *value.values()] if type(value) is dict else value
    return depth > 0 and all(_is_shallow(item, depth - 1) for item in inner)


def _note(item: HopItem, frames: list[bytes]) -> LostRecord | EraRecord:
    if item.n != 1 or len(frames[0]) > ATTRIBUTES_BYTES_MAX:
        raise PeerError("bad-record", item.type)
    try:
        note = _decode_note(frames[0])
    except UNREADABLE:
        raise PeerError("bad-record", item.type, frames[0]) from None
    if type(note) is LostRecord:
        if not 1 <= note.first <= note.last:
            raise PeerError("bad-record", "an empty range")
        numbers = (note.first, note.last)
    else:
        assert type(note) is EraRecord, note
        numbers = (note.era_before, note.last_before)
    if not is_identity(note.origin, note.era) or not 1 <= note.stream <= STREAM_MAX or note.stream in MAIL_STREAMS:
        raise PeerError("bad-record", item.type)
    if not all(0 <= number <= NUMBER_MAX for number in numbers):
        raise PeerError("bad-record", item.type)
    return note


def is_identity(origin: Any, era: int | None) -> bool:
    """Whether this can be the origin of records: one that version vectors and the lake give back as it is."""
    if not isinstance(origin, _ORIGINS) or (era is not None and not 0 <= era <= NUMBER_MAX):
        return False
    return is_canonical(origin, era)
