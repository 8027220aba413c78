"""Paths of entries: as bytes, in their normal form, and as people write them (STO-004, COD-002, COD-005).

    body     = the elements' MessagePack in a row, without a head: what stands in extension 3
    text     = ":"  /  element *( "." string / typed )            an element of another type needs no dot before it
    string   = 1*( "::" / ":." / ":_" / ":u" HEX "-" / other )    colon, dot, space, a character that cannot be seen
    typed    = ":" ( integer / float / "t" / "f" / "n" / "e" / "v" string / "s" base64 )    read only: ":xHEX :bBIN :yHEX"

Two normal paths are one entry if and only if their bodies are equal: `key_of`.
"""

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Final, NoReturn, TypeGuard

import msgspec

from weft.base.changes import Element, Path
from weft.base.errors import PeerError

ELEMENTS_MAX: Final = 64  # STO-004
BODY_BYTES_MAX: Final = 1_024  # STO-004
TEXT_CHARACTERS_MAX: Final = 8_192  # a body of control characters, each written as `:u1f-`, and what stands around it
HEAD_BYTES_MAX: Final = 3  # the longest head of a text within BODY_BYTES_MAX
INTEGER_MIN: Final = -(1 << 63)
DIGITS_MAX: Final = 2_500  # of an integer of BODY_BYTES_MAX bytes

_encode: Final = msgspec.msgpack.Encoder().encode


def _refuse(why: str) -> NoReturn:
    raise PeerError("bad-path", why)


# Bytes


def pack_path(path: Path) -> bytes:
    """The body of extension 3. PeerError `bad-path` for an element that MessagePack cannot hold.

    >>> pack_path(("a", 1)).hex()
    'a16101'
    """
    try:
        packed = _encode(path)
    except (OverflowError, UnicodeEncodeError, TypeError, ValueError):
        return b"".join(map(_packed, path))
    return packed[1 if len(path) < 16 else 3 if len(path) < 1 << 16 else 5 :]


def _packed(element: Element) -> bytes:
    if type(element) is int and element >= 1 << 64:
        return extension(2, big(element))
    try:
        return _encode(element)
    except (OverflowError, UnicodeEncodeError, TypeError, ValueError) as error:
        raise PeerError("bad-path", str(error)) from None


def big(number: int) -> bytes:
    """The body of extension 2: unsigned, big-endian, minimal (COD-002)."""
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def number_of(body: bytes) -> int:
    """The number of a body of extension 2; PeerError `malformed` if a plain integer would have done."""
    if len(body) <= 8 or not body[0]:
        raise PeerError("malformed", "a big integer that is not minimal")
    return int.from_bytes(body, "big")


def extension(code: int, body: bytes) -> bytes:
    """A whole extension, head and body."""
    return _encode(msgspec.msgpack.Ext(code, body))


def unpack_path(body: bytes) -> Path:
    """The elements of a body; PeerError `bad-path` if anything else stands in it. How long it is, `normal` judges."""
    return _short(body) if len(body) <= BODY_BYTES_MAX else _elements(body)


def _elements(body: bytes) -> Path:
    elements: list[Element] = []
    element: Element
    at, size = 0, len(body)
    while at < size:
        head = body[at]
        if 0xA0 <= head < 0xC0:
            begin, at = at + 1, at + head - 0x9F
            element = _utf8(body, begin, at)
        elif head < 0x80:
            element, at = head, at + 1
        elif head >= 0xE0:
            element, at = head - 0x100, at + 1
        elif head in _READERS:
            element, at = _READERS[head](body, at + 1)
        else:
            _refuse("an element that is no text, bytes, number or constant")
        elements.append(element)
    return tuple(elements)


_short: Final = lru_cache(maxsize=4_096)(_elements)
"""Paths come again and again; only those of entries are remembered, a few MB of them."""

_Read = tuple[Element, int]


def _take(body: bytes, start: int, size: int) -> bytes:
    taken = body[start : start + size]
    if len(taken) < size:
        _refuse("it ends inside an element")
    return taken


def _text(body: bytes, start: int, size: int) -> _Read:
    return _utf8(body, start, start + size), start + size


def _utf8(body: bytes, start: int, end: int) -> str:
    if end > len(body):
        _refuse("it ends inside an element")
    try:
        return str(body[start:end], "utf-8")
    except UnicodeDecodeError:
        _refuse("text that is not UTF-8")


