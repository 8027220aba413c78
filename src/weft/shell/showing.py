"""Writes the lines of `stdout` filters to the node's standard output (CHN-068).

A node never waits for a reader: a line that cannot be written at once is left out, and the next one says how many were.
"""

import json
import os
import select
from typing import Any, Final

from weft.cores.chains.messages import ShowLine

LINE_BYTES_MAX: Final = 4_096  # the most that a pipe accepts as a whole (PIPE_BUF)
STDOUT: Final = 1


class Showing:
    """Performs `ShowLine`, and counts the lines that were left out."""

    def __init__(self, descriptor: int = STDOUT) -> None:
        self._descriptor = descriptor
        self._left_out = 0

    def show(self, work: ShowLine) -> None:
        """Write one line, or leave it out."""
        line = _line(work, self._left_out)
        try:
            if select.select([], [self._descriptor], [], 0)[1]:
                os.write(self._descriptor, line)
                self._left_out = 0
                return
        except (OSError, ValueError):
            pass  # nobody reads it any more
        self._left_out += 1


def _line(work: ShowLine, left_out: int) -> bytes:
    facts: dict[str, Any] = {
        "filter": work.filter,
        "on": work.direction,
        "type": work.type,
        "origin": work.origin.hex(),
    }
    if left_out:
        facts["left_out"] = left_out
    line = b""
    for most in (len(work.payload), LINE_BYTES_MAX // 8, 0):  # in JSON a byte becomes at most six characters
        cut = {"cut": len(work.payload)} if most < len(work.payload) else {}
        fields = {**facts, **cut, "payload": work.payload[:most].decode("utf-8", "backslashreplace")}
        line = json.dumps(fields).encode() + b"\n"
        if len(line) <= LINE_BYTES_MAX:
            break
    return line
