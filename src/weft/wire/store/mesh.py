"""The mesh between store nodes: what goes over a link, in frames, kind and payload (LNK-020).

hello   a map: who the sender is; answered by a hello, or by a bye with the reason
beat    empty; answered by a beat
bye     the reason
update info ping del wping   bytes for that topic, as `bus` has them

A node that says in its hello that it reads sums gets a third frame behind those of a topic: the CRC-32 of both, as four bytes. A
hello has its sum as its last key. An altered message is refused as `bad-sum`; the receiver notices the missing tick, and asks for it.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from weft.base.errors import PeerError
from weft.wire.multipart import BAD_SUM, is_altered, sealed, sum_of
from weft.wire.store.bus import is_name
from weft.wire.store.messages import Publication

PAYLOAD_BYTES_MAX: Final = (1 << 20) + (1 << 16)
VERSION: Final = 1
TOPICS: Final = ("update", "info", "ping")

Name = Annotated[str, Meta(min_length=1, max_length=64)]
Endpoint = Annotated[str, Meta(max_length=128)]
Serial = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """Who is at the other end."""

    v: int = VERSION
    fabric: Name
    node: Name
    boot: Serial
    """Of this start: greater is later."""
    endpoint: Endpoint = ""
    """Of its block of ports, as it knows it."""
    client: Annotated[int, Meta(ge=0, le=65_535)] = 0
    peers: Annotated[tuple[Endpoint, ...], Meta(max_length=256)] = ()
    """Blocks of ports of others."""
    tock: Serial = 0
    sums: bool = False
    """Whether it reads the sum behind a topic."""


class Beat(msgspec.Struct, frozen=True, gc=False):
    """The sender is there; sent as an answer: it has heard the other end."""


class Bye(msgspec.Struct, frozen=True, gc=False):
    """The link ends: `stopping`, `fabric`, `name`, `full`, `stranger`."""

    why: str


Message = Hello | Beat | Bye | Publication

_decode_hello: Final = msgspec.msgpack.Decoder(Hello).decode
_encode: Final = msgspec.msgpack.Encoder().encode


def encode(message: Message) -> list[bytes]:
    """The two frames of a message."""
    match message:
        case Publication():
            frames = [message.topic.encode(), message.payload]
            return [*frames, sum_of(frames[0], frames[1:]).to_bytes(4)] if message.has_sum else frames
        case Beat():
            return [b"beat", b""]
        case Bye():
            return [b"bye", message.why.encode()]
        case Hello():
            return [b"hello", sealed(_encode(message))]


def decode(frames: list[bytes]) -> Message:
    """The message of its frames; PeerError `malformed`, `too-large`, `bad-sum`. A topic's payload is not read."""
    if not 2 <= len(frames) <= 3:
        raise PeerError("malformed", f"{len(frames)} frames")
    kind, payload, *sums = frames
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise PeerError("too-large", str(len(payload)))
    if sums and sum_of(kind, (payload,)).to_bytes(4) != sums[0]:
        raise PeerError(BAD_SUM, "altered on the way", kind)
    topic = _TOPICS.get(kind)
    if topic is not None:
        return Publication(topic, payload, has_sum=bool(sums))
    if kind == b"beat":
        return Beat()
    if kind == b"bye":
        return Bye(payload[:64].decode("utf-8", "replace"))
    if kind == b"hello":
        return _hello(payload)
    raise PeerError("malformed", "unknown kind", kind)


_TOPICS: Final[dict[bytes, str]] = {topic.encode(): topic for topic in TOPICS}


def _hello(payload: bytes) -> Hello:
    if is_altered(payload):
        raise PeerError(BAD_SUM, "a hello that was altered on the way", payload)
    try:
        hello = _decode_hello(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("malformed", f"hello: {error}", payload) from None
    if not is_name(hello.node):
        raise PeerError("bad-field", "a hello without a valid name", payload)
    return hello
