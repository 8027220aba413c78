"""Node links: what child and parent say to each other (CHN-030..043).

    child  = hello *( hop / hack / beat ) [bye]
    parent = ( welcome / refuse ) *( hack / hop / beat ) [bye]

A `hop` carries up to 256 items, numbered `s`, `s + 1` … in the stream of an era; the payload frames of all items
follow the header in order, `n` of them per item. `hack` answers with what is durable at the receiver; or, of a stream
that is volatile (`mem`), with what has arrived. Volatile streams have eras of their own. A child
sends one beside its durable stream; a parent sends nothing but a volatile one.

Beyond the table of the specification there are five keys, which other readers ignore as unknown: `safe` (in `hack`
and `welcome`) is the hop number up to which all is durable at the root; `root` (beside `safe`) is which root that is, its
node id and epoch, and a child believes only the root of record (FLD-012); `back` (in `hack`) asks the sender to go on
behind `upto`; `had` (in `hello`) names the parent that welcomed this start last, and what it had acknowledged; `sum` is
the last key of every header that a node writes, always in five bytes: the CRC-32 of the header before that key, and of
each payload frame behind its length (four bytes, the highest first). A message with a wrong sum is refused (FLD-030);
a message without one is accepted, since other programs may write none.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.base.errors import PeerError
from weft.base.identity import NODE_ID_BYTES
from weft.wire.multipart import BAD_SUM, ITEM_FRAMES_MAX, MESSAGES_MAX, Dialect, is_altered, sealed, write

VERSION: Final = 1
VIA_MAX: Final = 64
NUMBER_MAX: Final = (1 << 64) - 1

Number = Annotated[int, Meta(ge=0)]
NodeId = Annotated[bytes, Meta(min_length=NODE_ID_BYTES, max_length=NODE_ID_BYTES)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(max_length=256)]

_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TYPES_KNOWN_MAX: Final = 10_000


class Hello(msgspec.Struct, tag_field="op", tag="hello", omit_defaults=True, frozen=True, kw_only=True):
    """A node asks to be the child: numbers `first` to before `next` of its era are given and not yet safe."""

    v: int
    role: Text
    name: Name
    id: NodeId
    era: Number
    first: Annotated[int, Meta(ge=1)]
    next: Annotated[int, Meta(ge=1)]
    had: tuple[NodeId, Number] | None = None
    """The parent that welcomed this start last, and how much of this era it has acknowledged."""


class Welcome(msgspec.Struct, tag_field="op", tag="welcome", omit_defaults=True, frozen=True, kw_only=True):
    """The parent takes the child: send behind `upto`, at most `win` items and `winb` bytes unacknowledged."""

    v: int
    node: NodeId
    name: Name
    addr: Text
    boot: Number
    level: Text
    parent: Text | None
    children: Annotated[list[Name], Meta(max_length=MESSAGES_MAX)]
    credit: Number
    credit_bytes: Number = msgspec.field(name="bytes")
    beat: Number
    """Milliseconds of silence after which either side sends `beat`."""
    dead: Number
    """Milliseconds of silence after which either side gives the other up."""
    era: Number
    first: Number
    next: Number
    upto: Number
    win: Number
    winb: Number
    safe: Number | None = None
    root: tuple[NodeId, Number] | None = None
    """At which root that is safe: node id and epoch."""


class Refuse(msgspec.Struct, tag_field="op", tag="refuse", omit_defaults=True, frozen=True):
    """The parent does not take the child: `bad-hello`, `version`, `denied` or `busy`; then nothing more."""

    why: Text
    text: Text = ""


class HopItem(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):
    """One message of a hop stream. `n` 0: it keeps its number, but there is nothing to deliver (CHN-041)."""

    mid: tuple[Any, int | None, Number]
    """Origin (16 bytes, or text for streams whose seed names nodes so), era or nil, sequence."""
    type: str
    to: Any = None
    """Destination `[kind, node?, ttl?]`; absent: up, as all records of a journal."""
    via: Annotated[tuple[NodeId, ...], Meta(max_length=VIA_MAX)]
    """The nodes that have transmitted it, the origin first."""
    depth: Number
    ts: int
    """The origin's wall clock, nanoseconds."""
    fmt: Text = "raw"
    exp: Number = 0
    n: Annotated[int, Meta(ge=0, le=ITEM_FRAMES_MAX)] = 1
    rcpt: bool = False
    """Its origin wants a `weft.receipt` from the node that it is for (RTE-006)."""


