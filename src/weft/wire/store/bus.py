"""Updates, infos and pings as bytes: what store nodes send to all.

A payload is one map, or a batch: several of one topic in a row (LNK-003). A typed decoder reads it first. What that
does not accept is read key by key: this ignores unknown keys, and names the mistake in a known one.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgpack
import msgspec
from msgspec import UNSET, Raw, UnsetType

from weft.base.changes import Chain, Event, Link, Path
from weft.base.errors import OurFault, PeerError
from weft.base.ranges import RangeSet
from weft.wire.store import pack
from weft.wire.store.messages import Info, Message, Ping, Ticks, Update
from weft.wire.store.path import BODY_BYTES_MAX, ELEMENTS_MAX, extension, pack_path, unpack_path
from weft.wire.store.ranges import TICK_MAX, of_wire, ticks_to_wire

NAME_BYTES_MAX: Final = 64  # STO-001
LINKS_MAX: Final = 64  # of a chain (STO-006)
NODES_MAX: Final = 4_096  # in one message: as many as a fabric ever has
VALUE_BYTES_MAX: Final = 1 << 20  # of a member; beyond, it is left out (STO-005)
UPDATE_BYTES_MAX: Final = 16 << 20  # more than a value: head and chain are read even if the value is too large
INFO_BYTES_MAX: Final = 4 << 20
PING_BYTES_MAX: Final = 64 << 10
BATCH_MESSAGES_MAX: Final = 1_000  # LNK-003
BATCH_BYTES_MAX: Final = 256 << 10
USER_CHARACTERS_MAX: Final = 256
KEYS_MAX: Final = 64  # of a message, known or not

Name = Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)]
Tick = Annotated[int, msgspec.Meta(ge=0, le=TICK_MAX)]
User = Annotated[str, msgspec.Meta(max_length=USER_CHARACTERS_MAX)]
Tops = Annotated[dict[Name, Tick | None], msgspec.Meta(max_length=NODES_MAX)]
Ranges = Annotated[dict[Name, list[int | tuple[int, int]]], msgspec.Meta(max_length=NODES_MAX)]
Names = Annotated[list[Name], msgspec.Meta(max_length=NODES_MAX)]
T = TypeVar("T")


class _Link(msgspec.Struct):  # tidy: a chain is as deep as the decoder's recursion goes, and then counted
    """A link and those behind it: `prev` null ends the chain, none cuts it."""

    node: Name
    tick: Tick | UnsetType = UNSET
    prev: "_Link | UnsetType | None" = UNSET


class _Update(msgspec.Struct, forbid_unknown_fields=True):
    node: Name | UnsetType = UNSET
    tick: Tick | UnsetType = UNSET
    prev: _Link | UnsetType | None = UNSET
    path: Raw | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    tock: Tick | UnsetType = UNSET
    at: float | UnsetType = UNSET
    by: User | UnsetType = UNSET
    until: float | UnsetType = UNSET
    ack: bool | UnsetType = UNSET
    chain: _Link | UnsetType = UNSET


class _Resent(msgspec.Struct):
    """An update that answers `missing`, in the order of keys that real servers have."""

    value: Raw | UnsetType
    chain: _Link
    tock: int
    path: msgspec.msgpack.Ext
    node: str
    tick: int
    at: float | UnsetType
    by: str | UnsetType
    until: float | UnsetType = UNSET


class _Info(msgspec.Struct, forbid_unknown_fields=True):
    node: Name | UnsetType = UNSET
    tick: Tick | UnsetType | None = UNSET
    """None: a real server that has not changed anything yet."""
    tock: Tick | UnsetType = UNSET
    ticks: Tops | UnsetType = UNSET
    missing: Ranges | UnsetType = UNSET
    known: Ranges | UnsetType = UNSET
    superseded: Ranges | UnsetType = UNSET
    deleted: Ranges | UnsetType = UNSET
    have: Ranges | UnsetType = UNSET
    node_drop: Names | UnsetType = UNSET
    reason: _Link | UnsetType | None = UNSET
    prev: _Link | UnsetType | None = UNSET


class _Ping(msgspec.Struct, forbid_unknown_fields=True):
    node: Name | UnsetType = UNSET
    tick: Tick | UnsetType = UNSET
    prev: _Link | UnsetType | None = UNSET
    tock: Tick | UnsetType = UNSET
    t: Raw | UnsetType = UNSET


# Out

_encode: Final = msgspec.msgpack.Encoder().encode


def encode(message: Message) -> bytes:
    """The bytes of a message, keys in our order (COD-003). OurFault for a value that was left out: it cannot be sent again."""
    return _ENCODERS[type(message)](message)


def _encode_update(update: Update) -> bytes:
    event, sender = update.event, update.sender
    raw = event.value
    if raw == pack.LEFT_OUT:
        raise OurFault("an event whose value was left out cannot be repeated")
    value = UNSET if raw is None else Raw(raw)
    path = msgspec.msgpack.Ext(pack.PATH, pack_path(event.path))
    at = UNSET if event.at is None else event.at
    by = event.by or UNSET
    until = UNSET if event.until is None else event.until
    head = _nested(event.chain)
    if sender is not None:
        return _encode(_Resent(value, head, event.tock, path, sender[0], sender[1], at, by, until))
    ack = True if update.wants_ack else UNSET
    return _encode(_Original(head.node, head.tick, head.prev, path, value, event.tock, at, by, until, ack))


class _Original(msgspec.Struct):
    """An update as its author sends it."""

    node: str
    tick: int | UnsetType
    prev: _Link | UnsetType | None
    path: msgspec.msgpack.Ext
    value: Raw | UnsetType
    tock: int
    at: float | UnsetType
    by: str | UnsetType
    until: float | UnsetType
    ack: bool | UnsetType


def _nested(chain: Chain) -> _Link:
    prev: _Link | UnsetType | None = UNSET if chain.is_cut else None
    for node, tick in reversed(chain.links):
        prev = _Link(node, tick, prev)
    assert isinstance(prev, _Link), "a chain has a head"
    return prev


def _encode_info(info: Info) -> bytes:
    fields: dict[str, Any] = {"node": info.node, "tick": info.tick, "tock": info.tock}
    if info.ticks is not None:
        fields["ticks"] = info.ticks
    for key in ("missing", "known", "deleted", "have"):
        if (ticks := getattr(info, key)) is not None:
            fields[key] = ticks_to_wire(ticks)
    if info.node_drop is not None:
        fields["node_drop"] = info.node_drop
    for key in ("reason", "prev"):
        if (chain := getattr(info, key)) is not None:
            fields[key] = _nested(chain)
    return _encode(fields)


def _encode_ping(ping: Ping) -> bytes:
    head = _nested(ping.chain)
    return _encode(_Ping(head.node, head.tick, head.prev, ping.tock))


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    Update: _encode_update,
    Info: _encode_info,
    Ping: _encode_ping,
}


# In


class _Kind(NamedTuple):
    """How the messages of a topic are read."""

    decode: Callable[[bytes], Any]
    build: Callable[[Any], Message]
    bytes_max: int
    keys: tuple[str, ...]


_FAULTS: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def decode(topic: str, payload: bytes) -> list[Message]:
    """The messages of a payload: one, or those of a batch, of `update`, `info` or `ping` (`wping`).

    PeerError with a code of COD-007, and then all of the payload is refused.
    """
    kind = _KINDS.get(topic)
    if kind is None:
        raise PeerError("bad-type", f"no topic {topic!r}"[:100])
    if len(payload) > kind.bytes_max:
        raise PeerError("too-large", f"{len(payload)} bytes", payload)
    if len(payload) <= VALUE_BYTES_MAX:
        try:
            raw = kind.decode(payload)
        except _FAULTS:
            pass  # key by key, below
        else:
            return [_message(kind, raw, payload)]
    parts = _parts(payload)
    if len(parts) == 1:
        return [_decode_by_keys(kind, payload)]
    if len(payload) > BATCH_BYTES_MAX:
        raise PeerError("too-large", f"a batch of {len(parts)} messages, {len(payload)} bytes")
    return [_decode_one(kind, part) for part in parts]


def _decode_one(kind: _Kind, part: bytes) -> Message:
    try:
        raw = kind.decode(part)
    except _FAULTS:
        return _decode_by_keys(kind, part)
    return _message(kind, raw, part)


def _message(kind: _Kind, raw: Any, data: bytes) -> Message:
    message = kind.build(raw)
    if not _is_plain(raw, message, data):
        pack.check_sound(data)
    return message


def _is_plain(raw: Any, message: Message, payload: bytes) -> bool:
    """Whether no further check is needed: no key stands twice, and the value cannot be wrong.

    That is so if there are six keys and no chain behind them, or if the bytes are those that this node itself would
    send.
    """
    if type(raw) is not _Update or isinstance(raw.value, UnsetType) or not _is_sure(message.event.value):  # type: ignore[union-attr]  # an update
        return False
    return (payload[0] == 0x86 and raw.prev is None) or _encode_update(message) == payload  # type: ignore[arg-type]  # same


def _is_sure(value: bytes | None) -> bool:
    """Whether a value cannot be wrong: a number, a constant, plain text."""
    return value is not None and value != b"" and (value[0] in pack.SCALARS or pack.is_plain_text(value))


def _parts(payload: bytes) -> list[bytes]:
    """The objects of a payload, maps all of them if there are several; PeerError `malformed`."""
    parts: list[bytes] = []
    unpacker = pack.unpacker(payload)
    start = 0
    while start < len(payload):
        _skip(unpacker)
        end = unpacker.tell()
        parts.append(payload[start:end])
        if len(parts) > 1 and not (is_map(parts[0]) and is_map(parts[-1])):
            raise PeerError("malformed", "bytes after the message", payload)
        if len(parts) > BATCH_MESSAGES_MAX:
            raise PeerError("too-large", "too many messages", payload)
        start = end
    if not parts:
        raise PeerError("malformed", "nothing at all")
    return parts


def _skip(unpacker: Any) -> None:
    try:
        unpacker.skip()
    except (ValueError, msgpack.UnpackException) as error:
        raise PeerError("malformed", str(error) or "it ends too early") from None


def is_map(data: bytes) -> bool:
    return 0x80 <= data[0] < 0x90 or data[0] in (0xDE, 0xDF)


def _decode_by_keys(kind: _Kind, data: bytes) -> Message:
    """The message of one whole object that the typed decoder did not take, or why not."""
    if not is_map(data):
        raise PeerError("bad-type", "a message is a map", data)
    pairs = _pairs(data)
    known = {key: raw for key, raw in pairs.items() if key in kind.keys}
    try:
        fields = kind.decode(_joined(known))
    except _FAULTS:
        raise _fault(kind, known) from None
    message = kind.build(fields)
    for raw in pairs.values():
        pack.check_sound(raw)
    return message


def _pairs(data: bytes) -> dict[Any, bytes]:
    """Keys and raw values of a map; a value that is too large is left out."""
    unpacker = pack.unpacker(data)
    pairs: dict[Any, bytes] = {}
    count = unpacker.read_map_header()
    if count > KEYS_MAX:
        raise PeerError("too-large", f"{count} keys")
    for _ in range(count):
        start = unpacker.tell()
        _skip(unpacker)
        middle = unpacker.tell()
        _skip(unpacker)
        key, raw = pack.unpack(data[start:middle]), data[middle : unpacker.tell()]
        if isinstance(key, (list, dict)) or key in pairs:
            raise PeerError("malformed", "a key that stands twice, or is none")
        pairs[key] = _TOO_LARGE if key == "value" and len(raw) > VALUE_BYTES_MAX else raw
    return pairs


_TOO_LARGE: Final = extension(127, b"left out")


def _joined(fields: dict[str, bytes]) -> bytes:
    return bytes((0x80 + len(fields),)) + b"".join(_encode(key) + raw for key, raw in fields.items())


def _fault(kind: _Kind, fields: dict[str, bytes]) -> PeerError:
    for key, raw in fields.items():
        try:
            kind.decode(_joined({key: raw}))
        except _FAULTS as error:
            return PeerError("bad-chain" if key in ("prev", "chain", "reason") else "bad-field", str(error))
    return PeerError("malformed", "keys that do not go together")


def _required(value: T | UnsetType, key: str) -> T:
    if isinstance(value, UnsetType):
        raise PeerError("missing-field", key)
    return value


@lru_cache(maxsize=8_192)
def is_name(text: str) -> bool:
    """Whether a node may have that name (STO-001)."""
    return 0 < len(text.encode()) <= NAME_BYTES_MAX and text.isprintable() and " " not in text


def _name(value: str | UnsetType, key: str = "node") -> str:
    name = _required(value, key)
    if not is_name(name):
        raise PeerError("bad-field", f"{name[:80]!r} is no name")
    return name


def _build_update(raw: _Update) -> Update:
    path, tock = _required(raw.path, "path"), _required(raw.tock, "tock")
    node, tick = _name(raw.node), _required(raw.tick, "tick")
    sender: Link | None = None
    if isinstance(raw.chain, _Link):
        sender = (node, tick)
        chain = _chain(raw.chain)
    elif tick == 0:
        raise PeerError("bad-field", "the tick of a change is 1 or more")
    elif raw.prev is None:
        chain = Chain(((node, tick),))
    else:
        chain = _chain(_Link(node, tick, raw.prev))
    at = None if isinstance(raw.at, UnsetType) else raw.at
    until = None if isinstance(raw.until, UnsetType) else raw.until
    if (at is not None and not math.isfinite(at)) or (until is not None and not math.isfinite(until)):
        raise PeerError("bad-field", "an instant that is no number")
    value = None if isinstance(raw.value, UnsetType) else bytes(raw.value)
    by = "" if isinstance(raw.by, UnsetType) else raw.by
    event = Event(chain, tock, _path(bytes(path)), pack.LEFT_OUT if value == _TOO_LARGE else value, at, by, until)
    return Update(event, sender, raw.ack is True)


def _chain(head: _Link) -> Chain:
    """The chain of a change: each node once, each tick at least 1 (STO-006)."""
    links, is_cut = _links(head)
    if len(links) == 1 and links[0][1] >= 1:
        return Chain(links, is_cut)
    if len({node for node, _ in links}) < len(links) or any(tick < 1 for _, tick in links):
        raise PeerError("bad-chain", "a node twice, or a tick of 0")
    return Chain(links, is_cut)


def _links(head: _Link | UnsetType | None) -> tuple[tuple[Link, ...], bool]:
    links: list[Link] = []
    if isinstance(head, _Link) and head.prev is None and not isinstance(head.tick, UnsetType) and is_name(head.node):
        return ((head.node, head.tick),), False
    while isinstance(head, _Link):
        if not is_name(head.node) or len(links) == LINKS_MAX:
            raise PeerError("bad-chain", "a name that is none, or too many links")
        links.append((head.node, 0 if isinstance(head.tick, UnsetType) else head.tick))
        head = head.prev
    return tuple(links), head is UNSET


def _ping_chain(head: _Link | UnsetType | None) -> Chain | None:
    """A chain of pings: names may repeat, a tick that is not there is 0 (R6)."""
    if not isinstance(head, _Link):
        return None
    return Chain(*_links(head))


def _path(raw: bytes) -> Path:
    """The path of an extension or a plain array (COD-002); PeerError `bad-path`."""
    if len(raw) > BODY_BYTES_MAX + 6:
        raise PeerError("bad-path", f"{len(raw)} bytes")
    head = raw[0]
    if (at := pack.body_at(raw)) and raw[at - 1] == pack.PATH:
        body = raw[at:]
    elif 0x90 <= head < 0xA0 or head in (0xDC, 0xDD):
        body = raw[{0xDC: 3, 0xDD: 5}.get(head, 1) :]
    else:
        raise PeerError("bad-path", "neither a path nor an array", raw)
    path = unpack_path(body)
    if len(body) > BODY_BYTES_MAX or len(path) > ELEMENTS_MAX or None in path[1:]:
        raise PeerError("bad-path", "too long, or None inside", raw)
    return path


def _build_info(raw: _Info) -> Info:
    node, tick = _required(raw.node, "node"), 0 if raw.tick is None else _required(raw.tick, "tick")
    is_void = node == "" and tick == 0 and raw.deleted is not UNSET
    if not is_void:
        _name(node)
    known, superseded = _ticks(raw.known), _ticks(raw.superseded)
    drop = None if isinstance(raw.node_drop, UnsetType) else tuple(_name(name, "node_drop") for name in raw.node_drop)
    return Info(
        node=node,
        tick=tick,
        tock=_required(raw.tock, "tock"),
        ticks=None if isinstance(raw.ticks, UnsetType) else _tops(raw.ticks),
        missing=_ticks(raw.missing),
        known=_both(known, superseded),
        deleted=_ticks(raw.deleted),
        have=_ticks(raw.have),
        node_drop=drop,
        reason=_ping_chain(raw.reason),
        prev=_ping_chain(raw.prev),
    )


def _tops(tops: dict[str, int | None]) -> dict[str, int]:
    """Real servers say null for a node of which they know nothing but the name."""
    return {_name(name): top for name, top in tops.items() if top is not None}


def _ticks(ranges: Any) -> Ticks | None:
    return None if ranges is UNSET else {_name(name): of_wire(ticks) for name, ticks in ranges.items()}


def _both(known: Ticks | None, superseded: Ticks | None) -> Ticks | None:
    """`superseded` is `known` under another name."""
    if known is None or superseded is None:
        return known if superseded is None else superseded
    return {name: known.get(name, RangeSet()) | superseded.get(name, RangeSet()) for name in {**known, **superseded}}


def _build_ping(raw: _Ping) -> Ping:
    if raw.t is not UNSET:
        raise PeerError("wrong-dialect", "an actor's message")
    tock, node = _required(raw.tock, "tock"), _name(raw.node)
    chain = _ping_chain(_Link(node, raw.tick, raw.prev))
    assert chain is not None
    return Ping(chain, tock)


def _kind(kind: type, build: Callable[[Any], Message], bytes_max: int) -> _Kind:
    return _Kind(msgspec.msgpack.Decoder(kind).decode, build, bytes_max, kind.__struct_fields__)  # type: ignore[attr-defined]  # a Struct


_PING: Final = _kind(_Ping, _build_ping, PING_BYTES_MAX)
_KINDS: Final = {
    "update": _kind(_Update, _build_update, UPDATE_BYTES_MAX),
    "info": _kind(_Info, _build_info, INFO_BYTES_MAX),
    "ping": _PING,
    "wping": _PING,
}
