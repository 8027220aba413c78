"""Lines of all nouns: aligned cells, times, JSON."""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from weft.base.now import MILLISECOND, SECOND


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Cells as lines, each column as wide as its widest cell; nothing is cut off.

    >>> aligned([("place", "who"), ("after-all", "x")])
    ['place      who', 'after-all  x']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]], nothing: str) -> None:
    """Print rows, or a sentence that there are none."""
    rows = list(rows)
    print("\n".join(aligned([heads, *rows])) if rows else nothing)


def clock(at_ns: int) -> str:
    """An instant as the time of day here.

    >>> clock(1_763_800_000_123_000_000)[-4:]
    '.123'
    """
    seconds, rest = divmod(at_ns, SECOND)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{rest // MILLISECOND:03}"


def date_and_clock(seconds: float) -> str:
    """An instant, in seconds since 1970, as date and time of day here.

    ValueError, OverflowError or OSError if no calendar has it.

    >>> len(date_and_clock(1_763_800_000))
    19
    """
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def print_json(value: Any) -> None:
    """Print one line of JSON; it is written when this returns."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_compact(value: Any) -> None:
    """Print one line of JSON without spaces, also of what only msgspec writes: instants, bytes, records."""
    print(msgspec.json.encode(value).decode(), flush=True)
