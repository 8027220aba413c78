"""A shell in which a page is typed: an empty folder, a network of its own, and `weft` in the path."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.patience import PATIENCE_S


class Shell:
    """One shell for the whole page, so that what runs behind a command runs on."""

    def __init__(self, place: Path, before: str = ":", bin_: Path | None = None) -> None:
        """`before` is done first, in namespaces of its networks and mounts; programs of `bin_` are found before all others."""
        self.place = place
        home = {"HOME": str(place), "XDG_STATE_HOME": str(place / "home"), "COLUMNS": "120"}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        path = path if bin_ is None else f"{bin_}:{path}"
        self.environment = {**os.environ, **home, "PATH": path}
        net = ["unshare", "-n", "-m", "bash", "-c", f"ip link set lo up; {before}; exec bash"]
        with (place / "errors").open("w") as errors:
            self.process = self._begin(net, errors)

    def _begin(self, net: list[str], errors: IO[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            net, cwd=self.place, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, words: str) -> tuple[str, int]:
        """What the words say, and the status of the last."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        quiet = re.sub(r" &(?=$|  +#)", " >/dev/null 2>>errors &", words, flags=re.MULTILINE)
        self.process.stdin.write(f"{quiet}\nended=$?; echo; echo ended $ended\n")
        self.process.stdin.flush()
        said: list[str] = []
        for line in self.process.stdout:
            if line.startswith("ended "):
                return "".join(said), int(line.split()[1])
            said.append(line)
        raise AssertionError(f"the shell has ended: {words}")

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("kill $(jobs -p); wait\n")
        self.process.communicate(timeout=PATIENCE_S)


@contextmanager
def opened(place: Path, before: str = ":", bin_: Path | None = None) -> Iterator[Shell]:
    """A shell that ends with all that was begun in it."""
    made = Shell(place, before, bin_)
    try:
        yield made
    finally:
        made.end()


def until(shell: Shell, text: str, what: str, within_s: float = PATIENCE_S) -> None:
    """Type it again and again until it says that."""
    began, said = time.monotonic(), ""
    while what not in said:
        assert time.monotonic() - began < within_s, f"{text} never says {what}: {said}"
        said, _ = shell.run(text)
