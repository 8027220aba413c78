"""Values: MessagePack that the core keeps as it came, and what is asked of it (STO-005, COD-001..003).

Extension 2 is an integer above 2^64-1, extension 3 a path; other extensions are kept untouched. Inside maps no key
stands twice, and lists or maps are no keys.
"""

import math
import re
import struct
from collections.abc import Callable
from typing import Any, Final

import msgpack
import msgspec
from msgpack import ExtType
from msgspec import Raw

from weft.base.errors import PeerError
from weft.wire.jsontext import dict_of
from weft.wire.store.path import big, number_of, pack_path, unpack_path

BIG, PATH = 2, 3
"""Codes of the extensions that mean something (COD-002)."""
LEFT_OUT: Final = b""
"""In place of a value that is too large to be kept: no value has these bytes; readers get `too-large` (STO-005)."""
DEPTH_MAX: Final = 500  # of what members say: as deep as real servers can write
"""Arrays and maps inside one another."""
SLOW_ITEMS_MAX: Final = 100_000  # of a value that the library cannot read: a tenth of a second


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
    except (TypeError, ValueError, OverflowError, RecursionError, PeerError) as error:
        raise PeerError("unencodable", str(error)[:200]) from None


def _default(value: Any) -> Any:
    if isinstance(value, PathValue):
        return ext(PATH, pack_path(tuple(value)))
    if type(value) is int and value >= 1 << 64:
        return ext(BIG, big(value))
    if type(value) is tuple:
        return list(value)
    for kind, plain in _PLAIN:
        if isinstance(value, kind) and type(value) is not kind:
            return plain(value)
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
    return _unpack(raw, object_pairs_hook=dict_of)


def check(raw: bytes, bytes_max: int, items_max: int = 0, depth_max: int = DEPTH_MAX) -> None:
    """Check that it is one value as above; PeerError `malformed`, or `too-large` beyond a limit. Nothing is built of it.

    Each value, each key and each array or map is an item; `items_max` 0: any number.
    """
    if len(raw) > bytes_max:
        raise PeerError("too-large", f"{len(raw)} bytes, {bytes_max} at most")
    _walk(raw)
    if is_plain_text(raw):
        return
    if (items_max and len(raw) > items_max) or len(raw) - len(raw.translate(None, _CONTAINERS)) > depth_max:
        _count(raw, items_max or len(raw), depth_max)
    elif raw[0] not in SCALARS or len(raw) > _LONGEST_SCALAR:
        _survey(raw, object_pairs_hook=_no_map, list_hook=_no_list)


_CONTAINERS: Final = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
"""Heads of arrays and maps: no value is nested deeper than it has such bytes."""
SCALARS: Final = frozenset((*range(0x80), 0xC0, 0xC2, 0xC3, 0xC4, *range(0xCA, 0xD4), *range(0xE0, 0x100)))
"""Heads of values that cannot be wrong: integers, floats, constants, short bytes."""
_LONGEST_SCALAR: Final = 2 + 255


def is_plain_text(raw: bytes) -> bool:
    """Whether bytes that are one value are plain ASCII text, so they need no further check."""
    head = raw[0]
    if head == SHORT_TEXT:
        return raw[2:].isascii()
    return 0xA0 <= head < 0xC0 and raw[1:].isascii()


SHORT_TEXT: Final = 0xD9
_LIST: Final[list[Any]] = []
_MAP: Final[dict[Any, Any]] = {}
"""Stand for what was looked at and let go; no keys, as what they stand for."""


def _no_list(_: list[Any]) -> list[Any]:
    return _LIST


def _no_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    dict_of(pairs)
    return _MAP


class _Closed(list[Any]):
    """Stands for an array or map that was counted."""

    __slots__ = ("depth",)

    def __init__(self, depth: int) -> None:
        self.depth = depth


def _count(raw: bytes, items_max: int, depth_max: int) -> None:
    closed = [_Closed(depth) for depth in range(depth_max + 1)]
    items = 1

    def close(inside: list[Any]) -> _Closed:
        if not inside and depth_max:
            return closed[1]  # a hostile value may have very many empty arrays: each costs no more than this
        nonlocal items
        items += len(inside)
        depth = 0
        for item in inside:
            if type(item) is _Closed and item.depth > depth:
                depth = item.depth
        if items > items_max or depth >= depth_max:
            raise PeerError("too-large", f"more than {items_max} items, or deeper than {depth_max}")
        return closed[depth + 1]

    def close_map(pairs: list[tuple[Any, Any]]) -> _Closed:
        return close([*dict_of(pairs).keys(), *(value for _, value in pairs)]) if pairs else close(pairs)

    _survey(raw, object_pairs_hook=close_map, list_hook=close)


# The same


def canonical(raw: bytes) -> bytes:
    """The one encoding of all equal values: shortest forms, map keys ordered by their bytes (STO-005)."""
    _walk(raw)
    return pack(_unpack(raw, object_pairs_hook=_sorted_map))


def same_value(a: bytes | None, b: bytes | None) -> bool:
    """Whether two readings of one event agree: equal, or one is the other with its floats cut to four bytes (COD-001).

    A value that cannot be read whole equals only itself; nothing is ever raised.
    """
    if a is None or b is None or a == b:
        return a == b
    if not a or not b:
        return False  # the value of one was left out
    try:
        plain, other = canonical(a), canonical(b)
        return plain == other or plain == _cut(b) or _cut(a) == other
    except PeerError:
        return False


