"""Announcements and control: how nodes find their place (TOP-001, TOP-002).

    announcement = key endpoint uuid content            PUB connect -> SUB bind +0
    key          = "/MARCO" / "/GROUP/" group "/" / "/RECOVERY/wutup" / "/RECOVERY/iwin"
    control      = command endpoint uuid properties     DEALER with delimiter -> ROUTER +1
    command      = polo / assignment / stop / sos / keepcalm / yo / aye / nay / whois / iam

Endpoints are `host:port` of a port block, the UUID is of 16 bytes, content and properties are JSON objects. Unknown
names in them are kept, those that are known have their types. An announcement of plain text is tolerated (TOP-003); a
ROUTER may also hear and answer WTF (`wire.replication.Wtf`). `whois` asks any node who it is; the answer is `iam` with
`{fleet, name, era}` (FLD-010); an older node answers WTF.

Weft's nodes end the content or properties of each with `sum`: the CRC-32, in eight hex digits, of all four frames, of the last
one only the part before it. An altered message is refused as `bad-sum` (FLD-030). A peer that does not know the name ignores it,
and a message without it is accepted.

Anything else raises PeerError: `frame-count`, `envelope`, `command`, `key`, `endpoint`, `uuid`, `content`,
`properties`, `code`, `too-large`, `bad-sum`.
"""

import re
from typing import Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.wire import jsontext
from weft.wire.beacon import NAME
from weft.wire.envelope import Answer, Asked, opened, split
from weft.wire.parts import is_count, read_endpoint, read_node
from weft.wire.replication import EPOCH_MAX, Wtf, read_wtf, wtf_frames
from weft.wire.samples import LABEL_BYTES_MAX, LABEL_VALUE_BYTES_MAX, LABELS_MAX

MARCO: Final = "/MARCO"
WUTUP: Final = "/RECOVERY/wutup"
IWIN: Final = "/RECOVERY/iwin"
GRANTED, REFUSED = "aye", "nay"
"""What a voter answers a candidate, as it stands on the wire."""
COMMANDS: Final = ("polo", "assignment", "stop", "sos", "keepcalm", "yo", GRANTED, REFUSED, "whois", "iam")
FRAMES: Final = 4
CONTENT_AT: Final = 3
"""The answers of a voter to a candidate, as they stand on the wire."""
CONTENT_BYTES_MAX: Final = 16 << 10
PROPERTIES_BYTES_MAX: Final = 128 << 10  # the labels of a node take 5 KiB, the names of all groups below one 66 KB
TEXT_MAX: Final = 255
ALTERNATES_MAX: Final = 3
PLAIN: Final = "text"
"""Where the plain text of an announcement is kept (TOP-003)."""
_COMMANDS: Final = {command.encode(): command for command in COMMANDS}
_WTF: Final = b"WTF"
WORDS: Final = frozenset({*_COMMANDS, _WTF})
"""Commands that begin a bare message."""
_KEY: Final = re.compile(rf"/MARCO|/RECOVERY/(?:wutup|iwin)|/GROUP/(?!(?:global|root)/){NAME}/")
_LEVELS: Final = {
    "root": "root",
    "branch": "branch",
    "leaf": "leaf",
    "collector": "branch",
    "sensor": "leaf",
}
"""The levels that assignments may name, and their names on the wire (TOP-012)."""
LEVEL_NAMES: Final = {"branch": "collector", "leaf": "sensor"}
"""What people call the levels of nodes that are placed."""


class Announcement(msgspec.Struct, frozen=True, gc=False):
    """A message to everybody who listens."""

    key: str
    endpoint: str
    uuid: bytes
    content: dict[str, Any]
    """MARCO `{fleet, epoch, count, protocol, why?, acting?}`; GROUP `{epoch, why}`; wutup `{election, propose, holds}`; iwin `{election, epoch, holds, votes, of}`."""

    @property
    def group(self) -> str:
        """The group that is called; empty: not a GROUP."""
        return self.key[7:-1] if self.key.startswith("/GROUP/") else ""


class Control(msgspec.Struct, frozen=True, gc=False):
    """A message to one node; `assignment` names the assigned node, the others their sender."""

    command: str
    endpoint: str
    uuid: bytes
    properties: dict[str, Any]


def group_key(group: str) -> str:
    """The announcement key of a group; the slash keeps `g1` and `g10` apart (CFG-020)."""
    return f"/GROUP/{group}/"


def encode_announcement(message: Announcement) -> list[bytes]:
    """The four frames of an announcement."""
    return _frames(message.key, message.endpoint, message.uuid, message.content)


def seal_announcement(message: Announcement) -> list[bytes]:
    """As a node sends it: with a sum (FLD-030)."""
    return jsontext.sealed(encode_announcement(message), CONTENT_AT)


def decode_announcement(frames: list[bytes]) -> Announcement:
    """An announcement of a node (TOP-001)."""
    key, endpoint, uuid, content = _four(frames)
    name = key[:TEXT_MAX].decode("ascii", "replace")
    if len(key) > TEXT_MAX or _KEY.fullmatch(name) is None:
        raise PeerError("key", "not an announcement", key)
    return Announcement(name, read_endpoint(endpoint), read_node(uuid), _content(content))


def encode_call(message: Control | Wtf) -> list[bytes]:
    """The frames of a message to a node's ROUTER, behind a delimiter."""
    return [b"", *_control_frames(message)]


