"""Bytes that nobody may accept: on every channel they are refused, counted once, and change nothing (FUZ-001)."""

from collections.abc import Callable
from typing import Final

import msgspec

from weft.base.chance import Chance

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


KINDS: Final[dict[str, Make]] = {
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
"""By name, so that a plan can say what is handed in."""


def make(kind: str, chance: Chance) -> list[bytes]:
    """The frames of one message of that kind."""
    return KINDS[kind](chance)
