"""The vectors of the dialect `strict`, and which codec each of them is for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.wire import data, discovery, replication
from weft.wire.envelope import Answer

VECTORS = Path(__file__).parents[1] / "vectors"
Frames = list[bytes]


def lines(name: str) -> dict[str, dict[str, Any]]:
    """The lines of a vector file by id."""
    found = [json.loads(line) for line in (VECTORS / name).read_text("utf-8").splitlines()]
    return {line["id"]: line for line in found}


def frames_of(line: dict[str, Any]) -> Frames:
    return [bytes.fromhex(frame) for frame in line["frames"]]


LINES = lines("config-strict.jsonl")
ASK, ANSWER, UPDATE = "child DEALER/REQ -> parent ROUTER (+3)", "parent ROUTER -> child DEALER/REQ (+3)", "(+2)"
HOP_LINK = "frames of the +5 path: samples ride the hop link instead (MEA-021), only their body is the same"
REPLICA = "transcripts of a replica, played in the tests of its core"
ELSEWHERE = {
    "st-samples": HOP_LINK,
    "st-gotit": HOP_LINK,
    "st-gotit-ranges": HOP_LINK,
    "st-lost": HOP_LINK,
    "st-resume": HOP_LINK,
    "bad-samples-n": HOP_LINK,
    "bad-samples-idx": HOP_LINK,
} | {name: REPLICA for name in LINES if name.startswith("tr-")}
"""Which vectors no codec here reads, and why."""

DECODERS: dict[str, Callable[[Frames], Any]] = {
    "child DEALER/REQ -> parent ROUTER (+3)": replication.decode_ask,
    "parent ROUTER -> child DEALER/REQ (+3)": replication.decode_answer,
    "parent PUB -> child SUB (+2)": replication.decode_update,
    "PUB connect -> SUB bind (+0)": discovery.decode_announcement,
    "node DEALER -> root ROUTER (+1)": discovery.decode_control,
    "node DEALER -> candidate ROUTER (+1)": discovery.decode_control,
    "root ROUTER -> node DEALER (+1)": discovery.decode_called,
    "child PUB connect -> parent SUB bind (+4)": data.decode,
}
ENCODERS: dict[str, Callable[[Any], Frames]] = {
    "parent ROUTER -> child DEALER/REQ (+3)": lambda message: replication.encode_answer(Answer((), message)),
    "parent PUB -> child SUB (+2)": replication.encode_update,
    "PUB connect -> SUB bind (+0)": discovery.encode_announcement,
    "root ROUTER -> node DEALER (+1)": lambda message: discovery.encode_control_answer(Answer((), message)),
    "child PUB connect -> parent SUB bind (+4)": data.encode,
}
COMMANDS = ("ICANHAZ", "ICANHAZ?")


def heard(line: dict[str, Any]) -> Frames:
    """The frames as a decoder gets them: behind the identity on a ROUTER, and there as a DEALER sends them."""
    frames = frames_of(line)
    if "envelope" in line["means"]:
        return frames[1:]
    if line["direction"].startswith("node DEALER"):
        return [b"", *frames]
    return frames


def decode(line: dict[str, Any]) -> Any:
    return DECODERS[line["direction"]](heard(line))


def chosen(prefix: str) -> list[dict[str, Any]]:
    return [line for name, line in LINES.items() if name.startswith(prefix) and name not in ELSEWHERE]