def seal_call(message: Control | Wtf) -> list[bytes]:
    """As a node sends it: with a sum, unless it is a refusal (FLD-030)."""
    return [b"", *_sealed_control(message)]


def decode_control(frames: list[bytes]) -> Asked:
    """A message to this node, from the frames behind the sender's identity (CFG-010, TOP-002)."""
    envelope, message = split(frames, WORDS)
    return Asked(envelope, _control(message))


def encode_control_answer(answer: Answer) -> list[bytes]:
    """The frames of an answer, in the envelope of what it answers."""
    return [*answer.envelope, *_control_frames(answer.message)]


def seal_control_answer(answer: Answer) -> list[bytes]:
    """As a node sends it: with a sum, unless it is a refusal (FLD-030)."""
    return [*answer.envelope, *_sealed_control(answer.message)]


def decode_called(frames: list[bytes]) -> Control | Wtf:
    """What a node's ROUTER answers, with or without the delimiter."""
    return _control(opened(frames))


def _control_frames(message: Control | Wtf) -> list[bytes]:
    if type(message) is Wtf:
        return wtf_frames(message)
    assert type(message) is Control
    return _frames(message.command, message.endpoint, message.uuid, message.properties)


def _sealed_control(message: Control | Wtf) -> list[bytes]:
    frames = _control_frames(message)
    return frames if type(message) is Wtf else jsontext.sealed(frames, CONTENT_AT)


def _frames(word: str, endpoint: str, uuid: bytes, content: dict[str, Any]) -> list[bytes]:
    return [word.encode(), endpoint.encode(), uuid, jsontext.encode(content)]


def _four(frames: list[bytes]) -> list[bytes]:
    if len(frames) != FRAMES:
        raise PeerError("frame-count", f"{len(frames)} frames", frames[0] if frames else b"")
    return jsontext.unsealed(frames, CONTENT_AT)


def _control(frames: list[bytes]) -> Control | Wtf:
    if 2 <= len(frames) <= 3:
        return read_wtf(frames)
    word, endpoint, uuid, properties = _four(frames)
    command = _COMMANDS.get(word)
    if command is None:
        raise PeerError("command", "none of control", word)
    found = jsontext.decode_object(properties, PROPERTIES_BYTES_MAX, "properties") if properties else {}
    if command == "assignment":
        found = _assignment(found, properties)
    _check(found, properties, "properties")
    return Control(command, read_endpoint(endpoint), read_node(uuid), found)


def _content(frame: bytes) -> dict[str, Any]:
    """A JSON object, or plain text under `PLAIN`."""
    if frame.lstrip()[:1] == b"{":
        found = jsontext.decode_object(frame, CONTENT_BYTES_MAX, "content")
        _check(found, frame, "content")
        return found
    if len(frame) > CONTENT_BYTES_MAX:
        raise PeerError("too-large", f"{len(frame)} bytes of content", frame)
    try:
        return {PLAIN: frame.decode()} if frame else {}
    except UnicodeDecodeError:
        raise PeerError("content", "neither JSON nor text", frame) from None


def _assignment(found: dict[str, Any], frame: bytes) -> dict[str, Any]:
    """With plain values where an older writer names their types, and with the level's name on the wire (TOP-012)."""
    plain = {name: jsontext.unpaired(value) for name, value in found.items()}
    if "level" in plain:
        level = plain["level"]
        if type(level) is not str or level not in _LEVELS:
            raise PeerError("properties", "no such level", frame)
        plain["level"] = _LEVELS[level]
    return plain


def _check(found: dict[str, Any], frame: bytes, code: str) -> None:
    """Refuse known names with a value of another type: so a reader finds the right type, or nothing."""
    for name, value in found.items():
        is_sound = _KNOWN.get(name)
        if is_sound is not None and not is_sound(value):
            raise PeerError(code, f"{name} is of another type", frame)


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= TEXT_MAX


def _is_epoch(value: Any) -> bool:
    return is_count(value) and value <= EPOCH_MAX


def _is_holds(value: Any) -> bool:
    """An epoch and a counter (TOP-007)."""
    return type(value) is list and len(value) == 2 and all(map(is_count, value))


def _is_labels(value: Any) -> bool:
    return (
        type(value) is dict
        and len(value) <= LABELS_MAX
        and all(len(name.encode()) <= LABEL_BYTES_MAX for name in value)
        and all(type(text) is str and len(text.encode()) <= LABEL_VALUE_BYTES_MAX for text in value.values())
    )


def _is_alternates(value: Any) -> bool:
    return type(value) is list and len(value) <= ALTERNATES_MAX and all(map(_is_text, value))


_KNOWN: Final = {
    "acting": lambda value: type(value) is bool,
    "alternates": _is_alternates,
    "count": is_count,
    "election": _is_text,
    "epoch": _is_epoch,
    "era": is_count,
    "fleet": _is_text,
    "group": _is_text,
    "holds": _is_holds,
    "incarnation": is_count,
    "labels": _is_labels,
    "level": _is_text,
    "of": is_count,
    "parent": _is_text,
    "propose": _is_epoch,
    "protocol": is_count,
    "root": _is_text,
    "tier": is_count,
    "votes": is_count,
    "why": _is_text,
}
