"""Nodes for stories of several: forked from one process that has loaded their modules, which is two thirds of a node's short life.

A forked node runs `weft up FILE` as a fresh one does, is a process of its own, and is killed like any other. What only a fresh
one shows, its start, packages of another PYTHONPATH, and what lists of processes say of it, has stories that begin their nodes
as people do (`is_fresh`).

    python -m tests.fabric.warm     what forks: each request on its standard input is a node
"""

import atexit
import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Final

ROOT: Final = Path(__file__).parents[2]
SUBREAPER: Final = 36
"""`PR_SET_CHILD_SUBREAPER`: a process whose parent is gone becomes a child of this one."""
REQUEST_BYTES: Final = 1 << 17
PID_BYTES: Final = 16


class Forked:
    """What tests need of a process, as `subprocess.Popen` has it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """How it ended; TimeoutExpired: it has not."""
        ends_at = time.monotonic() + (float("inf") if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > ends_at:
                raise subprocess.TimeoutExpired("weft up", timeout or 0)
            time.sleep(0.01)  # tidy: bounded above, as far as the caller wants
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def start(words: Sequence[str], out: IO[bytes], errors: IO[bytes]) -> Forked:
    """A process that runs `weft WORDS`, with the environment and the directory of this one, but for what Python reads as it starts."""
    ours = _forker()
    said = json.dumps([words, dict(os.environ), str(Path.cwd())]).encode()
    socket.send_fds(ours, [said], [out.fileno(), errors.fileno()])
    return Forked(int(ours.recv(REQUEST_BYTES)))


@cache
def _forker() -> socket.socket:
    """The way to the process that forks, which ends with this one."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        words = [sys.executable, "-m", "tests.fabric.warm"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(words, stdin=theirs.fileno(), cwd=ROOT, start_new_session=True, env=environment)

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return ours


def fork_all(asked: socket.socket) -> None:
    """Until nobody asks any more: a node for each request, whose number is the answer. A node returns when it has to begin."""
    while True:
        said, files, _, _ = socket.recv_fds(asked, REQUEST_BYTES, 2)
        if not said:
            sys.exit()
        if not (pid := _fork_away()):
            _dress(files, *json.loads(said))
            return
        asked.send(str(pid).encode())
        for file in files:
            os.close(file)


def _fork_away() -> int:
    """The number of a process that is no child of this one; 0 in that process."""
    told, tell = os.pipe()
    if between := os.fork():
        os.close(tell)
        os.waitpid(between, 0)  # its child is now one of whoever asked
        pid = int(os.read(told, PID_BYTES))
        os.close(told)
        return pid
    if pid := os.fork():
        os.write(tell, str(pid).encode())
        os._exit(0)
    os.close(told)
    os.close(tell)
    return 0


def _dress(files: list[int], words: list[str], environment: dict[str, str], place: str) -> None:
    """Be what a fresh process of these words would be."""
    os.setsid()
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *files)):
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["weft", *words]


def _become(_: str, words: list[str]) -> None:
    """Instead of `os.execv`: what is loaded already runs."""
    from weft.shell import serve

    sys.argv = words[2:]
    sys.exit(serve.main())


if __name__ == "__main__":
    from weft.cli.main import main
    from weft.shell import serve  # noqa: F401  # nodes find it loaded

    gc.disable()  # as a fresh node does until it has started
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as asked:
        fork_all(asked)
    os.execv = _become  # type: ignore[assignment]  # it never returns either
    main()
