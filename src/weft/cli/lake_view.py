"""What `weft lake run` shows on a terminal (PIP-080)."""

import time
from collections import deque
from typing import Any, Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from weft.cli.kit.console import console as quiet
from weft.cli.kit.console import plain_table
from weft.lake.layout import Layout
from weft.pipeline.metrics import waiting_rows
from weft.pipeline.tables import STAGES

WINDOW: Final = 20  # the rate is computed over so many batches
COLUMNS: Final = (
    "batch", "rows/s", "behind", "freshness", "rows", "silver", "values", "duplicates", "quarantined", "missing",
)  # fmt: skip


class Line:
    """One stream: sums since the start of the run, and its last batch."""

    def __init__(self) -> None:
        self.sums: dict[str, int] = dict.fromkeys(("rows", "silver", "values", "duplicates", "quarantined"), 0)
        self._recent: deque[tuple[float, int]] = deque(maxlen=WINDOW)
        self._last: Any = None

    def hear(self, done: Any) -> None:
        """A batch of this stream is in the tables."""
        for name in self.sums:
            self.sums[name] += getattr(done.outcome, name)
        self._recent.append((time.monotonic(), done.outcome.rows))
        self._last = done

    def cells(self) -> tuple[str, ...]:
        """As `COLUMNS`."""
        done = self._last
        age = "-" if done.freshness_ms is None else f"{done.freshness_ms / 1000:.1f} s"
        first_cells = (f"{done.number:,}", f"{self._rate():,.0f}", f"{done.behind:,}", age)
        return (*first_cells, *(f"{count:,}" for count in self.sums.values()), f"{done.missing:,}")

    def _rate(self) -> float:
        if len(self._recent) < 2:
            return 0.0
        first, last = self._recent[0][0], self._recent[-1][0]
        return sum(rows for _, rows in list(self._recent)[1:]) / max(last - first, 1e-3)


class View:
    """The display of a run without an end: a line for each stream, and the last unusual event."""

    def __init__(self, console: Console | None = None) -> None:
        self.live = Live(Table.grid(), console=console or quiet(soft_wrap=False, highlight=True), refresh_per_second=4)
        self.lines: dict[str, Line] = {}
        self._trouble = ""

    def __enter__(self) -> Self:
        self.live.start()
        self.live.update("starting Spark …")
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def __call__(self, done: Any) -> None:
        """A batch (`weft.pipeline.job.Done`) is in the tables."""
        self.lines.setdefault(done.job, Line()).hear(done)
        self.live.update(self.shown())

    def note(self, event: dict[str, Any]) -> None:
        """An event has happened (`weft.pipeline.eventlog`)."""
        if event["level"] != "info":
            more = ", ".join(f"{name} {value}" for name, value in event.items() if name not in ("at", "level", "event"))
            self._trouble = f"{event['at'][11:19]} {event['event']}: {more}"
            self.live.update(self.shown())

    def shown(self) -> RenderableType:
        """The present display."""
        table = plain_table(pad_edge=True, padding=(0, 1))
        table.add_column("stream")
        for name in COLUMNS:
            table.add_column(name, justify="right", no_wrap=True)
        for stream, line in self.lines.items():
            table.add_row(stream, *line.cells())
        return Group(table, Text(self._trouble, style="yellow")) if self._trouble else table


class Bar:
    """The progress bar of a run that ends: how many rows are left, and until the first of them, that Spark starts."""

    def __init__(self, layout: Layout, console: Console | None = None) -> None:
        self.layout = layout
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=console or quiet(soft_wrap=False, highlight=True))
        self._task = self.progress.add_task("Spark starts; rows", total=None)

    def __enter__(self) -> Self:
        self.progress.update(self._task, total=sum(waiting_rows(self.layout, stream, None) for stream in STAGES))
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def __call__(self, done: Any) -> None:
        """A batch (`weft.pipeline.job.Done`) is in the tables."""
        self.progress.update(self._task, description="rows", advance=done.outcome.rows)
