"""Codecs by name: convert values between the store and some of its users (ADM-011).

Each is a pair of functions on plain values, which raise ValueError or TypeError for a value that they cannot convert.
Code that other servers keep in a codec's entry is stored and never run.
"""

import base64
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

Turn = Callable[[Any], Any]


class Codec(NamedTuple):
    """`out`: from the store to the user; `inward`: from the user to the store."""

    out: Turn
    inward: Turn


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text is needed")
    return value


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number is needed")
    return value


def _octets(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("bytes are needed")
    return value


def _switch(value: Any) -> str:
    if not isinstance(value, bool):
        raise TypeError("true or false is needed")
    return "on" if value else "off"


def _switched(value: Any) -> bool:
    try:
        return SWITCH[_text(value).lower()]
    except KeyError:
        raise ValueError("on or off is needed") from None


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _of_json(value: Any) -> Any:
    try:
        return msgspec.json.decode(_text(value), type=object)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


SWITCH: Final = {"on": True, "off": False}
CODECS: Final[dict[str, Codec]] = {
    "json": Codec(_as_json, _of_json),
    "int": Codec(lambda value: str(int(_number(value))), lambda value: int(_text(value))),
    "float": Codec(lambda value: repr(float(_number(value))), lambda value: float(_text(value))),
    "switch": Codec(_switch, _switched),
    "utf8": Codec(lambda value: _text(value).encode(), lambda value: _octets(value).decode()),
    "hex": Codec(lambda value: _octets(value).hex(), lambda value: bytes.fromhex(_text(value))),
    "base64": Codec(
        lambda value: base64.b64encode(_octets(value)).decode(),
        lambda value: base64.b64decode(_text(value), validate=True),
    ),
    "celsius": Codec(
        lambda value: round(_number(value) * 9 / 5 + 32, 9), lambda value: round((_number(value) - 32) * 5 / 9, 9)
    ),
}
"""Built in; `celsius`: the store holds degrees Celsius, the user sees Fahrenheit."""
