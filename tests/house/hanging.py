"""A test that hangs ends its run after ten minutes, and the run says where each thread was.

What watches is a thread of Python's own. To start one for each test, as pytest would (`faulthandler_timeout`), is a quarter of
what a small test costs, so it is started again when it is ten seconds old.
"""

import faulthandler
import os
import time
from collections.abc import Callable
from typing import Final

import pytest

HANGS_S: Final = 600.0
RENEWED_S: Final = 10.0


class Hanging:
    """Watches every test of a run; `monotonic` tells seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends_at = 0.0
        self._errors = os.dup(2)  # as it was before the output of tests is caught

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        now = self._monotonic()
        if now > self._ends_at - HANGS_S:
            self._ends_at = now + HANGS_S + RENEWED_S
            faulthandler.dump_traceback_later(HANGS_S + RENEWED_S, exit=True, file=self._errors)

    def pytest_unconfigure(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        os.close(self._errors)