class HopHeader(msgspec.Struct, tag_field="op", tag="hop", omit_defaults=True, frozen=True, kw_only=True):
    """The header frame of a `Hop`."""

    era: Number
    mem: bool = False
    s: Annotated[int, Meta(ge=1)]
    m: Annotated[list[HopItem], Meta(min_length=1, max_length=MESSAGES_MAX)]


class Hop(msgspec.Struct, frozen=True):
    """Items `s`, `s + 1` … of an era's stream; `frames` are the payload frames of all items, one after another."""

    era: int
    s: int
    m: list[HopItem]
    frames: list[bytes]
    mem: bool = False
    """A volatile stream: what waited too long leaves holes."""

    def numbered(self) -> Iterator[tuple[int, HopItem, list[bytes]]]:
        """Each item with its hop number and its own frames."""
        at = 0
        for number, item in enumerate(self.m, self.s):
            yield number, item, self.frames[at : at + item.n]
            at += item.n


class Hack(msgspec.Struct, tag_field="op", tag="hack", omit_defaults=True, frozen=True, kw_only=True):
    """All items up to `upto` of that era's stream are durable here, or refused for good in `no`."""

    era: Number
    upto: Number
    win: Number
    winb: Number
    no: list[tuple[Number, Text]] = []
    safe: Number | None = None
    """Durable at the root up to this hop number; absent: the receiver does not tell, so `upto` is all it promises."""
    root: tuple[NodeId, Number] | None = None
    """At which root that is safe: node id and epoch."""
    back: bool = False
    """Something is missing behind `upto`: go on from there."""


class Beat(msgspec.Struct, tag_field="op", tag="beat", frozen=True):
    """Still here."""


class Bye(msgspec.Struct, tag_field="op", tag="bye", omit_defaults=True, frozen=True):
    """An orderly end."""

    why: Text = ""


Message = Hello | Welcome | Refuse | Hop | Hack | Beat | Bye

_DIALECT: Final = Dialect(Hello, Welcome, Refuse, HopHeader, Hack, Beat, Bye)
_types_known: dict[str, None] = {}


def encode(message: Message) -> list[bytes]:
    """The frames of a message: header, then payload frames unchanged."""
    if type(message) is Hop:
        header = HopHeader(era=message.era, mem=message.mem, s=message.s, m=message.m)
        return [write(header), *message.frames]
    return [write(message)]


def seal(message: Message) -> list[bytes]:
    """The frames of a message as a node says it: what is altered on the way is noticed (FLD-030)."""
    header, *payload = encode(message)
    return [sealed(header, payload), *payload]


def decode(frames: list[bytes]) -> Message:
    """The message of a multipart; PeerError `bad-sum`, `bad-header`, `unknown-op`, `bad-frames` or `bad-type`."""
    if frames and is_altered(frames[0], frames[1:]):
        raise PeerError(BAD_SUM, "altered on the way", frames[0])
    header = _DIALECT.read(frames)
    if type(header) is HopHeader:
        return _hop(header, frames)
    if len(frames) != 1:
        raise PeerError("bad-frames", "payload frames that nothing announces", frames[0])
    message: Message = header
    return message


def _hop(header: HopHeader, frames: list[bytes]) -> Hop:
    announced = 0
    for item in header.m:
        announced += item.n
        if item.type not in _types_known:
            _learn_type(item.type)
        origin = item.mid[0]
        if type(origin) is not bytes and not is_text_origin(origin):
            raise PeerError("bad-header", "an origin is 16 bytes or at most 128 bytes of text", frames[0])
    if announced != len(frames) - 1:
        raise PeerError("bad-frames", f"{announced} payload frames announced, {len(frames) - 1} came", frames[0])
    if header.s + len(header.m) > NUMBER_MAX:
        raise PeerError("bad-header", "hop numbers over 64 bits", frames[0])
    return Hop(header.era, header.s, header.m, frames[1:], header.mem)


def is_type(text: str) -> bool:
    """Whether `text` may name a message type: 1 to 64 of `[a-z0-9._-]`, the first `[a-z0-9]` (CHN-002)."""
    return _TYPE.fullmatch(text) is not None


def is_text_origin(origin: object) -> bool:
    """Whether `origin` names a node as text of 1 to 128 bytes."""
    return isinstance(origin, str) and 1 <= len(origin.encode()) <= 128


def _learn_type(text: str) -> None:
    if not is_type(text):
        raise PeerError("bad-type", "", text.encode())
    if len(_types_known) >= _TYPES_KNOWN_MAX:
        _types_known.clear()
    _types_known[text] = None
