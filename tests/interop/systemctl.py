"""Stands in for systemd where a page of services is typed: a unit is run by its words, and what it says is kept.

`systemctl restart|disable|show …` and `journalctl -u NAME …`, as far as `weft service` and the page of operations go.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

UNITS: Final = Path("/etc/systemd/system")
RUN: Final = Path("/run/weft-units")
"""The process of each unit, its credentials, and its journal."""
LEVELS: Final = {"err": 3, "warning": 4, "info": 6, "debug": 7}
STOPPING_S: Final = 60.0


def main(words: list[str]) -> None:
    """Do what is asked for, the last word is the unit."""
    RUN.mkdir(exist_ok=True)
    if words[0] == "journalctl":
        name, least = words[words.index("-u") + 1], words[words.index("-p") + 1] if "-p" in words else "debug"
        lines = re.findall(r"^(?:<(\d)>)?(.*\n)", (RUN / f"{name}.log").read_text("utf-8"), re.MULTILINE)
        sys.stdout.write("".join(line for priority, line in lines if int(priority or 6) <= LEVELS[least]))
    elif "restart" in words:
        stop(words[-1])
        start(words[-1])
    elif "disable" in words:
        stop(words[-1])
    elif "show" in words:
        sys.stdout.write(f"ActiveState={'active' if is_alive(words[-1]) else 'inactive'}\nMainPID=0\nNRestarts=0\n")


def start(unit: str) -> None:
    """Run the words of a unit in its directory, with its credentials."""
    lines = [line.partition("=")[::2] for line in (UNITS / unit).read_text("utf-8").splitlines()]
    given = RUN / f"{unit}.credentials"
    given.mkdir(exist_ok=True)
    for _, value in (pair for pair in lines if pair[0] == "LoadCredential"):
        name, _, path = value.partition(":")
        (given / name).write_bytes(Path(path).read_bytes())
    told = dict(lines)
    place = Path(told["WorkingDirectory"])
    place.mkdir(parents=True, exist_ok=True)
    with (RUN / f"{unit.removesuffix('.service')}.log").open("a") as said:
        journal = os.fstat(said.fileno())
        begun = subprocess.Popen(
            shlex.split(told["ExecStart"].replace("%d", str(given))), cwd=place,
            env={"PATH": "/usr/bin:/bin", "JOURNAL_STREAM": f"{journal.st_dev}:{journal.st_ino}"},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    (RUN / f"{unit}.pid").write_text(str(begun.pid))


def pid_of(unit: str) -> int | None:
    """The process of a unit that has been started."""
    file = RUN / f"{unit}.pid"
    return int(file.read_text()) if file.exists() else None


def is_alive(unit: str) -> bool:
    """Whether its process is there, and has not ended."""
    pid = pid_of(unit)
    stat = Path(f"/proc/{pid}/stat")
    return pid is not None and stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def stop(unit: str) -> None:
    """End its process, and wait until it is gone."""
    pid = pid_of(unit)
    if pid is None or not is_alive(unit):
        return
    os.kill(pid, signal.SIGTERM)
    ends_at = time.monotonic() + STOPPING_S
    while is_alive(unit) and time.monotonic() < ends_at:
        time.sleep(0.05)  # tidy: the process is another one's child; bounded above


if __name__ == "__main__":
    main(sys.argv[1:])
