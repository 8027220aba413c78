"""Reads a broker's JSON; missing or unexpected values are ignored, never errors (BEA-014, CAT-008)."""

from typing import Any, NamedTuple

import msgspec

from weft.cores.service import limits
from weft.wire.catalog.messages import Message


class Approval(NamedTuple):
    """`OwO`: what was agreed."""

    interval_ms: int
    liveness: int
    instance: str
    epoch: str
    hb: int
    beat_key: bytes
    is_broker: bool
    """Whether it states that it is a broker of this kind, which answers every beat."""


class Refusal(NamedTuple):
    """`(O_O)`: the reason of a refusal."""

    code: str
    text: str
    fields: tuple[str, ...]


def approval(message: Message, interval_ms: int) -> Approval:
    """What the broker has approved; it may lengthen the interval, and never shorten it."""
    fields = _fields_of(message)
    return Approval(
        interval_ms=_whole(fields.get("heartbeat"), interval_ms, limits.INTERVAL_MS_MAX, interval_ms),
        liveness=_whole(fields.get("liveness"), limits.LIVENESS, limits.LIVENESS_MAX, limits.LIVENESS),
        instance=_text(fields.get("instance")),
        epoch=_text(fields.get("epoch")),
        hb=_whole(fields.get("hb"), 1, limits.PORT_MAX, 0),
        beat_key=_key(fields.get("beat_key")),
        is_broker=fields.get("dbp") == 1,
    )


def refusal(message: Message) -> Refusal:
    """Why the broker refused; `denied` if it gives no readable reason."""
    answer = _fields_of(message)
    fields = answer.get("fields")
    named = tuple(map(str, fields)) if isinstance(fields, list) else ()
    text = _text(answer.get("Error")) or b" ".join(message.body).decode("utf-8", "replace")[: limits.TEXT_MAX]
    return Refusal(_text(answer.get("code")) or "denied", text, named)


def _fields_of(message: Message) -> dict[str, Any]:
    try:
        return msgspec.json.decode(message.body[0] if message.body else b"", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _whole(value: Any, least: int, most: int, otherwise: int) -> int:
    """A whole number within bounds, else `otherwise`."""
    if type(value) not in (int, float) or not least <= value <= most:
        return otherwise
    return int(value)


def _text(value: Any) -> str:
    return value[: limits.TEXT_MAX] if isinstance(value, str) else ""


def _key(value: Any) -> bytes:
    try:
        return bytes.fromhex(_text(value))
    except ValueError:
        return b""
