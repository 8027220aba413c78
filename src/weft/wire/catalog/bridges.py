"""What two brokers send each other over a bridge: bodies of `o=o` (BRI-002).

message = "" "o=o" time header *payload                     ; time: float64, little endian
header  = JSON of one of these, told apart by its `type`

The payload of `snapshot` and `change` are offers, a frame each; of `pub`, `call`, `return`, `ask` and `answer` the
frames that are carried. `index` counts the entries that were sent over this connection, so a gap shows with the next
change or beat; `epoch` is that of the broker's run.

The last name of every header is `sum`, of all frames from the command on (`wire/jsontext.py`; FLD-030). Brokers of earlier
versions neither say nor read it; who has said it once over a connection, or `sums` in its greeting, says it in every message.
"""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE, PeerError
from weft.wire import jsontext
from weft.wire.catalog import commands
from weft.wire.catalog.messages import BRIDGE, Message
from weft.wire.multipart import BAD_SUM

VERSION: Final = 1
FRAMES_MAX: Final = 160
"""Of a message: a part of a snapshot has up to 128 offers."""
HEADER_BYTES_MAX: Final = 16 << 10
HOPS_MAX: Final = 8
_HEADER_AT: Final = 2  # behind the command and the time

Net = Annotated[str, Meta(pattern="^[a-z0-9-]{1,32}$")]
Name = Annotated[str, Meta(max_length=255)]
Epoch = Annotated[str, Meta(pattern="^[0-9a-f]{1,32}$")]
COUNT_MAX: Final = 1 << 53  # what every reader of JSON takes exactly
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Path = Annotated[tuple[Net, ...], Meta(max_length=16)]
Topic = Annotated[str, Meta(max_length=1024)]


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello", tag_field="type"):
    """Who the sender is, and how much may be sent to it unacknowledged; sent again, it asks for a new snapshot."""

    v: int
    net: Net
    broker: Epoch
    messages: Count
    bytes: Count
    sums: bool = False
    """Every message of the sender has a checksum, this one too: no single bit can take away both names."""


class Refuse(msgspec.Struct, frozen=True, tag="refuse", tag_field="type"):
    """No bridge: `same-net`, `unsupported`, `limit`; `linked`: both have dialled, and the other connection stays."""

    code: Name


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, tag="snapshot", tag_field="type"):
    """All entries that are exported, in parts; the broker exports nothing else."""

    epoch: Epoch
    index: Count
    part: Count
    parts: Count


class Change(msgspec.Struct, frozen=True, kw_only=True, tag="change", tag_field="type"):
    """One entry has changed, or is not exported any more (`remove`)."""

    epoch: Epoch
    index: Count
    op: Name
    net: Net
    name: Name
    instance: Name


class Ask(msgspec.Struct, frozen=True, tag="ask", tag_field="type"):
    """A lookup; the payload are the names."""

    id: Count


class Answer(msgspec.Struct, frozen=True, tag="answer", tag_field="type"):
    """The answer to a lookup; the payload is the body of `o_O`."""

    id: Count


class Sub(msgspec.Struct, frozen=True, tag="sub", tag_field="type"):
    """Somebody wants what services of a network publish under topics with this beginning."""

    net: Net
    topic: Topic


class Unsub(msgspec.Struct, frozen=True, tag="unsub", tag_field="type"):
    """Nobody wants that any more."""

    net: Net
    topic: Topic


class Pub(msgspec.Struct, frozen=True, kw_only=True, tag="pub", tag_field="type"):
    """What a service published; the payload is the message, its topic first."""

    net: Net
    publisher: Name
    instance: Name
    seq: Count
    path: Path


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call", tag_field="type"):
    """A call of a service; the payload are its frames."""

    id: Count
    net: Net
    name: Name
    instance: Name
    endpoint: Name
    deadline_ms: Annotated[int, Meta(ge=1, le=3_600_000)]


class Return(msgspec.Struct, frozen=True, tag="return", tag_field="type"):
    """The answer to a call; the payload is the answer's, `status` its command."""

    id: Count
    status: Name


class Credit(msgspec.Struct, frozen=True, tag="credit", tag_field="type"):
    """This much was taken."""

    messages: Count
    bytes: Count


class Beat(msgspec.Struct, frozen=True, tag="beat", tag_field="type"):
    """The sender is alive, and this was its last index."""

    epoch: Epoch
    index: Count


class Bye(msgspec.Struct, frozen=True, tag="bye", tag_field="type"):
    """The sender leaves, or does not know this connection."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is exported: a payload frame."""

    net: Net
    name: Name
    instance: Name
    path: Path
    """Networks that it has crossed, that of its origin first."""
    state: Name
    health: Name
    since: float
    interval_ms: Count
    record: msgspec.Raw

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of an entry, whichever way it came."""
        return self.net, self.name, self.instance


Header = Hello | Refuse | Snapshot | Change | Ask | Answer | Sub | Unsub | Pub | Call | Return | Credit | Beat | Bye
_headers: Final[msgspec.json.Decoder[Header]] = msgspec.json.Decoder(Header)
_offers: Final = msgspec.json.Decoder(Offer)
_encode: Final = msgspec.json.Encoder().encode


def decode(frames: Sequence[bytes]) -> Message:
    """A message of a bridge; PeerError `malformed` for every other word."""
    message = commands.decode(frames, FRAMES_MAX)
    if message.command != BRIDGE or message.envelope:
        raise PeerError("malformed", "no word of a bridge", message.command)
    return message


def is_sealed(message: Message, *, is_due: bool = False) -> bool:
    """Whether a checksum came with it; PeerError `bad-sum`, if it was altered on the way, or has none where one is due."""
    frames = [message.command, message.time, *message.body]
    if len(frames) > _HEADER_AT and jsontext.is_sealed(frames, _HEADER_AT):
        return True
    if is_due:
        raise PeerError(BAD_SUM, "its sum was altered on the way", message.command)
    return False


def read(message: Message) -> tuple[Header, tuple[bytes, ...]]:
    """Header and payload; PeerError."""
    header = message.body[0] if message.body else b""
    if len(header) > HEADER_BYTES_MAX:
        raise PeerError("malformed", f"a header of {len(header)} bytes")
    try:
        return _headers.decode(header), message.body[1:]
    except UNREADABLE as error:
        raise PeerError("malformed", str(error), header) from None


def read_offer(frame: bytes) -> Offer:
    """One entry; PeerError."""
    try:
        return _offers.decode(frame)
    except UNREADABLE as error:
        raise PeerError("malformed", str(error), frame) from None


def encode_offer(offer: Offer) -> bytes:
    """The frame of an entry."""
    return _encode(offer)


def message_of(header: Header, time: bytes, frames: Sequence[bytes] = ()) -> Message:
    """The message of a header, with its checksum.

    >>> message_of(Credit(3, 120), b"1795227299").body
    (b'{"type":"credit","messages":3,"bytes":120,"sum":"8e806e9f"}',)
    """
    sealed = jsontext.sealed([BRIDGE, time, _encode(header), *frames], _HEADER_AT)
    return Message(BRIDGE, time, tuple(sealed[_HEADER_AT:]))
