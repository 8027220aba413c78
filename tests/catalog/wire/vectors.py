"""The vectors of the catalog: computed from the text, and captured from other stacks."""

import json
from pathlib import Path
from typing import Any, Final

VECTORS: Final = Path(__file__).parents[2] / "vectors"


def lines(name: str) -> dict[str, dict[str, Any]]:
    """By id."""
    return {line["id"]: line for line in map(json.loads, (VECTORS / name).read_text("utf-8").splitlines())}


COMPUTED: Final = lines("catalog-computed.jsonl")
HERMES: Final = lines("catalog-hermes.jsonl")
PEERS: Final = lines("catalog-peers.jsonl")


def group(*prefixes: str) -> list[str]:
    """Ids of computed vectors that begin so."""
    found = [name for name in COMPUTED if name.startswith(prefixes)]
    assert found, prefixes
    return found


def frames(line: dict[str, Any]) -> list[bytes]:
    """As they are on a ROUTER without the routing id: what a REQ shows has lost its delimiter."""
    said = [bytes.fromhex(frame) for frame in line["frames"]]
    is_stripped = line["direction"] in ("req→peer broker", "peer broker→req")
    return [b"", *said] if is_stripped else said


def payload(line: dict[str, Any]) -> bytes:
    return bytes.fromhex(line["payload"])
