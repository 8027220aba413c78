"""The vectors of what peers say: computed from the text, and captured from other stacks."""

import json
from pathlib import Path
from typing import Any, Final
from uuid import UUID

VECTORS: Final = Path(__file__).parents[2] / "vectors"


def lines(name: str) -> dict[str, dict[str, Any]]:
    """By id."""
    return {line["id"]: line for line in map(json.loads, (VECTORS / name).read_text("utf-8").splitlines())}


WIRE: Final = lines("document-wire.jsonl")
CAPTURED: Final = lines("document-captured.jsonl")
SENDER: Final = UUID("b0000000-0000-4000-8000-000000000002").bytes


def frames(line: dict[str, Any]) -> list[bytes]:
    return [bytes.fromhex(frame) for frame in line["frames"]]


def refused(means: dict[str, Any]) -> str:
    """The last word of the counter that a vector names."""
    return str(means["counter"]).rpartition(".")[2]
