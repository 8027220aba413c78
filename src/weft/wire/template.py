"""Presence: two ends of one stream watch each other. The pattern that a new protocol is copied from.

    message = ping / pong                    one frame, one MessagePack array
    ping    = [1, serial]                    serial = u63, counts the pings of one end
    pong    = [2, serial, meetings]          the serial of the ping; meetings = u63, how often they have met

Anything else is refused as `bad-message`, longer frames as `too-big`; decoding is typed and bounded (SEC-042).
"""

from typing import Annotated, Final

import msgspec

from weft.base.errors import PeerError

FRAME_BYTES_MAX: Final = 32  # the longest pong has 20 bytes

Counter = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Ping(msgspec.Struct, tag=1, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False):
    """Are you there?"""

    serial: Counter


class Pong(msgspec.Struct, tag=2, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False):
    """I am, and this is how often we have met."""

    serial: Counter
    meetings: Counter


Message = Ping | Pong

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> list[bytes]:
    """The one frame of a message."""
    return [_encoder.encode(message)]


def decode(frames: list[bytes]) -> Message:
    """The message of the frames; PeerError `bad-message` or `too-big` for anything else.

    >>> decode(encode(Pong(7, 1)))
    Pong(serial=7, meetings=1)
    """
    if len(frames) != 1:
        raise PeerError("bad-message", f"{len(frames)} frames instead of one")
    if len(frames[0]) > FRAME_BYTES_MAX:
        raise PeerError("too-big", f"{len(frames[0])} bytes", frames[0])
    try:
        message: Message = _decoder.decode(frames[0])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PeerError("bad-message", str(error), frames[0]) from None
    return message
