"""Lines of `stdout` filters, written to the node's standard output (CHN-068).

A node never waits for whoever reads them: a line that does not fit at once is left out, and the next one says how many were.
"""

import json
import os
import select
from typing import Any, Final

from weft.cores.chains.messages import ShowLine

LINE_BYTES_MAX: Final = 4_096  # what a pipe takes as a whole (PIPE_BUF)
STDOUT: Final = 1


class Showing:
    """Performs `ShowLine`."""

    def __init__(self, descriptor: int = STDOUT) -> None:
        self._descriptor = descriptor
        self._left_out = 0

    def show(self, work: ShowLine) -> None:
        """Write one line, or drop it."""
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
    for most in (len(work.payload), LINE_BYTES_MAX // 8, 0):  # a byte is six characters at most
        cut = {"cut": len(work.payload)} if most < len(work.payload) else {}
        said = {**facts, **cut, "payload": work.payload[:most].decode("utf-8", "backslashreplace")}
        line = json.dumps(said).encode() + b"\n"
        if len(line) <= LINE_BYTES_MAX:
            break
    return line
