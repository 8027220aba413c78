"""Clients of the store: any bytes are a request or an answer that comes back, or refused by a name (CLN-002, CLN-005)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.running import attempt, run
from fuzz.house.vectors import hostile, payloads
from weft.base.errors import PeerError
from weft.node import storechannels
from weft.wire.store import clients, pack

CODES = frozenset(["accepted", "bad-request", "bad-path", "malformed"])


def one(data: bytes) -> None:
    """In both directions."""
    _answered(data)
    for decode in (clients.decode_request, clients.decode_answer):
        code, message = attempt(decode, data)
        assert code in CODES, code
        if message is None:
            continue
        written = _written(message)
        assert written is None or written == clients.encode(decode(written)), message
        for value in (getattr(message, "value", b""), getattr(message, "prev", b"")):
            assert attempt(pack.check, bytes(value), 1 << 20)[0] in ("accepted", "malformed", "too-large"), value
        if isinstance(getattr(message, "chain", None), clients.Links):
            assert attempt(clients.chain_of, message.chain)[0] in ("accepted", "bad-chain"), message.chain


def _answered(data: bytes) -> None:
    """As the channels of a node have it: what cannot be read is answered."""
    storechannels.decode_payload([data])
    for decode in (storechannels.decode_request, storechannels.decode_answer):
        try:
            decode([data])
        except PeerError as error:
            answer = clients.decode_answer(storechannels.refuse([data], error)[0])
            assert answer.seq == getattr(error, "seq", 0) or answer.seq == 0, answer


def _written(message: Any) -> bytes | None:
    """Its bytes; None: an extension that is no path stands where anything may, and nobody says that again."""
    try:
        return clients.encode(message)
    except TypeError:
        return None


def seeds() -> Iterable[bytes]:
    """Sessions of real clients and servers."""
    yield from payloads("store-client")
    yield from hostile("msgpack", "msgpack-value")


if __name__ == "__main__":
    run(one)
