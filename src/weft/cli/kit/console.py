"""The console for output to people: that of rich, but a closed output is an error like any other."""

from typing import Any

from rich.console import Console
from rich.table import Table


class Quiet(Console):
    """Rich itself would end the process with status 1 when the output is closed."""

    def on_broken_pipe(self) -> None:  # tidy: rich calls it
        """The reader has closed the output: `ended` of this package handles that."""
        raise BrokenPipeError


def plain_table(*heads: str, **how: Any) -> Table:
    """The table of every noun: no frame, columns as wide as their contents."""
    return Table(*heads, **{"box": None, "pad_edge": False, **how})


def console(**how: Any) -> Console:
    """The console for people; lines are not wrapped, and nothing is coloured by guessing."""
    return Quiet(**{"soft_wrap": True, "highlight": False, **how})
