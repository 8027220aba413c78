"""What a person sees of `weft lake run` on a terminal (PIP-080)."""

import time
from collections import deque
from typing import Any, Final, Self

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from weft.lake.layout import Layout
from weft.pipeline.progress import waiting

WINDOW: Final = 20  # batches that the rate is taken over


class View:
    """Follows a run that has no end: rates, lag, freshness, and what was not plain."""

    def __init__(self, console: Console | None = None) -> None:
        self.live = Live(Table.grid(), console=console or Console(), refresh_per_second=4)
        self.totals: dict[str, int] = dict.fromkeys(("rows", "silver", "values", "duplicates", "quarantined"), 0)
        self.others: dict[str, int] = {}
        """Rows of silver by stream, samples left out."""
        self._last: Any = None
        self._recent: deque[tuple[float, int]] = deque(maxlen=WINDOW)

    def __enter__(self) -> Self:
        self.live.start()
        self.live.update("starting Spark …")
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def __call__(self, done: Any) -> None:
        """A batch (`weft.pipeline.job.Done`) is in the tables."""
        if done.job == "samples":
            for name in self.totals:
                self.totals[name] += getattr(done.outcome, name)
            self._recent.append((time.monotonic(), done.outcome.rows))
            self._last = done
        else:
            self.others[done.job] = self.others.get(done.job, 0) + done.outcome.silver
        if self._last is not None:
            self.live.update(self.table(self._last))

    def table(self, done: Any) -> Table:
        """The display after a batch of samples."""
        shown = Table.grid(padding=(0, 2))
        for name, value in (
            ("batch", f"{done.number:,}, {done.segments:,} segments in {done.seconds:.2f} s"),
            ("rate", f"{self._rate():,.0f} rows/s"),
            ("behind", f"{done.behind:,} segments"),
            ("freshness", "-" if done.freshness_ms is None else f"{done.freshness_ms / 1000:.1f} s"),
            *((name, f"{count:,}") for name, count in self.totals.items()),
            ("missing", f"{done.missing:,}"),
            *((name, f"{count:,}") for name, count in self.others.items()),
        ):
            shown.add_row(name, value)
        return shown

    def _rate(self) -> float:
        if len(self._recent) < 2:
            return 0.0
        first, last = self._recent[0][0], self._recent[-1][0]
        return sum(rows for _, rows in list(self._recent)[1:]) / max(last - first, 1e-3)


class Bar:
    """Follows a run that ends: how many segments are left."""

    def __init__(self, layout: Layout, console: Console | None = None) -> None:
        self.layout = layout
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.progress = Progress(*columns, console=console or Console())
        self._task = self.progress.add_task("segments", total=None)

    def __enter__(self) -> Self:
        self.progress.update(self._task, total=waiting(self.layout))
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def __call__(self, done: Any) -> None:
        """A batch (`weft.pipeline.job.Done`) is in the tables."""
        self.progress.advance(self._task, done.segments)
