"""Text from other machines, programs and files, made safe for a terminal (SEC-045)."""

from typing import Any


def clean(text: Any, *, keeps: str = "") -> str:
    r"""The text with unprintable characters replaced by their escapes: it cannot move the cursor or change colours.

    >>> clean("Hall 5"), clean("a\x1b[2J\n"), clean("a\x9b\u202eb\nc", keeps="\n")
    ('Hall 5', 'a\\x1b[2J\\n', 'a\\x9b\\u202eb\nc')
    """
    cleaned = str(text)
    if cleaned.isprintable():
        return cleaned
    return "".join(one if one.isprintable() or one in keeps else _escape(one) for one in cleaned)


def _escape(one: str) -> str:
    return one.encode("unicode_escape").decode()
