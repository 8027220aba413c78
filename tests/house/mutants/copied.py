"""A copy of the tree in which mutants live, and processes that run its tests: the tree itself is never changed."""

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

MEMORY_BYTES_MAX: Final = 4 << 30  # a loop that lost its bound must not take the machine with it
STILL_S: Final = 30.0  # a test that waits this long for what never comes will wait for ever
SHARE: Final = 10.0  # a crowded machine gives a process at least a tenth of a core
LOADED: Final = ("hypothesis.strategies", "msgpack", "msgspec", "xdist.scheduler", "yaml", "zmq.asyncio")
"""Loaded once, before processes are forked: that halves the time of a small test. Nothing of Weft is among them."""
USUAL: Final = (
    "-q",
    "--no-header",
    "--tb=line",
    "-p",
    "no:cacheprovider",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)
FAILED: Final = (1, 2, 3, 4)
"""How pytest ends when a test failed, or could not even be loaded."""


def copy_tree(root: Path, copy: Path) -> None:
    """Put all files that belong to a work tree, changed or new ones too, into a new folder."""
    shutil.rmtree(copy, ignore_errors=True)
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    for name in filter(None, told.stdout.decode().split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, copy / name)
    (copy / ".venv").symlink_to(root / ".venv")


class Copy:
    """The copied tree."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._changes = 0
        for name in LOADED:
            import_module(name)

    @contextmanager
    def changed(self, path: str, text: str) -> Iterator[None]:
        """Inside, one file has another text."""
        right = (self.root / path).read_text("utf-8")
        self._write(path, text)
        try:
            yield
        finally:
            self._write(path, right)

    def _write(self, path: str, text: str) -> None:
        """Python knows compiled files by time and size of their source, so that no two texts may share a time."""
        self._changes += 1
        (self.root / path).write_text(text, "utf-8")
        at = 1_000_000_000 + self._changes
        os.utime(self.root / path, (at, at))

    def run(self, words: Iterable[str], plugin: Any, cpu_s: float, log: Path | None = None) -> int | None:
        """Run pytest in a process that finds Weft and its tests in the copy alone; outcomes as those of `forked`."""

        def run() -> int:
            os.chdir(self.root)
            for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "weft")]:
                del sys.modules[name]
            sys.path[:0] = [str(self.root / "src"), str(self.root)]
            os.environ["PYTHONPATH"] = str(self.root / "src")
            all_tests = ["--prove"] if (self.root / "tests" / "house" / "runs.py").exists() else []
            return int(pytest.main([*USUAL, *all_tests, *words], plugins=[plugin]))

        return forked(run, cpu_s, log)


def forked(run: Callable[[], int], cpu_s: float, log: Path | None = None) -> int | None:
    """Do something in a process of its own, whose words go to a file.

    Gives what it gave; -N: killed by signal N; None: it was not done with that much work, or stood still. It is work that is
    bounded, not time, because a machine that does other things too must not decide what is killed.
    """
    sys.stdout.flush()
    process = os.fork()
    if not process:
        _in_child(run, int(cpu_s) + 1, log)
    ended = _outcome(process, STILL_S + SHARE * cpu_s)
    return None if ended == -signal.SIGXCPU else ended


def _in_child(run: Callable[[], int], cpu_s: int, log: Path | None) -> None:
    code = 3
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        if log is not None:
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
        code = run()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  # the process ends here, whatever it is
        traceback.print_exc()
    finally:
        os._exit(code)


def _outcome(process: int, limit_s: float) -> int | None:
    door, is_over = os.pidfd_open(process), False
    try:
        is_over = bool(select.select([door], [], [], limit_s)[0])
    finally:
        os.close(door)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)  # and whatever its tests have started
        status = os.waitpid(process, 0)[1]
    return os.waitstatus_to_exitcode(status) if is_over else None
