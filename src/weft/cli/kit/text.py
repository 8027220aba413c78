"""Makes text from other machines, programs and files safe for a terminal (SEC-045)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, TextIO, cast

from weft.base.printable import clean

__all__ = ["Cleaned", "at_terminal", "bare", "clean", "clean_bytes"]

LAYOUT: Final = "\n\t"
"""Characters that move the cursor, and that commands print themselves."""


class Cleaned:
    """A terminal: nothing that is printed to it moves the cursor or changes colours, whoever said it."""

    def __init__(self, terminal: TextIO) -> None:
        self.rich_proxied_file = terminal
        """The terminal itself. Rich looks for it under this name, and writes colours of its own to it."""

    def write(self, text: str) -> int:
        """Write it, with what is unprintable as escapes."""
        self.rich_proxied_file.write(clean(text, keeps=LAYOUT))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def at_terminal() -> Iterator[None]:
    """Both outputs are cleaned, where they are terminals. A file or another program gets what is printed as it is."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_cleaned(output) for output in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _cleaned(output: TextIO | None) -> TextIO:
    is_bare = output is not None and output.isatty() and not isinstance(output, Cleaned)
    return cast("TextIO", Cleaned(cast("TextIO", output)) if is_bare else output)


def bare(output: IO[str]) -> IO[str]:
    """The terminal behind an output, or the output: for what a command itself wants to do with a cursor."""
    return cast("IO[str]", getattr(output, "rich_proxied_file", output))


def clean_bytes(data: bytes) -> str:
    r"""Foreign bytes as text if they are text, else in Python's notation.

    >>> clean_bytes(b"<a/>"), clean_bytes(b"a\x1b[2J"), clean_bytes(b"\xff")
    ('<a/>', 'a\\x1b[2J', "b'\\xff'")
    """
    try:
        return clean(data.decode())
    except UnicodeDecodeError:
        return repr(data)
