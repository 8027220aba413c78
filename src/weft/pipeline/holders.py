"""Who holds a lock of this machine, and how to end them: a driver that was stopped and forgotten (PIP-023).

The kernel says of each open file whether a lock stands on it (`/proc/PID/fdinfo`), so a process that only waits for the
lock is not taken for one that holds it. A driver's JVM, which inherited the lock, is found in the same way.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROCESSES: Final = Path("/proc")
MARK: Final = "\nlock:\t"


def end_holders(lock: Path) -> list[int]:
    """Kill every process that holds the lock on a file, except this one; returns their numbers.

    Processes of other users and of other machines are not found.
    """
    ended = []
    for process in _processes():
        with contextlib.suppress(OSError):  # it may end while it is looked at, or belong to somebody else
            if _end(process, lock):
                ended.append(process)
    return ended


def _processes() -> Iterator[int]:
    for home in PROCESSES.iterdir():
        if home.name.isdigit() and int(home.name) != os.getpid():
            yield int(home.name)


def _end(process: int, lock: Path) -> bool:
    descriptor = os.pidfd_open(process)  # so that a later process with the same number is not meant
    try:
        if not _holds(process, lock):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    finally:
        os.close(descriptor)


def _holds(process: int, lock: Path) -> bool:
    home = PROCESSES / str(process)
    for file in (home / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if file.samefile(lock) and MARK in (home / "fdinfo" / file.name).read_text("utf-8"):
                return True
    return False
