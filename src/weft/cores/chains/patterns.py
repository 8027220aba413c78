r"""Regular expressions with linear running time (CHN-065): no pattern that a person types can stop a node.

The library's own templates treat text as Latin-1 if the template contains a letter beyond it. So replacements are built
here: text, `\1` to `\9` for groups, `\0` for the whole match, and `\\` for a backslash.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

_PIECE: Final = re.compile(r"[^\\]+|\\[0-9\\]")


@cache
def regular_expressions() -> Any:
    """The library; loaded when the first pattern is."""
    import re2  # type: ignore[import-untyped]  # the wheel has no types

    return re2


def replacer(pattern: str, text: str) -> Callable[[str], str]:
    r"""A function that replaces every match of `pattern` by `text`; ValueError if either is invalid.

    >>> replacer(r"(\w+)@\w+", r"…@\1 \\")("to ada@lab")
    'to …@ada \\'
    """
    engine = regular_expressions()
    options = engine.Options()
    options.log_errors = False
    try:
        compiled = engine.compile(pattern, options=options)
    except engine.error as error:
        raise ValueError(_message_of(error)) from None
    pieces = _pieces(text)
    groups = [piece for piece in pieces if isinstance(piece, int)]
    if groups and max(groups) > compiled.groups:
        raise ValueError(f"there is no group {max(groups)}")
    if not groups:
        plain = "".join([str(piece) for piece in pieces])
        return lambda found: compiled.sub(lambda _: plain, found)
    return lambda found: compiled.sub(lambda match: _filled(pieces, match), found)


def _message_of(error: Exception) -> str:
    why = error.args[0] if error.args else ""
    return (why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why))[:160]


def _pieces(text: str) -> list[str | int]:
    found = _PIECE.findall(text)
    if sum(map(len, found)) != len(text):
        raise ValueError("behind a backslash there must be a digit or another backslash")
    return [piece if piece[0] != "\\" else "\\" if piece[1] == "\\" else int(piece[1]) for piece in found]


def _filled(pieces: list[str | int], match: Any) -> str:
    return "".join([piece if isinstance(piece, str) else match[piece] or "" for piece in pieces])


def mistake(pattern: str, text: str) -> str:
    r"""Why `pattern` or its replacement `text` is invalid; empty if both are valid.

    >>> mistake(r"(\d+)", r"<\1>"), mistake("x", r"\1"), mistake("x", "\\d") != "", mistake("(", "") != ""
    ('', 'there is no group 1', True, True)
    """
    try:
        replacer(pattern, text)
    except ValueError as error:
        return str(error) or "cannot be read"
    return ""
