"""Reading a derby document: numbers as people write them, children by tag.

Unreadable values count as absent, never as errors.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from weft.cores.document.limits import TIMESTAMP_MAX

NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
INTEGER: Final = re.compile(r"[+-]?\d{1,9}", re.ASCII)
"""No score has more digits."""


class Element(Protocol):
    """The interface of an element, whichever module made it."""

    @property
    def tag(self) -> str: ...
    @property
    def attributes(self) -> dict[str, str]: ...
    @property
    def children(self) -> Sequence[Any]: ...


def number_of(text: str | None) -> float | None:
    """A number in seconds, in the form of DOC-011; None if it is not, or lies beyond the year 9999.

    >>> number_of(" 12.5 "), number_of("nan"), number_of("1_000"), number_of(None)
    (12.5, None, None, None)
    """
    if text is None or not NUMBER.fullmatch(text := text.strip()):
        return None
    value = float(text)
    return value if abs(value) <= TIMESTAMP_MAX else None


def duration_of(element: Element) -> float | None:
    """Its `duration` in seconds; None if it is negative or not a number (JAM-001)."""
    value = number_of(element.attributes.get("duration"))
    return value if value is not None and value >= 0 else None


def integer_of(text: str | None) -> int | None:
    """A whole number, or None.

    >>> integer_of("4"), integer_of("four"), integer_of("4.5")
    (4, None, None)
    """
    return int(text) if text is not None and INTEGER.fullmatch(text := text.strip()) else None


def below(element: Element, tag: str) -> Iterator[Any]:
    """Children of one tag, in the order of the document."""
    return (child for child in element.children if child.tag == tag)
