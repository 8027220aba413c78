"""What the vectors hold, as inputs of targets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fuzz.house.choices import joined

VECTORS: Final = Path(__file__).parents[2] / "tests" / "vectors"
SHORT: Final = 2_048
"""Longer vectors are about limits, which mutation does not reach from there."""


def lines(*names: str) -> Iterator[dict[str, Any]]:
    """All lines of these files."""
    for name in names:
        yield from map(json.loads, (VECTORS / f"{name}.jsonl").read_text("utf-8").splitlines())


def multiparts(*names: str) -> Iterator[bytes]:
    """The frames of these files, joined."""
    for line in lines(*names):
        frames = [bytes.fromhex(frame) for frame in line.get("frames", ())]
        if frames and sum(map(len, frames)) <= SHORT:
            yield joined(frames)


def payloads(*names: str, of: str = "") -> Iterator[bytes]:
    """The payloads of these files, of lines whose id begins with `of`."""
    for line in lines(*names):
        payload = bytes.fromhex(line.get("payload", ""))
        if 0 < len(payload) <= SHORT and line["id"].startswith(of):
            yield payload


def hostile(*decoders: str) -> Iterator[bytes]:
    """The short hostile inputs for decoders of these kinds."""
    for line in lines("hostile"):
        if line["means"]["decoder"] in decoders and "payload" in line:
            yield bytes.fromhex(line["payload"])
