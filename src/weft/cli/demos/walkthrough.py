"""The walk-through: all seven rows, each counted and judged, in virtual time or with real processes."""

import json as to_json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from weft.cli.demos.rows import ROWS, Outcome, Row, differences
from weft.cli.kit.exits import DONE, NOT_SO

TICKS: Final = 20
PERIOD_MS: Final = 2_000
SHOWN: Final = 2
"""How many labels are printed of each list."""
COLUMNS: Final = ("", "#", "set-up", "B receives", "C receives", "statuses of the detectors")


class Judged(NamedTuple):
    """A row, its result, and what is wrong with that."""

    row: Row
    actual: Outcome
    wrong: list[str]


def virtual(ticks: int = TICKS, period_ms: int = PERIOD_MS) -> Iterator[Judged]:
    """Play each row beside simulated nodes (DEM-006)."""
    from weft.cli.demos.virtual import play  # loaded only here, because the simulator loads a whole node

    for row in ROWS:
        actual = play(row, ticks, period_ms)
        yield Judged(row, actual, differences(row.expected(ticks), actual))


def shown(rows: Iterator[Judged], *, json: bool) -> int:
    """Print each row as soon as it is judged; returns exit status 1 if any is wrong."""
    say: Callable[[Judged], None] = _say_json if json else _Table().say
    is_right = True
    for judged in rows:
        say(judged)
        is_right = is_right and not judged.wrong
    return DONE if is_right else NOT_SO


def _say_json(judged: Judged) -> None:
    row, actual, wrong = judged
    facts: dict[str, Any] = {"row": row.number, "set_up": row.words, "is_right": not wrong, "wrong": wrong}
    print(to_json.dumps({**facts, **actual._asdict()}), flush=True)


class _Table:
    """Prints the rows as a table."""

    def __init__(self) -> None:
        from weft.cli.kit.console import console

        self._console = console()
        self._line(*COLUMNS, style="bold")

    def say(self, judged: Judged) -> None:
        """One row, and what is wrong with it."""
        row, actual, wrong = judged
        mark, style = ("✗", "red") if wrong else ("✓", "green")
        received = [summary_of(actual.received[node]) if node in actual.received else "-" for node in ("B", "C")]
        self._line(mark, str(row.number), row.words, *received, statuses(actual.statuses), style=style)
        for text in wrong:
            self._console.print(f"      {text}", style="red", markup=False)

    def _line(self, *cells: str, style: str) -> None:
        text = "".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))
        self._console.print(text.rstrip(), style=style, markup=False)


WIDTHS: Final = (2, 3, 42, 31, 30, 28)


def summary_of(labels: list[str]) -> str:
    """How many labels there are, and the first of them.

    >>> summary_of(["A:0", "A:2", "A:4", "A:6"]), summary_of([])
    ('4: A:0 A:2 …', '0')
    """
    return f"{len(labels)}: {' '.join(labels[:SHOWN])}{' …' if len(labels) > SHOWN else ''}" if labels else "0"


def statuses(by_node: dict[str, dict[str, int]]) -> str:
    """Which node's detector got which status how often.

    >>> statuses({"A": {"ok": 20}, "B": {"deleted": 20}})
    'A 20 ok, B 20 deleted'
    """
    return ", ".join(f"{node} {count} {why}" for node, counts in by_node.items() for why, count in counts.items())
