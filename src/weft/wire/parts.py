"""Frames that several of the configuration protocols share: numbers, UUIDs, keys, subtrees, endpoints.

Each reader returns the value or raises PeerError with the name of the frame: `sequence`, `uuid`, `key`, `subtree`,
`endpoint` (CFG-008).
"""

import re
from typing import Any, Final

from weft.base.endpoints import is_endpoint
from weft.base.errors import PeerError
from weft.base.identity import NODE_ID_BYTES
from weft.base.paths import is_key

NUMBER_BYTES: Final = 8
NUMBER_END: Final = 1 << 63  # the top bit stays 0, so that signed readers are safe (CFG-003)
NO_NUMBER: Final = bytes(NUMBER_BYTES)
ENDPOINT_BYTES_MAX: Final = 262  # a name of 255, a colon, a port
CHAINS: Final = "/.chains"
SUBTREE_BYTES_MAX: Final = 255 + len(CHAINS) + 1
_TEXT_LINES: Final = re.compile(r"(?:[A-Za-z0-9_.-]{1,64}=[^\n]*\n)*(?:[A-Za-z0-9_.-]{1,64}=[^\n]*)?")
_DECIMAL: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")


def read_number(frame: bytes, least: int = 0) -> int:
    """A u64 below 2**63 in network order, not below `least`."""
    if len(frame) == NUMBER_BYTES:
        number = int.from_bytes(frame)
        if least <= number < NUMBER_END:
            return number
    raise PeerError("sequence", f"{len(frame)} bytes, or out of range", frame)


def read_uuid(frame: bytes) -> bytes:
    """Sixteen bytes, or none: a foreign peer need not say it (CFG-014)."""
    if frame and len(frame) != NODE_ID_BYTES:
        raise PeerError("uuid", f"{len(frame)} bytes", frame)
    return frame


def read_node(frame: bytes) -> bytes:
    """Sixteen bytes."""
    if len(frame) != NODE_ID_BYTES:
        raise PeerError("uuid", f"{len(frame)} bytes", frame)
    return frame


def read_key(frame: bytes) -> str:
    """A key (CFG-004), or one behind `/.chains` (CFG-040)."""
    try:
        text = frame.decode("ascii")
    except UnicodeDecodeError:
        raise PeerError("key", "not of the letters of keys", frame) from None
    if is_key(text) or (text.startswith(CHAINS) and is_key(text[len(CHAINS) :])):
        return text
    raise PeerError("key", "not a key", frame)


def read_subtree(frame: bytes) -> str:
    """Empty, one exact key, or a prefix that ends in a slash (CFG-004)."""
    if not frame:
        return ""
    if frame[:1] == b"/" and len(frame) <= SUBTREE_BYTES_MAX:
        try:
            text = frame.decode("ascii")
        except UnicodeDecodeError:
            raise PeerError("subtree", "not of the letters of keys", frame) from None
        stem = text.removesuffix("/")
        if not stem or is_key(stem) or (stem.startswith(CHAINS) and is_key(stem[len(CHAINS) :])):
            return text
    raise PeerError("subtree", "neither empty, nor a key, nor a prefix", frame)


def read_endpoint(frame: bytes) -> str:
    """`host:port` of a port block."""
    if len(frame) <= ENDPOINT_BYTES_MAX:
        text = frame.decode("ascii", "replace")
        if is_endpoint(text):
            return text
    raise PeerError("endpoint", "not host:port", frame)


def read_lines(frame: bytes) -> dict[str, str] | None:
    r"""Text properties, `name=value\n` each, of which the last of a name counts (CFG-014); None: it is no such text."""
    try:
        text = frame.decode()
    except UnicodeDecodeError:
        return None
    if _TEXT_LINES.fullmatch(text) is None:
        return None
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals:
            found[name] = value
    return found


def read_decimal(text: str) -> float | None:
    """Seconds or milliseconds as text writes them; None: not a decimal number."""
    text = text.strip()
    return float(text) if _DECIMAL.fullmatch(text) else None


def is_count(value: Any) -> bool:
    """Whether a value of JSON is a whole number from 0 to below 2**63."""
    return type(value) is int and 0 <= value < NUMBER_END