def _sized_text(width: int) -> Callable[[bytes, int], _Read]:
    return lambda body, at: _text(body, at + width, int.from_bytes(_take(body, at, width), "big"))


def _sized_bytes(width: int) -> Callable[[bytes, int], _Read]:
    def read(body: bytes, at: int) -> _Read:
        size = int.from_bytes(_take(body, at, width), "big")
        return _take(body, at + width, size), at + width + size

    return read


def _fixed(form: str) -> Callable[[bytes, int], _Read]:
    size = struct.calcsize(form)

    def read(body: bytes, at: int) -> _Read:
        (number,) = struct.unpack(form, _take(body, at, size))
        if math.isnan(number):
            _refuse("not a number")
        return number, at + size

    return read


def _number(body: bytes, at: int, size: int) -> _Read:
    if _take(body, at, 1) != b"\x02":
        _refuse("an extension that is no number")
    try:
        return number_of(_take(body, at + 1, size)), at + 1 + size
    except PeerError as error:
        _refuse(error.why)


def _sized_number(width: int) -> Callable[[bytes, int], _Read]:
    return lambda body, at: _number(body, at + width, int.from_bytes(_take(body, at, width), "big"))


_READERS: Final[dict[int, Callable[[bytes, int], _Read]]] = {
    0xC0: lambda _, at: (None, at),
    0xC2: lambda _, at: (False, at),
    0xC3: lambda _, at: (True, at),
    **{0xC4 + i: _sized_bytes(1 << i) for i in range(3)},
    **{0xC7 + i: _sized_number(1 << i) for i in range(3)},
    0xCA: _fixed(">f"),
    0xCB: _fixed(">d"),
    **{0xCC + i: _fixed(form) for i, form in enumerate((">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"))},
    0xD8: lambda body, at: _number(body, at, 16),
    **{0xD9 + i: _sized_text(1 << i) for i in range(3)},
}


# Which entry


def normal(path: Path, keys: str) -> Path:
    """The path under which its entry is kept; PeerError `bad-path` if there is none (STO-004).

    `keys` is `seed` (elements equal in type and value are one, "" and b"" too) or `moat` (equal numbers are one).
    """
    if len(path) > ELEMENTS_MAX:
        _refuse(f"more than {ELEMENTS_MAX} elements")
    if _is_short_text(path):
        return path
    normals = _NORMALS[keys]
    found: list[Element] = []
    for place, element in enumerate(path):
        kind = type(element)
        if kind is not str:
            if kind not in normals or (element is None and place):
                _refuse("an element that may not stand there")
            element = normals[kind](element)  # noqa: PLW2901  # its normal form
        found.append(element)
    if len(pack_path(tuple(found))) > BODY_BYTES_MAX:
        _refuse(f"more than {BODY_BYTES_MAX} bytes")
    return tuple(found)


def _is_short_text(path: Path) -> bool:
    """Whether it is text alone, and short however it is packed: most paths are, and are normal."""
    characters = 0
    for element in path:
        if type(element) is not str or not element.isascii():
            return False
        characters += len(element)
    return characters + HEAD_BYTES_MAX * len(path) <= BODY_BYTES_MAX


def key_of(path: Path) -> bytes:
    """What tells the entry of a normal path from all others."""
    return pack_path(path)


def _same(element: Element) -> Element:
    if type(element) is int and element < INTEGER_MIN:
        _refuse("an integer below -2^63")
    return element


def _as_number(element: Element) -> Element:
    assert type(element) is float
    if math.isnan(element):
        _refuse("not a number")
    return int(element) if element.is_integer() and element >= INTEGER_MIN else element


_NORMALS: Final[dict[str, dict[type, Callable[[Element], Element]]]] = {
    "seed": {int: _same, bool: _same, type(None): _same, bytes: lambda element: element or ""},
    "moat": {int: _same, bool: lambda element: int(bool(element)), type(None): _same, bytes: _same, float: _as_number},
}


# Text

_ESCAPED: Final = re.compile(r"[:. ]|[^\x21-\x7e]")
_TOKEN: Final = re.compile(r":[:._]|:u([0-9a-fA-F]{1,6})-|(:)|(\.)|([^:.]+)")
_BODY: Final = re.compile(r"(?:[^:.]|:[:._]|:u[0-9a-fA-F]{1,6}-)*")
_PRINTABLE: Final = re.compile(rb"[\x20-\x7e]*")


