"""Formats the catalog's data for people and for programs; escape sequences never reach the terminal (LOG-009)."""

import json as to_json
import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from weft.cli.kit.text import clean, clean_bytes
from weft.cli.octets import payload_json
from weft.client.catalog.entries import Entry, Value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES: Final = {
    **dict.fromkeys(("active", "passing", "ok", "fine"), "green"),
    **dict.fromkeys(("suspect", "warning", "WARNING", "WARN", "stale"), "yellow"),
    **dict.fromkeys(("inactive", "critical", "ERROR", "CRITICAL", "FATAL", "broken"), "red"),
}
"""Styles by the text of a cell."""
HEADS: Final = ("name", "instance", "address", "state", "health", "since", "tags")
MINUTE, HOUR, DAY = 60, 3_600, 86_400


def print_json(value: Any) -> None:
    """One line."""
    print(to_json.dumps(value, separators=(",", ":")), flush=True)


def document(entry: Entry) -> dict[str, Any]:
    """An instance as JSON: the broker's record, and the address to call."""
    place = entry.address
    facts = {"name": entry.name, "instance": entry.instance, "address": str(place) if place else None}
    return {**facts, "record": {**entry.record, "_dbp": entry.facts} if entry.facts else entry.record}


def values_json(value: Value) -> dict[str, Any]:
    """A published value as JSON."""
    facts = {name: fact for name, fact in value._asdict().items() if name not in ("frames", "is_stale")}
    return {**facts, "stale": value.is_stale, "frames": [payload_json(frame) for frame in value.frames]}


def frames_line(frames: Iterable[bytes]) -> str:
    r"""Frames on one line.

    >>> frames_line([b"21.5", b"\xff", b"a\x07"])
    "21.5 b'\\xff' a\\x07"
    """
    return " ".join(map(clean_bytes, frames))


def rows(entries: Iterable[Entry], now: float) -> list[tuple[str, ...]]:
    """Instances as rows under `HEADS`."""
    return [
        (
            entry.name,
            entry.instance,
            str(entry.address or "-"),
            entry.state,
            entry.health,
            age(entry.facts.get("since"), now),
            " ".join(entry.tags) or "-",
        )
        for entry in entries
    ]


def age(at: Any, now: float) -> str:
    """How long ago that was.

    >>> age(100.0, 103.2), age(0, 200), age(0, 100_000), age(None, 1.0)
    ('3 s', '3 min', '27 h', '-')
    """
    if not isinstance(at, int | float) or isinstance(at, bool):
        return "-"
    return span(max(0.0, now - at))


def span(seconds: float) -> str:
    """A time span for people.

    >>> span(0.0123), span(2.5), span(90), span(3 * 86_400)
    ('12.3 ms', '2 s', '1 min', '3 d')
    """
    if seconds < 1:
        return f"{seconds * 1_000:.1f} ms" if seconds else "0 s"
    for unit, word in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= (2 * unit if unit == DAY else unit):
            return f"{int(seconds // unit)} {word}"
    return f"{int(seconds)} s"


def clock(at: Any) -> str:
    """An instant as the time of day here.

    >>> clock(None), len(clock(1.5))
    ('--:--:--', 8)
    """
    return time.strftime("%H:%M:%S", time.localtime(at)) if isinstance(at, int | float) and at else "--:--:--"


def show(
    heads: Sequence[str], rows: Sequence[Sequence[str]], nothing: str = "nothing", right: Sequence[str] = ()
) -> None:
    """Print a table for people, as wide as needed; the columns in `right` are right-aligned."""
    from rich.cells import cell_len  # only people need it

    if not rows:
        print(nothing)
        return
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)]
    _print(_row(heads, widths, right, heads, style="bold"))
    for row in cells:
        _print(_row(row, widths, right, heads))


def _row(
    row: Sequence[str], widths: Sequence[int], right: Sequence[str], heads: Sequence[str], style: str = ""
) -> "Text":
    from rich.cells import cell_len  # only people need it
    from rich.text import Text  # as above

    line = Text()
    for place, (cell, width, head) in enumerate(zip(row, widths, heads, strict=True)):
        room = " " * (width - cell_len(cell))
        line.append("  " if place else "")
        line.append(room if head in right else "")
        line.append(cell, style=style or STYLES.get(cell, ""))
        line.append(room if head not in right else "")
    line.rstrip()
    return line


def line(*parts: tuple[str, str]) -> None:
    """A line for people, from texts and their styles; a style may be named by a state (`active`)."""
    from rich.text import Text  # only people need it

    text_line = Text()
    for text, style in parts:
        text_line.append(clean(text), style=STYLES.get(style, style))
    _print(text_line)


def pairs_of(facts: dict[str, Any]) -> None:
    """Print facts for people, one per line; nested data as JSON."""
    width = max(map(len, facts), default=0)
    for key, fact in facts.items():
        shown = fact if isinstance(fact, str) else to_json.dumps(fact, ensure_ascii=False)
        line((f"{key:{width}}", "bold"), (f"  {shown}", shown))


@cache
def _console() -> "Console":
    from weft.cli.kit.console import console  # only people need it

    return console()


def _print(text: "Text") -> None:
    _console().print(text)
