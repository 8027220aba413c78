"""The console for output to people: that of rich, but no text moves a cursor, and a closed output is an error like any other."""

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from weft.cli.kit.text import LAYOUT, bare, clean


class Quiet(Console):
    """Whatever is shown passes here as text with a style; rich adds its own control codes behind that."""

    @property  # type: ignore[misc]  # read-only: nobody gives a console another file
    def file(self) -> IO[str]:
        """The terminal itself; rich looks behind one cover only, and a live picture lays another one over it."""
        return bare(super().file)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of what is shown; the text of each is cleaned (SEC-045)."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=clean(piece.text, keeps=LAYOUT))

    def on_broken_pipe(self) -> None:  # tidy: rich calls it
        """The reader has closed the output: `ended` of this package handles that; rich itself would end with status 1."""
        raise BrokenPipeError


def plain_table(*heads: str, **how: Any) -> Table:
    """The table of every noun: no frame, columns as wide as their contents."""
    return Table(*heads, **{"box": None, "pad_edge": False, **how})


def console(**how: Any) -> Console:
    """The console for people; lines are not wrapped, and nothing is coloured by guessing."""
    return Quiet(**{"soft_wrap": True, "highlight": False, **how})
