"""A network with loopback alone, for programs that bind everything and broadcast: nothing of it reaches the machine.

It is a namespace of this user's own, held by a process that ends with it; no root is needed.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.house.requirements import ROOT
from tests.interop.moat.peers import Program, until
from tests.interop.programs import needed

HERE: Final = Path(__file__).parent
SETUP: Final = (
    "ip link set lo up && ip link set lo multicast on && ip route add 224.0.0.0/4 dev lo"
    " && ip route add 255.255.255.255/32 dev lo && echo ready && exec cat"
)
ANSWER_S: Final = 25.0
NODE: Final = """
[fleet]
name = "island"

[node]
name = "broker"
level = "root"
state = "{state}"
flush_s = 0.1

[catalog]
{more}
"""


class Island:
    """`with` makes it, and ends all that was started on it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.node: Program
        """Of `broker`."""
        self._programs: list[Program] = []
        self._anchor = subprocess.Popen(
            [needed("unshare"), "-rn", needed("bash"), "-c", SETUP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        needed("ip")
        assert self._anchor.stdout is not None
        if self._anchor.stdout.readline() != b"ready\n":
            self.__exit__()
            pytest.fail("this machine lets nobody make networks (unshare -rn)", pytrace=False)
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.kill()
        self._anchor.kill()
        self._anchor.communicate()

    def command(self, *words: str) -> list[str]:
        """What starts a program there; what it writes into its directory stays in the test's."""
        enter = [needed("nsenter"), "-t", str(self._anchor.pid), "-U", "-n", "--preserve-credentials", "--"]
        return [*enter, needed("env"), "-C", str(self.place), f"PYTHONPATH={ROOT}", "PYTHONUNBUFFERED=1", *words]

    def start(self, name: str, *words: str) -> Program:
        """A program that lives until the island ends."""
        program = Program(name, self.place, self.command(*words))
        program.start()
        self._programs.append(program)
        return program

    def said(self, *words: str) -> str:
        """What a program says that ends by itself, and well."""
        ran = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=ANSWER_S, check=False)
        assert 0 == ran.returncode, (words, ran.stdout[-2000:], ran.stderr[-2000:])
        return ran.stdout

    # Weft's

    def broker(self, more: str = "") -> Program:
        """A node of Weft with a catalog, which serves when this returns."""
        file = self.place / "broker.toml"
        file.write_text(NODE.format(state=self.place / "broker", more=more), "utf-8")
        self.node = node = self.start("broker", sys.executable, "-m", "weft.cli.main", "up", str(file))
        until(lambda: "node.started" in node.said() or not node.is_alive, node.said)
        assert node.is_alive, node.said()
        return node

    def woven(self, name: str, *words: str) -> Program:
        """A program of this directory, under our Python."""
        return self.start(name, sys.executable, str(HERE / f"{name}.py"), *words)

    def ask(self, *names: str) -> Any:
        """What the broker answers to a plain REQ: the JSON of its first body frame."""
        return json.loads(self.said(sys.executable, str(HERE / "ask.py"), *names))

    # Hermes'

    def hermes(self, name: str, code: str) -> Program:
        """A node of the reference upstream."""
        return self.start(name, hermes_python(), "-c", code)

    def hermes_said(self, code: str) -> Any:
        """What a client of it prints, each line a value of Python.

        On a busy machine its client may miss an answer, for which it then waits for ever: so it is asked anew, twice at most.
        """
        for _ in range(2):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.said(hermes_python(), "-c", code)
        return self.said(hermes_python(), "-c", code)


def hermes_python() -> str:
    """The interpreter of its environment."""
    place = ROOT / "var" / "peers" / "hermes"
    if not (place / "weft.done").exists():
        pytest.fail(f"{place} is not there: run scripts/interop-install hermes", pytrace=False)
    return str(place / "bin" / "python")
