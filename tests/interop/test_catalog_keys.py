"""A program on another machine uses the catalog of a closed fabric: one line from the root, one directory of keys, by commands."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.netns import Net, host_of
from tests.interop.programs import needed
from tests.interop.test_two_machines import WEFT, Machine

FILE = """\
[node]
name = "root"
level = "root"
host = "{host}"
beacons = false
runs = ["configuration", "topology", "enrolment", "catalog"]
[catalog]
host = "{host}"
"""
BROKER = f"{host_of(1)}:5246"


class Program(Machine):
    """A machine on which a program has keys, or none."""

    keys = ""

    def environment(self) -> dict[str, str]:
        own = {"WEFT_CATALOG": BROKER} | ({"WEFT_KEYS": self.keys} if self.keys else {})
        return super().environment() | own

    def says(self, *words: str) -> tuple[int, str]:
        """The exit status of a command, and what it said."""
        ran = subprocess.run(
            self.net.command(self.number, [*WEFT, *words]),
            cwd=self.home, env=self.environment(), capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Program]]:
    needed("ip")
    with Net(2) as net:
        root, other = Machine(net, 1, tmp_path), Program(net, 2, tmp_path)
        (root.home / "root.toml").write_text(FILE.format(host=host_of(1)), "utf-8")
        try:
            yield root, other
        finally:
            for each in (other, root):
                each.end()


@pytest.mark.proves(
    "CAT-060", part="by commands on two machines: invited as a service, let in, and shut out when its key is revoked"
)
def test_an_invited_program_registers_its_names_and_a_stranger_nothing(machines: tuple[Machine, Program]) -> None:
    root, other = machines
    root.run(["init", "--name", "root"])
    root.begin(["up", "root.toml"])
    root.until(["status"], lambda said: "root" in said)
    token = root.run(["invite", "--role", "service", "--names", "cam*"]).split()[-1]
    assert 3 == other.says("catalog", "ls")[0]
    said = other.run(["join", token, "--name", "cam"])
    other.keys = str(other.home / "state" / "weft" / "joined" / "cam")
    assert f"WEFT_KEYS={other.keys}" in said
    other.run(["catalog", "register", "cam-1", "--ip", host_of(2), "--port", "9000", "--heartbeat", "60000"])
    assert "cam-1" in other.run(["catalog", "ls"])
    status, why = other.says("catalog", "register", "door", "--ip", host_of(2), "--port", "9001")
    assert (4, True) == (status, "weft invite --role" in why), why
    root.run(["key", "revoke", "cam"])
    status, why = other.says("catalog", "ls")
    assert (3, True) == (status, "WEFT_KEYS" in why), why
