"""Codecs of the store's channels without ZeroMQ, to MQTT brokers and TCP clients: a message is one frame."""
# tidy: a codec is a module with these names

from typing import Any

from weft.base.errors import PeerError
from weft.cores.store.messages import Garbled
from weft.wire.store import clients
from weft.wire.store.clients import Answer, BadRequest
from weft.wire.store.messages import Publication

__all__ = ["Garbled", "decode_answer", "decode_payload", "decode_request", "encode", "encode_payload", "refuse"]


def decode_payload(frames: list[bytes]) -> Publication:
    """Decode a message from the broker; its topic is the `peer` of its source."""
    return Publication("", frames[0])


def encode_payload(message: Publication) -> list[bytes]:
    """Encode a message for the broker; its topic is the `peer` that it is sent to."""
    return [message.payload]


def decode_request(frames: list[bytes]) -> Any:
    """Decode a client's request; raises PeerError."""
    return clients.decode_request(frames[0])


def decode_answer(frames: list[bytes]) -> Any:
    """Decode an answer of a server to which this node is a client; raises PeerError."""
    return clients.decode_answer(frames[0])


def encode(message: Any) -> list[bytes]:
    """Encode a message for a client, or for a server."""
    return [clients.encode(message)]


def refuse(_: list[bytes], error: PeerError) -> list[bytes]:
    """The answer to a request that cannot be decoded; the connection stays open (CLN-002)."""
    seq = error.seq if isinstance(error, BadRequest) else 0
    return encode(Answer(seq=seq, error=error.why or error.code, etype=error.code))
