"""Ports for tests that run beside one another."""

import subprocess
import sys

from tests.shell.ports import free_blocks

ASKS = "from tests.shell.ports import free_blocks; print(free_blocks(1, {start}))"


def test_what_is_given_here_is_given_to_no_other_process() -> None:
    (first,) = free_blocks(1, 19_000)
    words = [sys.executable, "-c", ASKS.format(start=first)]
    told = subprocess.run(words, capture_output=True, text=True, check=True)
    assert first < int(told.stdout.strip("[]\n"))
    assert [first] != free_blocks(1, first)
