"""A run that is given a time: what it had no time for is counted and said, and another commit begins elsewhere.

CI has 35 minutes on whatever machine it gets. A quick machine plays every test in them; a slow one plays `make test` whole,
and of the rest as much as there is time for, so that what is left out differs from commit to commit.
"""

import time
import zlib

import pytest


class Within:
    """Begins no test after `seconds`. `draw` says with which file it begins: from there it goes around in the usual order."""

    def __init__(self, seconds: float, draw: str) -> None:
        self._draw = draw
        self._ends_at = time.monotonic() + seconds
        self._count = 0
        self.left = 0
        """How many tests had no time."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._count = len(items)
        files = list(dict.fromkeys(item.path for item in items))
        if files:
            first = files[zlib.crc32(self._draw.encode()) % len(files)]
            at = next(index for index, item in enumerate(items) if item.path == first)
            items[:] = items[at:] + items[:at]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        if time.monotonic() < self._ends_at:
            return None
        self.left += 1
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.left:
            terminalreporter.line(f"no time for {self.left} of {self._count} tests", yellow=True)
