"""Frames of the store's channels that no ZeroMQ socket carries: one each, the message as its dialect has it."""
# tidy: a codec is a module with these names

from typing import Any

from weft.base.errors import PeerError
from weft.cores.store.messages import Garbled
from weft.wire.store import clients
from weft.wire.store.clients import Answer, BadRequest
from weft.wire.store.messages import Said

__all__ = ["Garbled", "decode_answer", "decode_payload", "decode_request", "encode", "encode_payload", "refuse"]


def decode_payload(frames: list[bytes]) -> Said:
    """What the broker hands over; its topic is the `peer` of its source."""
    return Said("", frames[0])


def encode_payload(message: Said) -> list[bytes]:
    """What the broker gets; its topic is the `peer` that it is sent to."""
    return [message.payload]


def decode_request(frames: list[bytes]) -> Any:
    """What a client says; PeerError."""
    return clients.decode_request(frames[0])


def decode_answer(frames: list[bytes]) -> Any:
    """What the server says that this node is a client of; PeerError."""
    return clients.decode_answer(frames[0])


def encode(message: Any) -> list[bytes]:
    """The bytes for a client, or for a server."""
    return [clients.encode(message)]


def refuse(_: list[bytes], error: PeerError) -> list[bytes]:
    """What a client hears of a request that cannot be read: an answer, never a lost connection (CLN-002)."""
    seq = error.seq if isinstance(error, BadRequest) else 0
    return encode(Answer(seq=seq, error=error.why or error.code, etype=error.code))
