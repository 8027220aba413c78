"""Payloads of all streams but `samples` as canonical JSON text, so that Spark needs no decoder in Python (LAK-012).

Keys are text and sorted, there are no spaces, text is UTF-8 unescaped, binary becomes `{"$b": base64}`, nil becomes
null. A payload that cannot be decoded in its declared format has no body, but an error from the closed list PIP-031.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import blake2b
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec

DEPTH_MAX: Final = 64  # nested arrays and maps; deeper nesting is an attack or a mistake
RAW_BYTES_MAX: Final = 1 << 20  # at most this much of a payload is kept (LAK-013)
RAW: Final = "raw"
"""The format of payloads that declare no other format."""
LOOSE: Final = "loose"
"""The format of payloads written by foreign clients: JSON, or any other bytes. Each of them gets a body."""


class Body(NamedTuple):
    """A payload as text, or the reason why it has none."""

    text: str | None
    error: str | None


class Mask(NamedTuple):
    """Which configuration keys are secret, and the key under which their hash stays comparable (LAK-014)."""

    is_secret: Callable[[str], bool]
    drain_secret: bytes

    def body(self, payload: bytes) -> str:
        """The text that replaces a secret in the lake. Equal secrets give equal text; nothing else about them shows."""
        hidden = blake2b(payload, digest_size=16, key=self.drain_secret[:64]).hexdigest()
        return f'{{"$masked":"{hidden}"}}'


class BadBody(Exception):
    """A value that has no canonical JSON. Its text is the error of PIP-031."""


def body_of(payload: bytes, attributes: Mapping[str, Any], usual: str = "msgpack") -> Body:
    """The body of a record.

    Its format is `attributes["fmt"]`, or `usual` if that is absent. A payload of format `raw` has no body. An empty
    payload (a deletion, a mark) has neither a body nor an error.
    """
    fmt = str(attributes.get("fmt", usual))
    decode = _DECODERS.get(fmt)
    if decode is None and fmt != RAW:
        return Body(None, "unknown-format")
    if not payload or decode is None:
        return Body(None, None)
    return decoded(payload, decode)


def decoded(payload: bytes, decode: Callable[[bytes], str]) -> Body:
    """The body that `decode` makes of a payload, or the error if it cannot."""
    try:
        return Body(decode(payload), None)
    except BadBody as bad:
        return Body(None, str(bad))
    except RecursionError:
        return Body(None, "too-long")
    except (msgspec.MsgspecError, ValueError):
        return Body(None, "undecodable")


def kept(payload: bytes) -> tuple[bytes, dict[str, str]]:
    """The first 1 MiB of a payload; and if that is not all of it, attributes with its whole length and SHA-256 (LAK-013)."""
    if len(payload) <= RAW_BYTES_MAX:
        return payload, {}
    from hashlib import sha256

    whole = {"raw_bytes": str(len(payload)), "raw_sha256": sha256(payload).hexdigest()}
    return payload[:RAW_BYTES_MAX], whole


def text_map(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Attributes as text: text unchanged, everything else as canonical JSON."""
    return {key: value if isinstance(value, str) else _attribute(value) for key, value in attributes.items()}


def _attribute(value: Any) -> str:
    try:
        return canonical(value)
    except (BadBody, RecursionError, ValueError, TypeError, msgspec.MsgspecError):
        return repr(value)[:256]


def canonical(value: Any) -> str:
    """Canonical JSON of a decoded MessagePack value."""
    return msgspec.json.encode(_plain(value, 0), order="sorted").decode()


class Tagged(NamedTuple):
    """A value that JSON cannot express, as a map of its tag and its text."""

    tag: str
    text: str


def _plain(value: Any, depth: int) -> Any:
    """A value that JSON can express. Numbers, text, bools and nil stay; other types are converted as `_PLAIN` says."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if depth > DEPTH_MAX:
        raise BadBody("too-long")
    plain = _PLAIN.get(kind)
    return plain(value, depth + 1) if plain else str(value)  # of other types only timestamps occur


def _finite(value: float, _depth: int) -> float:
    if not isfinite(value):
        raise BadBody("bad-number")
    return value


_PLAIN: Final[dict[type, Callable[[Any, int], Any]]] = {
    float: _finite,
    dict: lambda entries, depth: {_key(key): _plain(item, depth) for key, item in entries.items()},
    list: lambda items, depth: [_plain(item, depth) for item in items],
    tuple: lambda items, depth: [_plain(item, depth) for item in items],
    bytes: lambda data, _: {"$b": b64encode(data).decode()},
    Tagged: lambda tagged, _: {tagged.tag: tagged.text},
    msgspec.msgpack.Ext: lambda ext, _: {"$x": [ext.code, b64encode(ext.data).decode()]},
}


def _key(key: Any) -> str:
    return key if type(key) is str else canonical(key)


def _from_msgpack(payload: bytes) -> str:
    return canonical(msgspec.msgpack.decode(payload))


def _from_json(payload: bytes) -> str:
    try:
        return canonical(msgspec.json.decode(payload))
    except msgspec.DecodeError:
        raise BadBody("bad-json") from None


def _from_any(payload: bytes) -> str:
    """The payload as JSON if it is valid JSON, otherwise as bytes (LAK-012)."""
    try:
        return canonical(msgspec.json.decode(payload))
    except (msgspec.MsgspecError, BadBody, ValueError, RecursionError):
        return canonical(payload)


def _from_text(payload: bytes) -> str:
    return msgspec.json.encode(payload.decode()).decode()


_DECODERS: Final[dict[str, Callable[[bytes], str]]] = {
    "msgpack": _from_msgpack,
    "json": _from_json,
    "text": _from_text,
    "xml": _from_text,
    LOOSE: _from_any,
}
