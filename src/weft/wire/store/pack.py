"""Values: MessagePack that the core keeps as it came, and what is asked of it (STO-005, COD-001..003).

Extension 2 is an integer above 2^64-1, extension 3 a path; other extensions are kept untouched. Inside maps no key
stands twice, and lists or maps are no keys.
"""

import math
import struct
from collections.abc import Callable
from typing import Any, Final

import msgpack
import msgspec
from msgpack import ExtType

from weft.base.errors import PeerError
from weft.wire.store.path import big, number_of, pack_path, unpack_path

BIG, PATH = 2, 3
"""Codes of the extensions that mean something (COD-002)."""
LEFT_OUT: Final = b""
"""In place of a value that is too large to be kept: no value has these bytes; readers are told `too-large` (STO-005)."""
DEPTH_MAX: Final = 500  # of what members say: as deep as real servers can write
"""Arrays and maps inside one another."""


class PathValue(tuple):  # type: ignore[type-arg]  # elements as of a Path; a generic tuple has no exact type
    """A path that is a value, or a part of one: extension 3."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"PathValue({tuple(self)!r})"


def ext(code: int, body: bytes) -> ExtType:
    """An extension as `unpack` gives it; codes may be negative."""
    return tuple.__new__(ExtType, (code, body))


# Out


def pack(value: Any) -> bytes:
    """The MessagePack of a value; PeerError `unencodable` if there is none."""
    try:
        return msgpack.packb(value, default=_default, strict_types=True)  # type: ignore[no-any-return]  # untyped
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PeerError("unencodable", str(error)[:200]) from None


def _default(value: Any) -> Any:
    if isinstance(value, PathValue):
        return ext(PATH, pack_path(tuple(value)))
    if type(value) is int and value >= 1 << 64:
        return ext(BIG, big(value))
    for kind, plain in _PLAIN:
        if isinstance(value, kind) and type(value) is not kind:
            return plain(value)
    if type(value) is tuple:
        return list(value)
    raise TypeError(f"{type(value).__name__} is no value" if type(value) is not int else "an integer below -2^63")


_PLAIN: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes.__bytes__),
    (dict, dict),
    (list, list),
    (tuple, list),
)


# In


def unpack(raw: bytes) -> Any:
    """The value of its MessagePack; PeerError `malformed`."""
    _walk(raw)
    return _unpack(raw, object_pairs_hook=_map, ext_hook=_extension)


def check(raw: bytes, bytes_max: int, items_max: int = 0, depth_max: int = DEPTH_MAX) -> None:
    """That it is one value; PeerError `malformed`, or `too-large` beyond a limit. `items_max` 0: any number."""
    if len(raw) > bytes_max:
        raise PeerError("too-large", f"{len(raw)} bytes, {bytes_max} at most")
    unpack(raw)


def canonical(raw: bytes) -> bytes:
    """The one encoding that all encodings of an equal value share: shortest forms, map keys by their bytes (STO-005)."""
    _walk(raw)
    return pack(_unpack(raw, object_pairs_hook=_sorted_map, ext_hook=_extension))


def same_value(a: bytes | None, b: bytes | None) -> bool:
    """Whether two readings of one event agree: equal, or one is the other with its floats cut to four bytes (COD-001)."""
    if a is None or b is None or a == b:
        return a == b
    plain, other = canonical(a), canonical(b)
    return plain == other or plain == _cut(b) or _cut(a) == other


def fuller(a: bytes, b: bytes) -> bytes:
    """Of two that are the same value, the one whose floats are whole; `a` if both are."""
    return b if canonical(a) != canonical(b) and canonical(a) == _cut(b) else a


def _cut(raw: bytes) -> bytes:
    """The canonical encoding of a value that passed through a server with floats of four bytes."""
    return pack(_cut_value(_unpack(raw, object_pairs_hook=_sorted_map, ext_hook=_extension)))


def _cut_value(value: Any) -> Any:
    if type(value) is float:
        try:
            return struct.unpack(">f", struct.pack(">f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
    if type(value) is list:
        return [_cut_value(item) for item in value]
    if type(value) is dict:
        return {key: _cut_value(item) for key, item in value.items()}
    return value


def _walk(raw: bytes) -> None:
    """That the heads fit the bytes, before anything is allocated for what they claim."""
    try:
        msgspec.msgpack.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PeerError("malformed", str(error)) from None


def _unpack(raw: bytes, **hooks: Any) -> Any:
    try:
        return msgpack.unpackb(raw, strict_map_key=False, **hooks)  # tidy: behind _walk, bounded by the caller
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise PeerError("malformed", str(error)[:200]) from None


def _map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _sorted_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return dict(sorted(_map(pairs).items(), key=lambda pair: pack(pair[0])))


def _extension(code: int, body: bytes) -> Any:
    if code == BIG:
        return number_of(body)
    if code == PATH:
        try:
            return PathValue(unpack_path(body))
        except PeerError as error:
            raise ValueError(error.why) from None
    return ext(code, body)


def check_sound(raw: bytes) -> None:
    """That inside one object keys stand once, text is UTF-8, extensions 2 and 3 are what they say; PeerError `malformed`."""
    unpack(raw)
