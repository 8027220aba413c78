"""Counts the instructions that Python carries out: how work grows, without a clock."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(act: Callable[[], object]) -> int:
    """How many instructions Python carries out meanwhile."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