def text_of(path: Path) -> str:
    """The path as people write it.

    >>> text_of(("a", 1, "b c")), text_of((None, "auth")), text_of(())
    ('a:1.b:_c', ':n.auth', ':')
    """
    if not path:
        return ":"
    if _is_text(path) and "" not in path and not _ESCAPED.search("".join(path)):
        return ".".join(path)
    first, *rest = path
    elements = (_string_text(e, ".") if type(e) is str and e else _typed_text(e) for e in rest)
    head = _string_text(first, "") if type(first) is str and first else _typed_text(first)
    return "".join(chain((head,), elements))


def _is_text(path: Path) -> TypeGuard[tuple[str, ...]]:
    return {*map(type, path)} == {str}


def _string_text(element: str, before: str) -> str:
    return before + _ESCAPED.sub(_escape, element)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f":u{ord(character):x}-"


_ESCAPES: Final = {":": "::", ".": ":.", " ": ":_"}


def _typed_text(element: Element) -> str:
    if type(element) is bytes:
        if _PRINTABLE.fullmatch(element):
            return ":v" + _string_text(element.decode("ascii"), "")
        return ":s" + base64.b64encode(element).decode("ascii")
    if type(element) is bool:
        return ":t" if element else ":f"
    if type(element) is float:
        return ":" + repr(element).replace(".", ":.")
    if element is None:
        return ":n"
    return f":{element:d}" if type(element) is int else ":e"


def parse(text: str) -> Path:
    """The path of a text; PeerError `bad-path`. Nothing is ever evaluated.

    >>> parse("a:1.b:_c")
    ('a', 1, 'b c')
    """
    if text == ":":
        return ()
    if not text or len(text) > TEXT_CHARACTERS_MAX:
        _refuse("no text, or too much of it")
    found: list[Element] = []
    at = 0
    while at < len(text):
        element, at = _next_element(text, at)
        found.append(element)
    return tuple(found)


def _next_element(text: str, at: int) -> tuple[Element, int]:
    is_typed = text[at] == ":" and text[at + 1 : at + 2] not in (":", ".", "_", "u")
    if is_typed:
        at += 1
    elif at:
        if text[at] != ".":
            _refuse("an element begins without a dot")
        at += 1
    match = _BODY.match(text, at)
    assert match is not None, "it may be empty"
    if not match[0]:
        _refuse("an empty element")
    body = _ESCAPE.sub(_unescape, match[0])
    return _typed(body) if is_typed else body, match.end()


_ESCAPE: Final = re.compile(r":(?:([:._])|u([0-9a-fA-F]{1,6})-)")
_PLAIN: Final = {":": ":", ".": ".", "_": " "}


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return _PLAIN[match[1]]
    code = int(match[2], 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        _refuse("no character has that number")
    return chr(code)


_INTEGER: Final = re.compile(r"-?[0-9]+")
_FLOAT: Final = re.compile(r"-?(?:[0-9]+\.[0-9]+(?:e[+-]?[0-9]+)?|[0-9]+e[+-]?[0-9]+|inf)")
_LETTERS: Final[dict[str, Element]] = {"t": True, "f": False, "n": None, "e": ""}


def _typed(body: str) -> Element:
    """What an element that starts with a colon means."""
    if body in _LETTERS:
        return _LETTERS[body]
    if _INTEGER.fullmatch(body) and len(body) <= DIGITS_MAX:
        return _same(int(body))
    if _FLOAT.fullmatch(body):
        return _float(body)
    if body[0] not in _FORMS:
        _refuse("an element of no known type")
    pattern, meaning = _FORMS[body[0]]
    if not pattern.fullmatch(body, 1):
        _refuse(f"`:{body[0]}` of something else")
    return meaning(body[1:])


def _float(body: str) -> float:
    number = float(body)
    if math.isinf(number) and not body.endswith("inf"):
        _refuse("a number beyond doubles")
    return number


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        _refuse("no base64")


_FORMS: Final[dict[str, tuple[re.Pattern[str], Callable[[str], Element]]]] = {
    "v": (re.compile(r"[\x00-\x7f]*"), lambda text: text.encode("ascii")),
    "s": (re.compile(r"[A-Za-z0-9+/]+={0,2}"), _unbase64),
    "x": (re.compile(r"[0-9a-fA-F]{1,2048}"), lambda text: int(text, 16)),
    "b": (re.compile(r"[01]{1,8192}"), lambda text: int(text, 2)),
    "y": (re.compile(r"(?:[0-9a-fA-F]{2})+"), bytes.fromhex),
}
