"""What brokers of two networks say to each other, and what passes about taps: any frames are a message that comes back, or refused by a name (BRI-001, MON-001)."""

import json
from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import attempt, run
from weft.wire.catalog import bridges, commands, taps
from weft.wire.catalog.messages import BRIDGE, TAP, Message

CODES = frozenset(["accepted", "malformed", "unknown-command"])
TIME = b"1795227299"
OFFER = {
    "net": "blue", "name": "clock", "instance": "c1", "path": ["blue"], "state": "active", "health": "pass",
    "since": 1.5, "interval_ms": 1_000, "record": {"name": "clock"},
}  # fmt: skip
SAID: tuple[dict[str, Any], ...] = (
    {"type": "hello", "v": 1, "net": "blue", "broker": "0a", "messages": 100, "bytes": 1_000},
    {"type": "refuse", "code": "same-net"},
    {"type": "snapshot", "epoch": "0a", "index": 4, "part": 1, "parts": 1},
    {"type": "change", "epoch": "0a", "index": 5, "op": "set", "net": "blue", "name": "clock", "instance": "c1"},
    {"type": "ask", "id": 7},
    {"type": "answer", "id": 7},
    {"type": "sub", "net": "blue", "topic": "clock/"},
    {"type": "unsub", "net": "blue", "topic": "clock/"},
    {"type": "pub", "net": "blue", "publisher": "clock", "instance": "c1", "seq": 1, "path": ["blue"]},
    {"type": "call", "id": 8, "net": "blue", "name": "clock", "instance": "c1", "endpoint": "now", "deadline_ms": 500},
    {"type": "return", "id": 8, "status": "^_^"},
    {"type": "credit", "messages": 3, "bytes": 120},
    {"type": "beat", "epoch": "0a", "index": 5},
    {"type": "bye"},
)
TAPPED: tuple[dict[str, Any], ...] = (
    {"type": "start", "tap": "0a", "port": 5_250, "sockets": ["router"], "sample": 2},
    {"type": "stop", "tap": "0a"},
    {
        "type": "copy", "tap": "0a", "service": "clock", "instance": "c1", "seq": 1, "dir": "in", "socket": "router",
        "peer": "", "ts": 1.5, "frames": 1, "bytes": 3, "cut": False,
    },
    {"type": "report", "tap": "0a", "service": "clock", "instance": "c1", "seen": 3, "copied": 3},
    {"type": "beat", "tap": "0a"},
)  # fmt: skip


def one(data: bytes) -> None:
    """As each of those hears it who hear such messages."""
    frames = frames_of(data)
    code, message = attempt(bridges.decode, frames)
    assert code in CODES, code
    if message is not None:
        _bridged(message)
    code, message = attempt(taps.decode, frames)
    assert code in CODES, code
    if message is not None:
        for read in (taps.read_order, taps.read_from_service, taps.read_beat):
            code, header = attempt(read, message)
            assert code in CODES, code
            if header is not None:
                again = taps.decode(commands.encode(taps.message_of(header, message.time, message.body[1:])))
                assert header == read(again), header


def _bridged(message: Message) -> None:
    code, said = attempt(bridges.read, message)
    assert code in CODES, code
    if said is None:
        return
    header, payload = said
    again = bridges.decode(commands.encode(bridges.message_of(header, message.time, payload)))
    assert (header, payload) == bridges.read(again), header
    for frame in payload:
        code, offer = attempt(bridges.read_offer, frame)
        assert code in CODES, code
        if offer is not None:
            assert offer == bridges.read_offer(bridges.encode_offer(offer)), offer


def seeds() -> Iterable[bytes]:
    """One message of each kind, with and without a payload."""
    offer = json.dumps(OFFER).encode()
    for word, headers in ((BRIDGE, SAID), (TAP, TAPPED)):
        for header in headers:
            text = json.dumps(header).encode()
            yield joined(commands.encode(Message(word, TIME, (text,))))
            yield joined(commands.encode(Message(word, TIME, (text, offer))))
        yield joined(commands.encode(Message(word, TIME, (b"{",))))


if __name__ == "__main__":
    run(one)
