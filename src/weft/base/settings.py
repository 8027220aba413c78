"""What every table of a settings file has: typed keys, spans of time, a report of all mistakes at once (CFG-071).

A mistake is one line of text: its code, its place in the file, a sentence. The codes that tables share:
E02 unknown key, E03 missing, E04 type or unit, E14 duplicate, E15 name.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, Final

from weft.base.now import MILLISECOND, SECOND

MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
UNITS: Final = {"ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
TEXT_BYTES_MAX: Final = 256  # what a person types in one key; longer texts have their own limits
FILE_BYTES_MAX: Final = 1 << 20
LINE_BYTES_MAX: Final = 4 << 10
DOTS_MAX: Final = 32  # of one key: the parser takes 29 s for a key of 50,000 parts (SEC-044)

_SPAN: Final = re.compile(r"(\d{1,15})(?:\.(\d{1,9}))? ?(ms|s|m|h|d)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}", re.ASCII)


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text, bounded before they are parsed (SEC-044); ValueError."""
    import tomllib  # a node gets its file already parsed

    if len(text) > FILE_BYTES_MAX:
        raise ValueError(f"longer than {FILE_BYTES_MAX} characters")
    for number, line in enumerate(text.split("\n"), 1):  # what else ends a line elsewhere is part of a name in TOML
        if len(line) > LINE_BYTES_MAX or line.partition("=")[0].count(".") > DOTS_MAX:
            raise ValueError(f"line {number} is too long or too deeply dotted")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def span_ns(value: object) -> int | None:
    """Nanoseconds of a span with unit, or of a number of seconds; None if it is neither (CFG-070).

    >>> span_ns("250ms"), span_ns("1.5h"), span_ns(10), span_ns(0.1), span_ns("10"), span_ns(True)
    (250000000, 5400000000000, 10000000000, 100000000, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value * SECOND if 0 <= value < 1 << 32 else None
    if isinstance(value, float):
        return round(value * SECOND) if math.isfinite(value) and 0 <= value < 1 << 32 else None
    match = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    whole, part, unit = str(match[1]), str(match[2] or ""), str(match[3])
    return int(whole) * UNITS[unit] + int(part.ljust(9, "0")) * UNITS[unit] // SECOND


def is_plain_name(text: str) -> bool:
    """Whether `text` can name a metric, a group or a filter: 1..63 letters, digits, `_`, `.`, `-` (CFG-020).

    >>> is_plain_name("nginx_mem"), is_plain_name("-x"), is_plain_name("a b")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, as the end of a sentence; empty if none is near.

    >>> nearest("rte", ["rate", "param"])
    ', did you mean `rate`?'
    """
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1)
    return f", did you mean `{found[0]}`?" if found else ""


class Table:
    """Reads one table key by key. A mistake is noted with code and place; a default is used, and reading goes on."""

    def __init__(self, values: object, path: str, mistakes: list[str]) -> None:
        self.path, self.mistakes = path, mistakes
        self._values: dict[str, Any] = {}
        self._known: list[str] = []
        if isinstance(values, dict):
            self._values = values
        else:
            mistakes.append(f"E04 {path}: must be a table")

    def say(self, code: str, key: str, text: str) -> None:
        """Note a mistake at `key` (empty: the table itself)."""
        self.mistakes.append(f"{code} {self.path}{'.' if key else ''}{key}: {text}")

    def __contains__(self, key: str) -> bool:
        """Whether the key is given."""
        return key in self._values

    def raw(self, key: str, *, is_required: bool = False) -> Any:
        """The value as it stands, None if absent; E03 if it is required."""
        self._known.append(key)
        if is_required and key not in self._values:
            self.say("E03", key, "is missing")
        return self._values.get(key)

    def text(self, key: str, default: str = "", *, is_required: bool = False) -> str:
        """Text of at most TEXT_BYTES_MAX bytes."""
        value = self.raw(key, is_required=is_required)
        if value is None:
            return default
        if isinstance(value, str) and len(value.encode("utf-8", "replace")) <= TEXT_BYTES_MAX:
            if is_required and not value:
                self.say("E03", key, "is empty")
            return value
        self.say("E04", key, f"must be text of at most {TEXT_BYTES_MAX} bytes")
        return default

    def choice(self, key: str, known: Iterable[str], default: str) -> str:
        """One of the known words."""
        words = list(known)
        value = self.text(key, default)
        if value == default or value in words:
            return value
        self.say("E04", key, f"{value!r} is none of {', '.join(words)}{nearest(value, words)}")
        return default

    def span(self, key: str, default: int) -> int:
        """A span in nanoseconds."""
        value = self.raw(key)
        if value is None:
            return default
        span = span_ns(value)
        if span is None:
            self.say("E04", key, f"{value!r} is no span of time: a number of seconds, or one with ms, s, m, h or d")
        return default if span is None else span

    def number(self, key: str) -> float | int | None:
        """A finite number, None if absent."""
        value = self.raw(key)
        if value is None or _is_number(value):
            return value  # type: ignore[no-any-return]  # just looked at
        self.say("E04", key, f"{value!r} is no number")
        return None

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.say("E04", key, f"{value!r} is no whole number from {low} to {high}")
        return default

    def flag(self, key: str) -> bool:
        """A truth value; false if absent."""
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            self.say("E04", key, f"{value!r} is neither true nor false")
        return value is True

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; one text alone is a list of one."""
        value = self.raw(key)
        items = [] if value is None else [value] if isinstance(value, str) else value
        if isinstance(items, list) and all(isinstance(item, str) and len(item) <= TEXT_BYTES_MAX for item in items):
            return tuple(items)
        self.say("E04", key, "must be a list of short texts")
        return ()

    def end(self) -> None:
        """Note every key that was not read (E02)."""
        for key in self._values:
            if key not in self._known:
                self.say("E02", key, f"is not known here{nearest(key, self._known)}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
