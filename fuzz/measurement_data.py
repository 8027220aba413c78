"""Samples of foreign nodes: any frames are one that comes back, or refused by a name (MEA-020)."""

import math
from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.wire import data as codec

CODES = frozenset(["accepted", "frame-count", "endpoint", "properties", "time", "value", "base", "too-large"])


def one(data: bytes) -> None:
    """As the root hears it on its port +4."""
    code, sample = attempt(codec.decode, frames_of(data))
    assert code in CODES, code
    if sample is not None:
        written = codec.encode(sample)
        assert written == codec.encode(codec.decode(written)), sample


def seeds() -> Iterable[bytes]:
    """With and without a base, labels, and what older nodes write."""
    yield from multiparts("config-strict")
    yield joined(codec.encode(codec.DataHugz("10.0.0.1:27500", 1_795_227_290_000)))
    given: dict[str, Any] = {
        "source": "10.0.0.1:27500",
        "type": "percent",
        "detail": "CPU",
        "config_name": "cpu",
        "time_ms": 1,
    }
    yield joined(codec.encode(codec.Data(**given, value=math.nan, base=1.0, config_number=7, labels={"rack": "7"})))
    pairs = b'{"type":["str","basic"],"detail":["str","CPU"],"config-name":["str","cpu"],"x":[1,2]}'
    yield joined([b"[::1]:1", pairs, bytes(8), bytes(8), b""])


if __name__ == "__main__":
    run(one)
