"""Three machines in namespaces, by the words of docs/second-machine.md, one after the other: a closed fabric that does everything."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.house.requirements import ROOT
from tests.interop.netns import Net, host_of
from tests.interop.programs import needed
from tests.patience import PATIENCE_S

PAGE: Final = ROOT / "docs" / "second-machine.md"
LINE: Final = re.compile(r"^machine-(?P<machine>\d)\$ (?P<words>.*?)(?P<waits> &)?\s*(?:#.*)?$", re.MULTILINE)
MORE: Final = "[store]\n[catalog]\n[doc.session.friday]\n"
COMMAND_S: Final = 900
"""For one command: where fifty wait for two cores, Spark alone needs more than 400 seconds."""
WEFT: Final = [sys.executable, "-m", "weft.cli.main"]


class Machine:
    """One machine: a home, a folder to work in, and what still runs there."""

    def __init__(self, net: Net, number: int, place: Path) -> None:
        self.net, self.number, self.home = net, number, place / f"machine-{number}"
        self.home.mkdir()
        (self.home / "more.toml").write_text(MORE, "utf-8")
        self.running: list[subprocess.Popen[str]] = []

    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state"), "XDG_RUNTIME_DIR": str(self.home)}
        return {**os.environ, **own, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}

    def begin(self, words: list[str]) -> subprocess.Popen[str]:
        """Start a command that goes on; what it says stands in a file."""
        return self.begin_program([*WEFT, *words])

    def begin_program(self, words: list[str]) -> subprocess.Popen[str]:
        """Start any program in the same way."""
        with (self.home / f"out-{len(self.running)}").open("w") as out:
            begun = subprocess.Popen(
                self.net.command(self.number, words),
                cwd=self.home, env=self.environment(), stdout=out, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        self.running.append(begun)
        return begun

    def run(self, words: list[str]) -> str:
        """What a command says on its output; it has to work."""
        ran = subprocess.run(
            self.net.command(self.number, [*WEFT, *words]),
            cwd=self.home, env=self.environment(), capture_output=True, text=True, timeout=COMMAND_S, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, (
            f"machine-{self.number}: weft {shlex.join(words)}: {ran.stdout}{ran.stderr}\n{self.said()}"
        )
        return ran.stdout

    def until(self, words: list[str], holds: Callable[[str], bool]) -> str:
        """The same again, until it says so."""
        ends_at, why = time.monotonic() + PATIENCE_S, ""
        while time.monotonic() < ends_at:
            try:
                said = self.run(words)
            except AssertionError as error:
                why = str(error)
            else:
                if holds(said):
                    return said
                why = said
            time.sleep(0.2)  # tidy: another machine tells this test nothing; bounded above
        raise AssertionError(
            f"not within {PATIENCE_S} s: weft {shlex.join(words)} on machine-{self.number}: {why}\n{self.said()}"
        )

    def said(self) -> str:
        """The end of what its background commands have said."""
        return "\n".join(f"{path}: {path.read_text()[-1_500:]}" for path in sorted(self.home.glob("out-*")))

    def end(self) -> None:
        for each in self.running:
            each.terminate()
        for each in self.running:
            try:
                each.wait(20)
            except subprocess.TimeoutExpired:
                each.kill()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[dict[int, Machine]]:
    needed("ip")
    with Net(3) as net:
        made = {number: Machine(net, number, tmp_path) for number in net.numbers}
        try:
            yield made
        finally:
            for each in reversed(made.values()):
                each.end()


def lines_of_page() -> list[dict[str, Any]]:
    text = PAGE.read_text("utf-8")
    section = text[text.index("# A second machine") :].split("```")[1]
    return [match.groupdict() for match in LINE.finditer(section)]


SAYS: Final[dict[str, Callable[[str], bool]]] = {
    "status": lambda said: all(f" {name} " in said for name in ("root", "m2", "m3")) and "behind" not in said,
    "key ls": lambda said: [line.split()[0] for line in said.splitlines()[1:]] == ["m2", "m3", "root"],
    "store found": lambda said: True,
    "set": lambda said: True,
    "get": lambda said: said.strip() == "21.5",
    "catalog ls": lambda said: "thermo" in said,
    "doc add": lambda said: True,
    "doc show": lambda said: "<penalty" in said,
    "chain send": lambda said: True,
    "lake run": lambda said: True,
    "sql": lambda said: [line.strip() for line in said.splitlines() if line.strip()][-3:] == ["m2", "m3", "root"],
}
"""What a command says when it has worked, by its first words."""


@pytest.mark.proves("SEC-050", "TOP-004")
def test_three_machines_by_the_words_of_its_page(machines: dict[int, Machine]) -> None:
    token = ""
    lines = lines_of_page()
    assert 15 < len(lines)
    for line in lines:
        machine, words = machines[int(line["machine"])], shlex.split(line["words"].replace("weft1.AQCh…", token))
        assert words.pop(0) == "weft", line
        told = " ".join(words)
        if line["waits"]:
            machine.begin(words)
            if told.startswith("chain watch"):  # a person types the next line later than the watch has begun
                machine.until(["chain", "ls"], lambda said: "demo.report" in said)
        elif words[0] == "invite":
            assert host_of(1) in words
            machine.until(["status"], lambda said: "root" in said)
            token = machine.run(words).split()[-1]
        else:
            holds = next(says for start, says in SAYS.items() if told.startswith(start))
            machine.until(words, holds)
    members = json.loads(machines[1].run(["status", "--json"]))["members"]
    assert {host_of(number) for number in machines} == {member["endpoint"].partition(":")[0] for member in members}
    watch = machines[1].running[-1]
    assert watch.wait(PATIENCE_S) == 0, machines[1].said()
    assert "hello" in machines[1].said()
