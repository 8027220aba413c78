"""Counts the lines that Python carries out: how work grows, without a clock."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(act: Callable[[], object]) -> int:
    """How many lines Python carries out meanwhile.

    Lines and no finer than lines: a trace of single instructions counts none in some versions of Python.
    """
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
