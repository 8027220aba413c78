"""The options of the source. They are checked once, before any task starts (PIP-002)."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.errors import UserError
from weft.lake.layout import STREAMS, Layout, is_name
from weft.lake.objects import lake_path
from weft.lake.reader import ROWS_MAX, SEGMENTS_MAX, Limits, Slice
from weft.lake.schemas import SEGMENTS, Schema, spark_names

TASKS_MAX: Final = 8


class Options(NamedTuple):
    """The options of a reader."""

    lake: str
    stream: str
    start: str
    max_rows: int
    max_segments: int
    tasks: int
    columns: tuple[str, ...]
    include_errors: bool
    consumer: str
    verify: bool
    places: bool = False
    """Adds three columns with the place of each row: drain, segment and row."""
    slices: tuple[Slice, ...] | None = None
    """Read exactly these slices and nothing else; only for batch reads."""

    @property
    def layout(self) -> Layout:
        return Layout(lake_path(self.lake))

    @property
    def schema(self) -> Schema:
        return SEGMENTS[self.stream].only(self.columns)

    @property
    def limits(self) -> Limits:
        return Limits(self.max_rows, self.max_segments)


def parse_options(given: Mapping[str, str]) -> Options:
    """Typed options; UserError `bad-option` names the first one that is missing, unknown or wrong.

    `path`, which `load(path)` sets, is another name of `lake`.
    """
    named = {name.lower(): value for name, value in given.items()}
    if "path" in named:
        named.setdefault("lake", named.pop("path"))
    for name in named:
        if name not in USUAL:
            raise _bad(name, "is not an option", ", ".join(USUAL))
    for name in ("lake", "stream"):
        if not named.get(name):
            raise _bad(name, "is missing", f'.option("{name}", …)')
    values = {name: parse(named.get(name, usual)) for name, (parse, usual) in USUAL.items()}
    stream, columns = values["stream"], values.pop("columns")
    try:
        values["columns"] = spark_names(stream, columns)
    except KeyError as unknown:
        raise _bad("columns", f"{unknown} is no column of {stream}", ",".join(SEGMENTS[stream].names)) from None
    return Options(**values)


def _bad(name: str, why: str, try_this: str) -> UserError:
    return UserError("bad-option", f"option {name!r} of the source weft {why}", try_this)


def _number(name: str, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
            raise _bad(name, f"is {text!r}", f"a whole number from 1 to {most}")
        return int(text)

    return parse


def _switch(name: str) -> Callable[[str], bool]:
    def parse(text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise _bad(name, f"is {text!r}", "true or false")
        return text.lower() == "true"

    return parse


def _stream(text: str) -> str:
    if text not in STREAMS:
        raise _bad("stream", f"is {text!r}", ", ".join(STREAMS))
    return text


def _consumer(text: str) -> str:
    if text and not is_name(text):
        raise _bad("consumer", f"is {text!r}", "letters, digits, dot, dash and underscore")
    return text


def _slices(text: str) -> tuple[Slice, ...] | None:
    try:
        return msgspec.json.decode(text, type=tuple[Slice, ...]) if text else None
    except msgspec.MsgspecError as error:
        raise _bad("slices", f"cannot be read: {error}", "what slices_option of this source says") from None


def slices_option(slices: Sequence[Slice]) -> str:
    """Slices in the form that the option takes."""
    return msgspec.json.encode(slices).decode()


USUAL: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "lake": (str, ""),
    "stream": (_stream, ""),
    "start": (str, "earliest"),
    "max_rows": (_number("max_rows", 1 << 40), str(ROWS_MAX)),
    "max_segments": (_number("max_segments", 1 << 40), str(SEGMENTS_MAX)),
    "tasks": (_number("tasks", 1 << 12), str(min(os.cpu_count() or 1, TASKS_MAX))),
    "columns": (str, ""),
    "include_errors": (_switch("include_errors"), "true"),
    "consumer": (_consumer, ""),
    "verify": (_switch("verify"), "false"),
    "places": (_switch("places"), "false"),
    "slices": (_slices, ""),
}
"""How each option is parsed, and its default."""
