"""Regular expressions of linear time (CHN-065): a pattern that somebody types cannot stop a node."""

from functools import cache
from typing import Any


@cache
def regular_expressions() -> Any:
    """The library; loaded when the first pattern is."""
    import re2  # type: ignore[import-untyped]  # the wheel has no types

    return re2


def compiled(pattern: str) -> Any:
    """The pattern, ready to be looked for; raises the library's error."""
    engine = regular_expressions()
    options = engine.Options()
    options.log_errors = False
    return engine.compile(pattern, options=options)


def mistake(pattern: str, text: str) -> str:
    r"""Why this cannot be looked for, or `text` not stand in its place; empty if it can.

    >>> mistake(r"(\d+)", r"<\1>"), mistake("x", r"\1") != "", mistake("(", "") != ""
    ('', True, True)
    """
    try:
        groups = compiled(pattern).groups
        compiled("()" * groups).sub(text, "")
    except Exception as error:  # noqa: BLE001  # the library's own, and whatever its template parser raises
        said = error.args[0] if error.args else ""
        return (said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))[:160] or "cannot be read"
    return ""
