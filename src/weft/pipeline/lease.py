"""One driver per job (PIP-023): a lease file names the holder, and the kernel releases a lock when the holder ends.

The JVM inherits the lock. So the lock is free only when both processes have ended, and no other driver can start while
the JVM of a killed driver still finishes a step. A holder that hangs does not renew its lease; a driver that was started
to take over then kills it. Every holder gets a higher epoch, which every commit contains; `weft.pipeline.delta` refuses to
commit with a lower epoch than it has seen.
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from weft.base.errors import UserError, WeftError
from weft.lake.files import LocalFiles, put_here
from weft.lake.layout import Layout

VALID_S: Final = 30.0  # a holder that has not renewed its lease for so long may be taken over
RENEW_S: Final = 5.0  # between two renewals
DYING_S: Final = 10.0  # the JVM of a dead driver should have ended by then
PROBE_S: Final = 0.1  # between two tries to get the lock
PROCESSES: Final = Path("/proc")
LOCKS: Final = PROCESSES / "locks"
MARK: Final = "\nlock:\t"
"""Part of `/proc/PID/fdinfo/FD` if the process holds a lock on that file. A process that waits for the lock lacks it."""


class LeaseLost(WeftError):
    """Another driver has taken over; nothing was committed (PIP-023). The process then ends with exit code 76."""

    code = "lost-lease"
    mend = "the same again when the other driver has ended; if there is none, weft lake repair"


def held(lake: Layout, job: str) -> str | None:
    """Who runs a job, as a sentence; None if nobody does. It does not touch the lock, so it disturbs no driver."""
    lock = lake.lease(job).with_suffix(".lock")
    try:
        inode = lock.stat().st_ino
    except OSError:
        return None
    locks = [line.split() for line in LOCKS.read_text("utf-8").splitlines()]
    if not any(words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode) for words in locks if len(words) > 5):
        return None
    lease = Lease(lake, job)
    return lease.refusal()


class Lease:
    """The right to run one job of a lake, as a context manager that returns it."""

    def __init__(
        self,
        lake: Layout,
        job: str,
        wait_s: float = 0.0,
        ending: threading.Event | None = None,
        *,
        takes_over: bool = False,
    ) -> None:
        """`wait_s`: how many seconds to wait for another holder to end; setting `ending` stops the wait.

        `takes_over`: kill a holder on this machine that has not renewed its lease for 30 s. The wait is then at least
        40 s, whatever `wait_s`.
        """
        self.path = lake.lease(job)
        self.job = job
        self._wait_s, self._ending = wait_s, ending or threading.Event()
        self._takes_over = takes_over
        self.epoch = 0
        self._lock = -1
        self._stop = threading.Event()
        self._since = 0.0
        self._renewer: threading.Thread | None = None

    @property
    def descriptor(self) -> int:
        """The file descriptor of the lock, for the JVM to keep open."""
        assert self._lock >= 0
        return self._lock

    def __enter__(self) -> Self:
        """Take the lease. UserError `lease-held` (exit 75) names the holder and how long it has had it."""
        LocalFiles().make_directories(self.path.parent)
        self._lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not self._take():
            why = self.refusal()
            os.close(self._lock)
            self._lock = -1
            raise UserError("lease-held", why, "stop that driver, or ask its tables with `weft sql`")
        self.epoch = int(self._read().get("epoch", 0)) + 1
        self._since = time.time()
        self._write(time.time() + VALID_S)
        self._renewer = threading.Thread(target=self._renew, name=f"lease of {self.job}", daemon=True)
        self._renewer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        if self._renewer is not None:
            self._renewer.join()
        with contextlib.suppress(OSError):  # only the lock counts
            self._write(time.time())
        os.close(self._lock)  # not unlocked: a JVM that still runs keeps the lock
        self._lock = -1

    def _take(self) -> bool:
        """Take the lock: at once, when its holder ends, or after the JVM of a dead holder has ended too."""
        began = time.monotonic()
        silence = Silence(self.path, began)
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                now = time.monotonic()
                if self._takes_over and silence.seconds(now) >= VALID_S:
                    end_holders(self.path.with_suffix(".lock"))
                    silence = Silence(self.path, now)  # another spare may get the lock first, and has its own 30 s
                if now - began >= self._patience_s() or self._ending.wait(PROBE_S):
                    return False
            else:
                return True

    def _patience_s(self) -> float:
        """How many seconds to wait for the lock in all, by what is known of its holder now."""
        if self._takes_over:
            return max(VALID_S + DYING_S, self._wait_s)
        return self._wait_s if self._is_holder_alive() else max(DYING_S, self._wait_s)

    def _is_holder_alive(self) -> bool:
        held = self._read()
        if held.get("host") != socket.gethostname():
            return True
        try:
            os.kill(int(held.get("pid", 0)) or os.getpid(), 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def refusal(self) -> str:
        """Who holds the lease, and for how long, as a sentence from the lease file."""
        held = self._read()
        who = f"process {held.get('pid', '?')} on {held.get('host', '?')}"
        since = max(0.0, time.time() - float(held.get("since", time.time())))
        return f"the job {self.job!r} of this lake is run by {who}, for {since:.0f} s"

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_S):
            with contextlib.suppress(OSError):  # a full disk does not end the lease: the lock guards it
                self._write(time.time() + VALID_S)

    def _read(self) -> dict[str, Any]:
        try:
            lease = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return lease if isinstance(lease, dict) else {}

    def _write(self, until: float) -> None:
        lease = {
            "epoch": self.epoch,
            "holder": f"{socket.gethostname()}:{os.getpid()}",
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": self._since,
            "until": until,
        }
        put_here(self.path, json.dumps(lease, sort_keys=True).encode() + b"\n")


class Silence:
    """Measures for how long a lease has not been renewed, by this process's clock: the holder's may differ."""

    def __init__(self, path: Path, now: float) -> None:
        self.path = path
        self._seen, self._since = self._look(), now

    def seconds(self, now: float) -> float:
        """For how many seconds the lease file has not changed; `now` is monotonic, in seconds."""
        if (seen := self._look()) != self._seen:
            self._seen, self._since = seen, now
        return now - self._since

    def _look(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError:
            return b""


def end_holders(lock: Path) -> list[int]:
    """Kill every process that holds the lock on a file, except this one; returns their numbers.

    Processes of other users and of other machines are not found.
    """
    ended = []
    for process in _processes():
        with contextlib.suppress(OSError):  # it may end just now, or belong to another user
            if _end(process, lock):
                ended.append(process)
    return ended


def _processes() -> Iterator[int]:
    for home in PROCESSES.iterdir():
        if home.name.isdigit() and int(home.name) != os.getpid():
            yield int(home.name)


def _end(process: int, lock: Path) -> bool:
    descriptor = os.pidfd_open(process)  # a later process with the same number is not killed by mistake
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
