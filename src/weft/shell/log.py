"""The log of a node: JSON lines on stderr, coloured text on a terminal, and no flood of equal lines (OBS-002).

A log must never harm the node: a line that cannot be written (the disk is full, the terminal is gone) is counted and
dropped. Text from peers is written as ASCII JSON, so that no escape sequence reaches a terminal (SEC-045).
"""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from weft.base.now import SECOND

EQUAL_LINES_MAX: Final = 10  # equal lines in WINDOW_NS; further ones are counted, and one line says how many
WINDOW_NS: Final = 10 * SECOND
KINDS_MAX: Final = 1_000  # different lines that are remembered at once
STDERR: Final = 2
PRIORITIES: Final = {"debug": 7, "info": 6, "warning": 4, "error": 3}
"""Priorities of syslog, which systemd's journal reads before a line: `journalctl -p warning`."""
_COLOURS: Final = {"debug": "2", "info": "32", "warning": "33", "error": "31"}


class _Window:
    """How often one line was written since `began_at`."""

    __slots__ = ("began_at", "count", "level")

    def __init__(self, began_at: int, level: str) -> None:
        self.began_at, self.level, self.count = began_at, level, 0


def is_journaled() -> bool:
    """Whether stderr is a stream of systemd's journal, which systemd names in the environment."""
    try:
        found = os.fstat(STDERR)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def to_stderr(line: bytes) -> None:
    """Write without a buffer: text left in a buffer would fail again at exit and change the exit code."""
    os.write(STDERR, line)


class Log:
    """Writes one line per event of the node called `name`. `mono_ns`: a monotonic clock."""

    def __init__(
        self,
        name: str,
        sink: Callable[[bytes], None] = to_stderr,
        *,
        mono_ns: Callable[[], int] = time.monotonic_ns,
        is_terminal: bool | None = None,
        has_priorities: bool | None = None,
    ) -> None:
        self.name = name
        self.unwritten = 0
        """Lines that could not be written."""
        self.collapsed = 0
        """Lines that were left out, because they were equal to many before them."""
        self._sink, self._mono_ns = sink, mono_ns
        self._is_terminal = os.isatty(STDERR) if is_terminal is None else is_terminal
        self._has_priorities = is_journaled() if has_priorities is None else has_priorities
        self._windows: dict[tuple[str, str], _Window] = {}

    def write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        """Write a line, unless it came more than ten times in ten seconds."""
        now = self._mono_ns()
        key = (event, json.dumps(fields, sort_keys=True))
        window = self._windows.get(key)
        if window is None or now - window.began_at >= WINDOW_NS:
            self.settle()
            if len(self._windows) >= KINDS_MAX:
                self._end(next(iter(self._windows)))
            window = self._windows[key] = _Window(now, level)
        window.count += 1
        if window.count <= EQUAL_LINES_MAX:
            self._put(level, event, {"fields": fields})
        else:
            self.collapsed += 1

    def settle(self) -> None:
        """Write how often lines were left out, once their ten seconds are over."""
        now = self._mono_ns()
        for key in [key for key, window in self._windows.items() if now - window.began_at >= WINDOW_NS]:
            self._end(key)

    def close(self) -> None:
        """Write at once how often lines were left out."""
        for key in list(self._windows):
            self._end(key)

    def _end(self, key: tuple[str, str]) -> None:
        window = self._windows.pop(key)
        left_out = window.count - EQUAL_LINES_MAX
        if left_out > 0:
            event, fields = key
            self._put(window.level, event, {"fields": json.loads(fields), "repeated": left_out})

    def _put(self, level: str, event: str, more: dict[str, Any]) -> None:
        instant = datetime.now(UTC)
        if self._is_terminal:
            line = _coloured(instant, level, event, more)
        else:
            stamp = instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = json.dumps({"ts": stamp, "level": level, "event": event, "node": self.name, **more}).encode()
        if self._has_priorities:
            line = b"<%d>" % PRIORITIES[level] + line
        try:
            self._sink(line + b"\n")
        except OSError:
            self.unwritten += 1


def _coloured(instant: datetime, level: str, event: str, more: dict[str, Any]) -> bytes:
    facts = {**more["fields"], **({"repeated": more["repeated"]} if "repeated" in more else {})}
    shown = " ".join(f"{key}={json.dumps(value)}" for key, value in facts.items())
    return f"{instant:%H:%M:%S} \x1b[{_COLOURS[level]}m{level:7}\x1b[0m {event} {shown}".encode()
