"""The console of people's output: rich's, but a reader that goes away is an error like any other."""

from typing import Any

from rich.console import Console


class Quiet(Console):
    """Rich itself ends the process with status 1 when nobody reads any more."""

    def on_broken_pipe(self) -> None:  # tidy: rich calls it
        """Whoever read us has seen enough: `ended` of this package knows what to do."""
        raise BrokenPipeError


def console(**how: Any) -> Console:
    """Where people read; lines are as long as they are, and nothing in them is coloured by guessing."""
    return Quiet(**{"soft_wrap": True, "highlight": False, **how})
