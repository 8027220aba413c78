"""The words of leases: one frame, one MessagePack array, typed and bounded.

ask    = [serial, verb, name, who, span]        DEALER -> ROUTER; verb = "take" / "free" / "look"; span = seconds
answer = [serial, code, holder, left]           code = "held" / "free" / "full"; left = seconds

Anything else is refused as `bad-message`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE, PeerError

FRAME_BYTES_MAX = 256
Serial = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Verb = Literal["take", "free", "look"]
Name = Annotated[str, Meta(min_length=1, max_length=63)]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]


class Ask(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """What a node wants of the one that gives leases."""

    serial: Serial
    verb: Verb
    name: Name
    who: Name
    span_s: Seconds


class Answer(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Who has that name now, and for how long; `full`: the giver has no room, and nothing has changed."""

    serial: Serial
    code: Literal["held", "free", "full"]
    holder: Annotated[str, Meta(max_length=63)]
    left_s: Seconds


def encode(message: Ask | Answer) -> list[bytes]:
    """The one frame of a message."""
    return [msgspec.msgpack.encode(message)]


def decode(kind: type) -> Callable[[list[bytes]], Any]:
    """Makes messages of that kind of their frames; PeerError `bad-message`."""
    decoder = msgspec.msgpack.Decoder(kind)

    def decoded(frames: list[bytes]) -> Any:
        if len(frames) != 1 or len(frames[0]) > FRAME_BYTES_MAX:
            raise PeerError("bad-message", f"{len(frames)} frames, or more than {FRAME_BYTES_MAX} bytes")
        try:
            return decoder.decode(frames[0])
        except UNREADABLE as error:
            raise PeerError("bad-message", str(error), frames[0]) from None

    return decoded
