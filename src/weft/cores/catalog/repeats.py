"""Equal records: the first ten in ten seconds pass; the rest become one record with their number (LOG-007)."""

from hashlib import sha256
from typing import Final

import msgspec

from weft.base.budget import Part
from weft.cores.catalog import limits
from weft.cores.catalog.logforms import Line, Log, line_of

MESSAGE_MAX: Final = 128  # characters; longer messages are compared by their digest
Key = tuple[str, str, str, str | bytes]


class Window:
    """Ten seconds of equal records."""

    __slots__ = ("count", "ends_at", "last")

    def __init__(self, ends_at: int) -> None:
        self.ends_at, self.count = ends_at, 0
        self.last: Line | None = None
        """The last record that did not pass."""


class Repeats:
    """Windows in the order of their ends; all have the same length."""

    def __init__(self) -> None:
        self._windows: dict[Key, Window] = {}
        self._bytes = 0
        self.room = Part("logs-repeated", lambda: self.cost)
        """Its part of the core's budget; the whole of it here."""
        self._speaking = 0
        """Windows that will produce a record at their end."""

    @property
    def cost(self) -> int:
        """Of memory."""
        return self._bytes + limits.LOG_COST * len(self._windows)

    def passes(self, entry: Line, now: int) -> bool:
        """Whether a record passes by itself."""
        key = _key(entry.log)
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = Window(now + limits.EQUAL_NS)
        window.count += 1
        if window.count <= limits.EQUAL_MAX:
            return True
        self._bytes += len(entry.data) - (len(window.last.data) if window.last else 0)
        self._speaking += window.last is None
        window.last = entry
        return False

    def due(self, now: int) -> list[Line]:
        """The merged records of windows that are over, or too many."""
        done: list[Line] = []
        while self._windows:
            key = next(iter(self._windows))
            window = self._windows[key]
            is_full = len(self._windows) > limits.LOGS_MAX or self._bytes > limits.LOGS_BYTES_MAX or self.room.is_over
            if window.ends_at > now and not is_full:
                break
            del self._windows[key]
            if window.last is None:
                continue
            self._bytes -= len(window.last.data)
            self._speaking -= 1
            log = msgspec.structs.replace(window.last.log, repeated=window.count - limits.EQUAL_MAX)
            done.append(line_of(log, is_local=window.last.is_local))
        return done

    def deadline(self) -> int | None:
        """When the next window with merged records ends; windows without any end with the next record."""
        return next(iter(self._windows.values())).ends_at if self._speaking else None


def _key(log: Log) -> Key:
    message = log.message if len(log.message) <= MESSAGE_MAX else sha256(log.message.encode(errors="replace")).digest()
    return log.service, log.level, log.logger, message
