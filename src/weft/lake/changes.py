"""Decodes records of stream `store` into rows of the lake, so that Spark has nothing to decode.

A value that JSON cannot express is written as a map with one key, its tag: `{"$i": "1180…"}` an integer beyond 64 bits,
`{"$p": "a.b"}` a path, `{"$f": "nan"}` a float that is not finite; `{"$b": …}` and `{"$x": …}` as in all streams.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.errors import PeerError
from weft.base.records import StreamRecord
from weft.lake import body as bodies
from weft.lake.schemas import LONG_MAX, LONG_MIN
from weft.wire.store import path as paths

WORD_MAX: Final = (1 << 64) - 1  # the greatest integer that MessagePack and our JSON have without a tag
USERS: Final = (None, "auth")
"""The path below which a store keeps its users."""
_INTEGER, _PATH = 2, 3  # MessagePack extensions of the store (COD-002)
_ARRAYS: Final = (list, tuple)
# converting to decimal costs time quadratic in the width; wider integers stay as they are
INTEGER_BYTES_MAX: Final = 1024


class Change(NamedTuple):
    """The columns of one change."""

    key: str
    """The path as text (COD-005)."""
    body: bodies.Body
    """The value as JSON; empty if the entry was deleted."""
    attributes: dict[str, Any]
    """The attributes of the record, with `path` as a list of its elements."""


def change_of(record: StreamRecord) -> Change:
    """The columns of a change; `body.error` says why silver cannot take the row."""
    attributes = record.attributes
    key, error = record.key, _misfit(attributes)
    try:
        path = _path_of(record)
        attributes = {**attributes, "path": bodies.canonical([_element(element) for element in path])}
        key = paths.text_of(path)
    except (PeerError, bodies.BadBody, ValueError):
        error = error or "undecodable"
    body = bodies.decoded(record.payload, _value) if record.payload else bodies.Body(None, None)
    return Change(key, body._replace(error=error) if error else body, attributes)


def is_of_users(record: StreamRecord) -> bool:
    """Whether a change is of the store's tree of users, which holds hashes, salts and tokens (ADM-002).

    A change with an unreadable path counts as one of them, so that no secret shows.
    """
    try:
        return _path_of(record)[:2] == USERS
    except (PeerError, ValueError):
        return True


def _path_of(record: StreamRecord) -> tuple[Any, ...]:
    """The path, read from its bytes; the record's key may be truncated and then lacks elements."""
    packed = record.attributes.get("path")
    return paths.unpack_path(packed) if type(packed) is bytes else paths.parse(record.key)


def _element(element: Any) -> Any:
    if type(element) is int and not LONG_MIN <= element <= WORD_MAX:
        return bodies.Tagged("$i", str(element))
    return _with_tagged_floats(element)


def _misfit(attributes: Mapping[str, Any]) -> str | None:
    """The error of a change that cannot be compared with others of its entry; None if it can."""
    tock, is_deletion = attributes.get("tock"), attributes.get("deleted")
    if tock is None or is_deletion is None:
        return "missing-field"
    chain = attributes.get("chain", [])
    if type(tock) is not int or type(is_deletion) is not bool or type(chain) not in _ARRAYS:
        return "bad-type"
    if not all(type(link) in _ARRAYS and [type(part) for part in link] == [str, int] for link in chain):
        return "bad-type"
    return None if all(0 <= number <= LONG_MAX for number in (tock, *(tick for _, tick in chain))) else "out-of-range"


def _value(payload: bytes) -> str:
    value = msgspec.msgpack.decode(payload, ext_hook=_extension)
    try:
        return bodies.canonical(value)
    except bodies.BadBody as bad:
        if str(bad) != "bad-number":
            raise
        return bodies.canonical(_with_tagged_floats(value))


def _extension(code: int, data: memoryview) -> Any:
    raw = bytes(data)
    if code == _INTEGER and len(raw) <= INTEGER_BYTES_MAX:
        return bodies.Tagged("$i", str(int.from_bytes(raw, "big")))
    if code == _PATH:
        try:
            return bodies.Tagged("$p", paths.text_of(paths.unpack_path(raw)))
        except PeerError:
            pass  # treated like any other extension
    return msgspec.msgpack.Ext(code, raw)


def _with_tagged_floats(value: Any) -> Any:
    """The value with NaN and infinities written as text: the store accepts them, so silver must too."""
    if type(value) is float and not isfinite(value):
        return bodies.Tagged("$f", str(value))
    if type(value) is dict:
        return {_key(key): _with_tagged_floats(item) for key, item in value.items()}
    return [_with_tagged_floats(item) for item in value] if type(value) is list else value


def _key(key: Any) -> Any:
    return _with_tagged_floats(key) if type(key) is float else key
