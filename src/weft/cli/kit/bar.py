"""A bar of progress for people who watch."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

UPDATES_PER_S: Final = 4
Step = Callable[[float, str], None]
"""Called with how much more is done, and a text for the current step."""


@contextmanager
def progress(total: float | None, what: str) -> Iterator[Step]:
    """A bar on standard error while the block runs; nothing is printed if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield _silent
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from weft.cli.kit.console import console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True, refresh_per_second=UPDATES_PER_S) as bar:
        task = bar.add_task("", total=total)

        def step(amount: float, label: str) -> None:
            bar.update(task, advance=amount, description=label)

        yield step


def _silent(amount: float, label: str) -> None:
    pass
