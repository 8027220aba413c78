"""A node that dies of a signal leaves no image of its memory, which would hold its keys (SEC-047)."""

import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from weft.cli.asking import try_status
from weft.shell.blocks import free_blocks


@pytest.fixture(autouse=True)
def with_cores() -> Iterator[None]:
    """A system that lets processes write such images, as many do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.mark.proves("SEC-047", part="a node has no core dumps, wherever the system lets processes have some")
def test_a_node_that_was_aborted_leaves_no_core(tmp_path: Path) -> None:
    (port,) = free_blocks(1, 16_000)
    node = {"name": "a", "level": "root", "port": port, "beacons": False, "state": str(tmp_path / "a")}
    words = [sys.executable, "-m", "weft.shell.serve", json.dumps({"node": node})]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        ends_at = time.monotonic() + PATIENCE_S
        while try_status(port) is None:
            assert time.monotonic() < ends_at
            time.sleep(0.05)  # tidy: another process tells this test nothing; bounded above
        assert 0 == resource.prlimit(process.pid, resource.RLIMIT_CORE)[0]
        process.send_signal(signal.SIGABRT)
        assert -signal.SIGABRT == process.wait(PATIENCE_S)
    assert ["a"] == [path.name for path in tmp_path.iterdir()]
