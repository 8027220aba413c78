"""Invalid messages: on every channel they are refused, counted once, and change nothing (FUZ-001)."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Persist, Send, Source
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.node.channels import CHANNELS
from weft.node.node import Node
from weft.wire import beacon, hop

Make = Callable[[Chance], list[bytes]]
_encode = msgspec.msgpack.encode


def _noise(chance: Chance) -> list[bytes]:
    return [b"\xc1" + chance.randbytes(chance.randint(0, 300))]


def _empty(chance: Chance) -> list[bytes]:
    return [b""] * chance.randint(1, 3)


def _truncated(chance: Chance) -> list[bytes]:
    whole = _encode({"op": "hack", "era": 1 << 50, "upto": 7, "win": 10, "winb": 1 << 20})
    return [whole[: chance.randint(1, len(whole) - 1)]]


def _unknown_op(chance: Chance) -> list[bytes]:
    return [_encode({"op": f"op{chance.randint(0, 99)}", "era": 1})]


def _wrong_types(chance: Chance) -> list[bytes]:
    return [_encode({"op": "hop", "era": "now", "s": -chance.randint(1, 9), "m": {}})]


def _missing_frames(chance: Chance) -> list[bytes]:
    item = {"mid": [b"x" * 16, 1, 1], "type": "weft.metric", "via": [b"x" * 16], "depth": 0, "ts": 0, "n": 2}
    return [_encode({"op": "hop", "era": 1, "s": 1, "m": [item] * chance.randint(1, 3)}), b"payload"]


def _too_many_frames(chance: Chance) -> list[bytes]:
    return [_encode({"op": "beat"}), *[b"more"] * chance.randint(1, 5)]


def _nested(chance: Chance) -> list[bytes]:
    return [b"\x81\xa2op" + b"\x91" * chance.randint(1_000, 5_000) + b"\xc0"]


def _list_bomb(_: Chance) -> list[bytes]:
    return [b"\x82\xa2op\xa3hop\xa1m\xdd\xff\xff\xff\xff"]


def _beacon_text(chance: Chance) -> list[bytes]:
    return [b"WEFTN1 simulated " + bytes(chance.choices(b"abc \x00\xff\n;", k=chance.randint(1, 600)))]


def _ahead(chance: Chance) -> list[bytes]:
    return hop.encode(hop.Hack(era=0, upto=1 << 40, win=1, winb=1, safe=chance.getrandbits(40)))


def _hop_down(chance: Chance) -> list[bytes]:
    item = hop.HopItem(mid=(b"x" * 16, 1, 1), type="weft.metric", via=(b"x" * 16,), depth=0, ts=0)
    return hop.encode(hop.Hop(chance.getrandbits(50), 1, [item], [b"payload"]))


def _hello_down(chance: Chance) -> list[bytes]:
    era = chance.getrandbits(50)
    return hop.encode(hop.Hello(v=1, role="node", name="stranger", id=b"y" * 16, era=era, first=1, next=1))


def _welcome_ahead(chance: Chance) -> list[bytes]:
    upto = (1 << 40) + chance.getrandbits(30)
    return hop.encode(
        hop.Welcome(
            v=1,
            node=b"z" * 16,
            name="stranger",
            addr="",
            boot=1,
            level="root",
            parent=None,
            children=[],
            credit=0,
            credit_bytes=0,
            beat=1_000,
            dead=5_000,
            era=1,
            first=1,
            next=1,
            upto=upto,
            win=1,
            winb=1,
        )
    )


def _other_fleet(chance: Chance) -> list[bytes]:
    return beacon.encode(beacon.Beacon("elsewhere", f"n{chance.getrandbits(20)}", b"w" * 16, "sensor", 27_500, 1))


BYTES: Final[dict[str, Make]] = {
    "noise": _noise,
    "empty": _empty,
    "truncated": _truncated,
    "unknown-op": _unknown_op,
    "wrong-types": _wrong_types,
    "missing-frames": _missing_frames,
    "too-many-frames": _too_many_frames,
    "nested": _nested,
    "list-bomb": _list_bomb,
    "beacon-text": _beacon_text,
}
"""Bytes that no channel can decode."""

FORBIDDEN: Final[dict[str, tuple[Make, int]]] = {
    "hack-ahead": (_ahead, 0),
    "hop-down": (_hop_down, 0),
    "hello-down": (_hello_down, 0),
    "welcome-ahead": (_welcome_ahead, 0),
    "other-fleet": (_other_fleet, 2),
}
"""Messages that can be decoded but are forbidden, with their channel: 0 up, 1 down, 2 beacon."""

KINDS: Final = (*BYTES, *FORBIDDEN)
"""By name, for use in plans."""


def make(kind: str, chance: Chance) -> list[bytes]:
    """The frames of one message of that kind."""
    return (BYTES[kind] if kind in BYTES else FORBIDDEN[kind][0])(chance)


def channel_of(kind: str, chance: Chance) -> int:
    """The channel on which it is sent."""
    return FORBIDDEN[kind][1] if kind in FORBIDDEN else chance.randint(0, 2)


def probe(node: Node, source: Source, frames: list[bytes], now: Now) -> tuple[int, int]:
    """What a core does with these bytes in isolation: messages it would send, records it would write."""
    row = CHANNELS[source.channel]
    core = node.cores[row.core]
    with suppress(PeerError):
        core.receive(row.decode(frames), source, now)
    effects = core.effects()
    records = sum(len(effect.records) for effect in effects if isinstance(effect, Persist))
    return sum(isinstance(effect, Send) for effect in effects), records
