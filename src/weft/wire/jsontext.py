"""JSON as the configuration protocols use it (CFG-002).

It is written in a canonical form: sorted keys, no spaces, no escapes that UTF-8 does not need. Any layout is read, but
duplicate keys, NaN and infinities, lone surrogates and nesting over 16 are refused. Nothing is read that is longer than
the caller allows.
"""

import json
import math
import re
from typing import Any, Final, TypeVar

from weft.base.errors import PeerError
from weft.wire.multipart import BAD_SUM, sum_of

Key = TypeVar("Key")

NESTING_MAX: Final = 16
_STRING: Final = re.compile(rb'"(?>(?:[^"\\]|\\.)*)"?', re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_SUM_KEY: Final = b'"sum":"'
_SUM_BYTES: Final = len(_SUM_KEY) + len('01234567"}')
_PAIR_TYPES: Final = ("str", "int", "float", "bool", "EndpntSpec")


def encode(value: Any) -> bytes:
    """The one canonical text of a value.

    >>> encode({"rate": 1, "detail": "CPU"})
    b'{"detail":"CPU","rate":1}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def decode(data: bytes, bytes_max: int, code: str = "json") -> Any:
    """The value of a text; PeerError `too-large` beyond `bytes_max`, `code` for what is not JSON as above."""
    if len(data) > bytes_max:
        raise PeerError("too-large", f"{len(data)} bytes of JSON, {bytes_max} at most", data)
    if _depth_most(data) > NESTING_MAX:
        raise PeerError(code, f"nested deeper than {NESTING_MAX}", data)
    try:
        value = _DECODER.decode(data.decode())
        if b"\\u" in data:
            encode(value)  # a lone surrogate is in no UTF-8
    except (ValueError, RecursionError) as error:
        raise PeerError(code, str(error)[:200], data) from None
    return value


def decode_object(data: bytes, bytes_max: int, code: str) -> dict[str, Any]:
    """As `decode`, but only an object."""
    value = decode(data, bytes_max, code)
    if type(value) is not dict:
        raise PeerError(code, "not an object", data)
    return value


def unpaired(value: Any) -> Any:
    """A value that an older writer may have wrapped into a pair with the name of its type (TOP-012).

    >>> unpaired(["str", "leaf"]), unpaired(["EndpntSpec", {"host": "h", "port": 1}]), unpaired(["a:1", "b:2"])
    ('leaf', 'h:1', ['a:1', 'b:2'])
    """
    if type(value) is not list or len(value) != 2 or value[0] not in _PAIR_TYPES:
        return value
    kind, inner = value
    if kind == "EndpntSpec" and type(inner) is dict and inner.keys() >= {"host", "port"}:
        return f"{inner['host']}:{inner['port']}"
    return inner


def sealed(frames: list[bytes], at: int) -> list[bytes]:
    """The same frames, with their sum as the last name of the object at `at` (FLD-030); there must be none yet."""
    text = frames[at]
    begin = text[:-1] + b"," if len(text) > len(b"{}") else b"{"
    return [*frames[:at], begin + _sum(frames, at, begin), *frames[at + 1 :]]


def is_sealed(frames: list[bytes], at: int) -> bool:
    """Whether the object at `at` ends with a sum of the frames; PeerError `bad-sum`, if they were altered on the way."""
    begin, end = frames[at][:-_SUM_BYTES], frames[at][-_SUM_BYTES:]
    if not end.startswith(_SUM_KEY):
        return False
    if end != _sum(frames, at, begin):
        raise PeerError(BAD_SUM, "altered on the way", frames[0])
    return True


def unsealed(frames: list[bytes], at: int) -> list[bytes]:
    """The frames as they were before `sealed`; PeerError `bad-sum`, if they were altered on the way."""
    if not is_sealed(frames, at):
        return frames
    text = frames[at][:-_SUM_BYTES].removesuffix(b",") + b"}"
    return [*frames[:at], text, *frames[at + 1 :]]


def _sum(frames: list[bytes], at: int, begin: bytes) -> bytes:
    """The last bytes of the object at `at`, whose other bytes are `begin`: the sum, and the closing brace."""
    whole = [*frames[:at], begin, *frames[at + 1 :]]
    return b'%b%08x"}' % (_SUM_KEY, sum_of(whole[0], whole[1:]))


def _depth_most(data: bytes) -> int:
    """How deep it is nested; 0 if it has too few brackets to be too deep."""
    if data.count(b"[") + data.count(b"{") <= NESTING_MAX:
        return 0
    depth = most = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        most = max(most, depth)
    return most


def dict_of(pairs: list[tuple[Key, Any]]) -> dict[Key, Any]:
    """These pairs as a dict; ValueError if a key stands twice, of which a dict would keep the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number beyond doubles")
    return value


_DECODER: Final = json.JSONDecoder(object_pairs_hook=dict_of, parse_constant=_constant, parse_float=_float)
