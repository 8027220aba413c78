"""Changes of the store as rows of the lake: what a record of stream `store` says, so that Spark decodes nothing.

A value may hold what JSON has no form for. It stands there as a map of one tag: `{"$i": "1180…"}` an integer beyond 64
bits, `{"$p": "a.b"}` a path, `{"$f": "nan"}` a number that is none; `{"$b": …}` and `{"$x": …}` as in all streams.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.errors import PeerError
from weft.base.records import StreamRecord
from weft.lake import body as bodies
from weft.wire.store import path as paths

LONG_MAX: Final = (1 << 63) - 1
LONG_MIN: Final = -(1 << 63)
WORD_MAX: Final = (1 << 64) - 1  # the greatest integer that MessagePack and our JSON have without a tag
USERS: Final = (None, "auth")
"""Where the users of a store stand."""
_INTEGER, _PATH = 2, 3  # MessagePack extensions of the store (COD-002)
_ARRAYS: Final = (list, tuple)
INTEGER_BYTES_MAX: Final = 1024  # written out in decimal costs the square of it; wider ones stay as they are


class Change(NamedTuple):
    """What a record says, in columns."""

    key: str
    """The path as text (COD-005)."""
    body: bodies.Body
    """The value; no text: the entry was deleted."""
    attributes: dict[str, Any]
    """Those of the record, `path` as its elements."""


def change_of(record: StreamRecord) -> Change:
    """The columns of a change; `body.error` says why it can be no row of silver."""
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

    A path that cannot be read is taken for one of it.
    """
    try:
        return _path_of(record)[:2] == USERS
    except (PeerError, ValueError):
        return True


def _path_of(record: StreamRecord) -> tuple[Any, ...]:
    """The path as its bytes say; the key may be cut, and cannot say every element."""
    packed = record.attributes.get("path")
    return paths.unpack_path(packed) if type(packed) is bytes else paths.parse(record.key)


def _element(element: Any) -> Any:
    if type(element) is int and not LONG_MIN <= element <= WORD_MAX:
        return bodies.Tagged("$i", str(element))
    return _with_all_floats(element)


def _misfit(attributes: Mapping[str, Any]) -> str | None:
    """Why a change cannot be compared with others of its entry."""
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
        return bodies.canonical(_with_all_floats(value))


def _extension(code: int, data: memoryview) -> Any:
    raw = bytes(data)
    if code == _INTEGER and len(raw) <= INTEGER_BYTES_MAX:
        return bodies.Tagged("$i", str(int.from_bytes(raw, "big")))
    if code == _PATH:
        try:
            return bodies.Tagged("$p", paths.text_of(paths.unpack_path(raw)))
        except PeerError:
            pass  # kept as any other extension
    return msgspec.msgpack.Ext(code, raw)


def _with_all_floats(value: Any) -> Any:
    """The value with what is no number, or infinite, in words: the store takes it, so silver has it."""
    if type(value) is float and not isfinite(value):
        return bodies.Tagged("$f", str(value))
    if type(value) is dict:
        return {_number(key): _with_all_floats(item) for key, item in value.items()}
    return [_with_all_floats(item) for item in value] if type(value) is list else value


def _number(key: Any) -> Any:
    return _with_all_floats(key) if type(key) is float else key
