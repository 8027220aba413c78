"""A few nodes as processes of this machine: started, watched, started again when they die, and stopped in order."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

RESTART_AFTER_S: Final = 1.0
STOP_S: Final = 10.0


@dataclass
class Member:
    """One process of the fleet; `port` 0: it has no port block."""

    name: str
    arguments: Sequence[str]
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    deaths: list[str] = field(default_factory=list)
    down_since: float = 0.0
    wanted: bool = True

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Fleet:
    """All processes of a demonstration. Their output goes to files in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.members: list[Member] = []
        self.news: list[str] = []

    def add(self, member: Member) -> None:
        """Start a process and watch it from now on."""
        self.members.append(member)
        self._start(member)

    def watch(self) -> None:
        """Note which processes have died, and start them again a second later."""
        for member in self.members:
            if not member.wanted or member.is_running:
                continue
            if not member.down_since:
                member.down_since = time.monotonic()
                member.deaths.append(_how(member.process))
                self.news.append(f"{member.name} died ({member.deaths[-1]}); it is started again")
            elif time.monotonic() - member.down_since >= RESTART_AFTER_S:
                self._start(member)

    def stop(self, names: Sequence[str], patience_s: float = STOP_S) -> list[str]:
        """Tell these processes to end, all at once; those that still run after the time are killed, and returned."""
        killed = []
        chosen = [member for name in names for member in self.members if member.name == name]
        for member in chosen:
            member.wanted = False
            if member.is_running and member.process is not None:
                member.process.send_signal(signal.SIGTERM)
        ends_at = time.monotonic() + patience_s
        for member in chosen:
            if member.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    member.process.wait(max(0.1, ends_at - time.monotonic()))
                if member.process.poll() is None:
                    self.news.append(f"{member.name} did not stop within {patience_s:.0f} s and was killed")
                    member.process.kill()
                    member.process.wait()
                    killed.append(member.name)
        return killed

    def stop_all(self) -> None:
        """End whatever still runs; nothing of a demonstration outlives it."""
        self.stop([member.name for member in reversed(self.members)])

    def _start(self, member: Member) -> None:
        member.down_since = 0.0
        with (
            (self.directory / f"{member.name}.out").open("ab") as out,
            (self.directory / f"{member.name}.log").open("ab") as errors,
        ):
            member.process = self._run(member.arguments, out, errors)

    def _run(self, arguments: Sequence[str], out: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # only our own interpreter and arguments
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for the demonstration, which stops its members in order
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )


def _how(process: subprocess.Popen[bytes] | None) -> str:
    code = process.returncode if process is not None else None
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit {code}"
