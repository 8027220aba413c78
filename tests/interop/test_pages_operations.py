"""docs/operations.md is typed as it stands there, with stand-ins for sudo, systemd, its journal, and docker (WEL-002)."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.house.requirements import ROOT
from tests.interop import wheels
from tests.interop.pageshell import Shell, opened, until

PAGE: Final = (ROOT / "docs" / "operations.md").read_text("utf-8")
BLOCK: Final = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITHIN_S: Final = 500.0
"""How long pip may take on a machine that has other things to do."""
STANDINS: Final = {
    "sudo": 'exec "$@"',
    "systemctl": f'exec {sys.executable} {ROOT}/tests/interop/systemctl.py "$@"',
    "journalctl": f'exec {sys.executable} {ROOT}/tests/interop/systemctl.py journalctl "$@"',
    "docker": 'echo "$@"',
}
OWN: Final = ("/etc", "/opt", "/var/lib")
"""Directories of the system of which the page has a copy of its own."""
HOST: Final = "10.9.0.1"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """The sources in an empty folder, on a machine of one's own where systemd seems to run."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "examples/fleet.toml", tmp_path / "fleet.toml")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, words in STANDINS.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{words}\n")
        (bin_ / name).chmod(0o755)
    before = [f"ip address add {HOST}/32 dev lo", "mount -t tmpfs none /run", "mkdir -p /run/systemd/system"]
    for own in OWN:
        kept = tmp_path / "own" / own.strip("/").replace("/", "-")
        for part in ("upper", "work"):
            (kept / part).mkdir(parents=True)
        before.append(f"mount -t overlay -o lowerdir={own},upperdir={kept}/upper,workdir={kept}/work none {own}")
    with opened(tmp_path, " && ".join(before), bin_) as made:
        yield made
        made.run("systemctl disable weft-root.service; systemctl disable weft-lake.service")


def lines_of(kind: str) -> Iterator[list[str]]:
    """What is typed of each block of a kind, without its comments."""
    for found, text in BLOCK.findall(PAGE):
        if found == kind:
            yield [re.split(r" +# ", line)[0] for line in text.splitlines()]


def done(shell: Shell, line: str) -> str:
    """What a line says; it has to work."""
    said, status = shell.run(line)
    assert 0 == status, f"{line}: {said}{(shell.place / 'errors').read_text()[-1500:]}"
    return said


def newer(shell: Shell) -> None:
    """A wheel of the next version lies in the folder."""
    file = shell.place / "src/weft/__init__.py"
    file.write_text(file.read_text("utf-8").replace('__version__ = "0.1.0"', '__version__ = "0.2.0"'), "utf-8")
    done(shell, "build/bin/hatchling build -t wheel && cp dist/weft-0.2.0-py3-none-any.whl .")


@pytest.mark.proves(
    "WEL-002", part="the page of operations: a machine is installed, runs services, is upgraded and cleared"
)
def test_the_page_of_operations_works_as_it_is_written(shell: Shell) -> None:
    house = [word for word in wheels.house_of(Path(sys.executable)) if not word.startswith("--")]
    shell.run(f"export PIP_NO_INDEX=1 PIP_FIND_LINKS='{' '.join(house)}'")
    installing, services, (joining,), journal, upgrading, removing, (container,) = lines_of("sh")
    for line in installing:
        done(shell, line)
    (shell.place / "root.toml").write_text(next(text for kind, text in BLOCK.findall(PAGE) if kind == "toml"), "utf-8")
    told = [done(shell, line) for line in services]
    assert ["lake", "root"] == [line.split()[0] for line in told[-1].splitlines() if line.strip()]
    until(shell, "weft status", "root")
    token = done(shell, f"weft invite --listen {HOST}").split()[-1]
    done(shell, joining.replace("weft1.AQCh…", token))
    until(shell, "weft top", "2 machines are well", WITHIN_S)
    follow, warnings = journal
    assert '"event": "node.started"' in done(shell, follow)
    assert '"level": "info"' not in done(shell, warnings)
    check, install, restart, status = upgrading
    newer(shell)
    until(shell, check, "nothing stands in the way", WITHIN_S)
    for line in (install, restart):
        done(shell, line)
    until(shell, "weft status --json", '"version": "0.2.0"', WITHIN_S)
    done(shell, status)
    for line in removing:
        done(shell, line)
    assert "weft" not in shell.run("ls /etc/weft /opt /var/lib/weft")[0].replace("/weft", "")
    assert done(shell, container).startswith("run -d --network host")
