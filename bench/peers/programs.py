"""Programs of others, started for a bench on loopback and ended by it; never as services of the system.

They are looked for on the path, and below var/peers, where `scripts/bench-install` unpacks Debian's, and NATS' own.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

UNPACKED: Final = Path(__file__).parents[2] / "var" / "peers"
PATIENCE_S: Final = 10.0
STOP_S: Final = 5.0
LOOK_S: Final = 0.005
LOCAL: Final = "127.0.0.1"


def end_in_order() -> None:
    """Let whoever ends this bench with SIGTERM end what it has started, too."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def found(name: str) -> str | None:
    """Where a program is; None: nowhere."""
    folders = [str(UNPACKED / folder) for folder in ("nats/bin", "usr/bin", "usr/sbin")]
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *folders]))


def unpacked(pattern: str) -> Path | None:
    """A folder of an unpacked package; None: it is not there, so the program knows its own."""
    return next(iter(sorted(UNPACKED.glob(pattern))), None)


def demand(*names: str) -> None:
    """End with one sentence if programs are missing."""
    missing = [name for name in names if found(name) is None]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}; scripts/bench-install unpacks them into var/peers")


def demand_modules(*names: str) -> None:
    """End with one sentence if modules of Python are missing."""
    import importlib.util

    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(
            f"not installed: {', '.join(missing)}; they are in requirements/test.txt: make .venv/test.done"
        )


@contextlib.contextmanager
def running(command: Sequence[str], place: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A program in an empty folder, once it listens on its port; it does not outlive the block."""
    program = found(command[0])
    assert program is not None, "demanded before"
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([program, *command[1:]], cwd=place, stdout=log, stderr=log, env=environment())
    try:
        await_port(port, process)
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and make it."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until somebody listens there; TimeoutError."""
    ends_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_at and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((LOCAL, port), 1):
            return
        time.sleep(LOOK_S)
    raise TimeoutError(f"{process.args!r} does not listen on {port}")


def environment() -> dict[str, str]:
    """With the libraries that were unpacked beside the programs."""
    folders = [*UNPACKED.glob("usr/lib/*-linux-gnu"), *UNPACKED.glob("lib/*-linux-gnu"), UNPACKED / "usr/lib/syslog-ng"]
    known = os.environ.get("LD_LIBRARY_PATH", "")
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join([known, *map(str, folders)]).strip(os.pathsep)}
