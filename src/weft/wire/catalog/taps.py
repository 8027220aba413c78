"""Messages about copied messages: bodies of `O_o` (MON-001 to MON-006).

message = "" "O_o" time header *frame                       ; frames: of a copy only
header  = JSON of one of these, told apart by its `type`

`start` and `stop` go from the broker to the service, over the connection by which that is registered. All else goes
over the broker's monitor port, to which the service connects.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE, PeerError
from weft.wire.catalog import commands
from weft.wire.catalog.messages import TAP, Message

NAME_BYTES_MAX: Final = 255
FRAMES_MAX: Final = commands.FRAMES_MAX + commands.ENVELOPE_FRAMES_MAX + 8
"""Of a copy: the longest message there is, and the frames before it."""
HEADER_BYTES_MAX: Final = 4_096

T = TypeVar("T")
Id = Annotated[str, Meta(pattern="^[0-9a-f]{1,32}$")]
Name = Annotated[str, Meta(max_length=NAME_BYTES_MAX)]
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Way = Literal["in", "out"]
Ways = Literal["in", "out", "both"]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages are copied, and how much of them."""

    sockets: Annotated[tuple[Name, ...], Meta(max_length=16)] = ()
    """`router`: calls and their answers; `pub`: what is published. Empty: all."""
    dir: Ways = "both"
    sample: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """One message in so many is copied."""
    max_frame: Annotated[int, Meta(ge=0, le=1 << 20)] = 256
    """Bytes of each frame at most; 0: their lengths only."""
    rate: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000
    """Copies per second at most."""
    seconds: Annotated[float, Meta(gt=0, le=3_600)] = 60.0


class Start(Wanted, frozen=True, kw_only=True, tag="start", tag_field="type"):
    """Copy messages from now on, and send the copies to this port of the broker."""

    tap: Id
    port: Annotated[int, Meta(ge=1, le=65_535)]
    proof: Name = ""
    """What its reports must contain: only a service that is registered knows it."""


class Stop(msgspec.Struct, frozen=True, tag="stop", tag_field="type"):
    """Copy no more messages."""

    tap: Id


class Copy(msgspec.Struct, frozen=True, kw_only=True, tag="copy", tag_field="type", omit_defaults=True):
    """One message that passed; its frames follow, each cut."""

    tap: Id
    service: Name
    instance: Name
    seq: Count
    dir: Way
    socket: Name
    peer: Name
    """Address and routing id of the other end; empty: all subscribers."""
    ts: float
    """Unix seconds of the service."""
    frames: Annotated[int, Meta(ge=0, le=1 << 16)]
    bytes: Count
    cut: bool
    """Whether some of the message is missing here."""
    word: Name = ""
    """Of a call or its answer: the endpoint."""
    took_us: Count | None = None
    """Of an answer: microseconds since its call came."""
    sizes: Annotated[tuple[Count, ...], Meta(max_length=FRAMES_MAX)] = ()
    """Sizes of the frames, if only these are sent."""


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report", tag_field="type", omit_defaults=True):
    """How many messages passed so far; `seen` is the sum of the others. Sent first, once a second, and last."""

    tap: Id
    service: Name
    instance: Name
    seen: Count = 0
    copied: Count = 0
    dropped: Count = 0
    """Copies for which there was no room."""
    sampled: Count = 0
    """Left out on purpose: by `sample`, or beyond `rate`."""
    ended: Name = ""
    """Why this report is the last one; empty: more will follow."""
    proof: Name = ""
    """As `start` named it; it is not published."""


class Beat(msgspec.Struct, frozen=True, tag="beat", tag_field="type"):
    """The broker has received a report."""

    tap: Id


Order = Start | Stop
FromService = Copy | Report
_orders: Final[msgspec.json.Decoder[Order]] = msgspec.json.Decoder(Order)
_from_services: Final[msgspec.json.Decoder[FromService]] = msgspec.json.Decoder(FromService)
_beats: Final = msgspec.json.Decoder(Beat)
encode_header: Final = msgspec.json.Encoder().encode


def read_order(message: Message) -> Order:
    """An order to a service; PeerError."""
    return _read(message, _orders)


def read_from_service(message: Message) -> FromService:
    """A message to the monitor port; PeerError."""
    return _read(message, _from_services)


def read_beat(message: Message) -> Beat:
    """A message of the monitor port; PeerError."""
    return _read(message, _beats)


def message_of(header: Order | FromService | Beat, time: bytes = b"", frames: Sequence[bytes] = ()) -> Message:
    """The message of a header.

    >>> message_of(Stop("0a"), b"1795227299").body
    (b'{"type":"stop","tap":"0a"}',)
    """
    return Message(TAP, time, (encode_header(header), *frames))


def decode(frames: Sequence[bytes]) -> Message:
    """A message at or from the monitor port; PeerError `malformed` for every other word."""
    message = commands.decode(frames, FRAMES_MAX)
    if message.command != TAP:
        raise PeerError("malformed", "no word about a tap", message.command)
    return message


def _read(message: Message, decoder: msgspec.json.Decoder[T]) -> T:
    header = message.body[0] if message.body else b""
    try:
        if len(header) > HEADER_BYTES_MAX:
            raise PeerError("malformed", f"a header of {len(header)} bytes")
        return decoder.decode(header)
    except UNREADABLE as error:
        raise PeerError("malformed", str(error), header) from None