def fuller(a: bytes, b: bytes) -> bytes:
    """Of two that are the same value, the one whose floats are whole, whichever came first (COD-001)."""
    plain, other = canonical(a), canonical(b)
    if plain == other:
        return max((len(a), a), (len(b), b))[1]
    return b if plain == _cut(b) else a


def _cut(raw: bytes) -> bytes:
    """The canonical encoding of a value after a server that has floats of four bytes."""
    return pack(_cut_float(_unpack(raw, object_pairs_hook=_cut_map, list_hook=_cut_list)))


def _cut_float(value: Any) -> Any:
    if type(value) is not float:
        return value
    try:
        return struct.unpack(">f", struct.pack(">f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _cut_list(items: list[Any]) -> list[Any]:
    return [_cut_float(item) for item in items]


def _cut_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return _sorted_map([(_cut_float(key), _cut_float(value)) for key, value in pairs])


def _sorted_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return dict(sorted(dict_of(pairs).items(), key=lambda pair: pack(pair[0])))


# Shared by the functions above


def _walk(raw: bytes) -> None:
    """Check that the claimed lengths fit the bytes, before anything is allocated for them."""
    try:
        _raw(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PeerError("malformed", str(error)) from None


_raw: Final = msgspec.msgpack.Decoder(Raw).decode


def _unpack(raw: bytes, **hooks: Any) -> Any:
    """The value, built with these hooks; `_walk` has checked it before."""
    if _INSTANT.search(raw):
        return _unpack_slowly(raw, **hooks)
    return _unpack_fast(raw, **hooks)


def _survey(raw: bytes, **hooks: Any) -> None:
    """As `_unpack`, for the sake of the hooks only: the result is not used."""
    try:
        _unpack_fast(raw, **hooks)
    except PeerError as error:
        if error.code != "malformed" or not _INSTANT.search(raw):
            raise
        _unpack_slowly(raw, **hooks)


_INSTANT: Final = re.compile(rb"[\xd4-\xd8]\xff|\xc7.\xff|\xc8..\xff|\xc9....\xff", re.DOTALL)
"""What may be extension -1: the library takes it for an instant, and not every body of it for one."""


def _unpack_fast(raw: bytes, **hooks: Any) -> Any:
    try:
        return msgpack.unpackb(raw, strict_map_key=False, ext_hook=_extension, **hooks)  # tidy: `_walk` went before
    except (ValueError, TypeError) as error:
        raise PeerError("malformed", str(error)[:200]) from None


def _unpack_slowly(
    raw: bytes,
    object_pairs_hook: Callable[[list[tuple[Any, Any]]], Any],
    list_hook: Callable[[list[Any]], Any] = list,
) -> Any:
    """The same, item by item."""
    try:
        return _Reader(raw, object_pairs_hook, list_hook).read()
    except (ValueError, TypeError) as error:
        raise PeerError("malformed", str(error)[:200]) from None


class _Reader:
    """One value, read item by item."""

    def __init__(self, raw: bytes, map_hook: Callable[[Any], Any], list_hook: Callable[[list[Any]], Any]) -> None:
        self._raw, self._map_hook, self._list_hook = raw, map_hook, list_hook
        self._unpacker = unpacker(raw)

    def read(self) -> Any:
        """The value; ValueError or TypeError if it is none."""
        open_: list[tuple[list[Any], int, Callable[[list[Any]], Any]]] = [([], 1, list)]
        for _ in range(SLOW_ITEMS_MAX):
            self._take(open_)
            while len(open_[-1][0]) == open_[-1][1]:
                items, _, close = open_.pop()
                if not open_:
                    return items[0]
                open_[-1][0].append(close(items))
        raise ValueError("too many items beside an instant")

    def _take(self, open_: list[tuple[list[Any], int, Callable[[list[Any]], Any]]]) -> None:
        at = self._unpacker.tell()
        head = self._raw[at]
        if 0x90 <= head < 0xA0 or head in (0xDC, 0xDD):
            open_.append(([], self._unpacker.read_array_header(), self._list_hook))
        elif 0x80 <= head < 0x90 or head in (0xDE, 0xDF):
            open_.append(([], 2 * self._unpacker.read_map_header(), self._close_map))
        else:
            self._unpacker.skip()
            open_[-1][0].append(_scalar(self._raw[at : self._unpacker.tell()]))

    def _close_map(self, items: list[Any]) -> Any:
        return self._map_hook(list(zip(items[::2], items[1::2], strict=True)))


def _scalar(raw: bytes) -> Any:
    body = body_at(raw)
    if body and raw[body - 1] == 0xFF:
        return ext(-1, raw[body:])
    return msgpack.unpackb(raw, ext_hook=_extension)  # tidy: one item, `_walk` went before


def body_at(raw: bytes) -> int:
    """Where the body of an extension begins, behind its code; 0: it is none."""
    return _BODIES.get(raw[0], 0)


_BODIES: Final = {**dict.fromkeys(range(0xD4, 0xD9), 2), 0xC7: 3, 0xC8: 4, 0xC9: 6}


def unpacker(data: bytes) -> Any:
    """A reader of the heads of these bytes."""
    reader = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(data) + 1)
    reader.feed(data)
    return reader


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
    """`check` without limits but depth."""
    check(raw, len(raw))
