"""The console of people's output: rich's, but a reader that goes away is an error like any other."""

from typing import Any

from rich.console import Console
from rich.table import Table


class Quiet(Console):
    """Rich itself ends the process with status 1 when nobody reads any more."""

    def on_broken_pipe(self) -> None:  # tidy: rich calls it
        """Whoever read us has seen enough: `ended` of this package knows what to do."""
        raise BrokenPipeError


def plain_table(*heads: str, **how: Any) -> Table:
    """The table of every noun: no frame, columns as wide as what stands in them."""
    return Table(*heads, **{"box": None, "pad_edge": False, **how})


def console(**how: Any) -> Console:
    """Where people read; lines are as long as they are, and nothing in them is coloured by guessing."""
    return Quiet(**{"soft_wrap": True, "highlight": False, **how})
