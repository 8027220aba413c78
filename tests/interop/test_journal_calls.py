"""The system calls of a process that lives from a journal, seen from outside by strace (FLT-031, FLT-032)."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.interop.programs import needed
from tests.journal.model import NODE, SMALL, WALL, check_entries
from weft.base.errors import StorageFailed
from weft.shell.files import Files
from weft.shell.journal import Journal

ROOT = Path(__file__).parents[2]
LIVE: Final = (sys.executable, "-m", "tests.journal.process", "live-longer")
ALLOW = "allow tracing on this machine: sysctl kernel.yama.ptrace_scope=0, or add the capability SYS_PTRACE"
CALLS_MAX: Final = 200


def traced(options: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the small process under strace."""
    trace = [needed("strace"), "-f", "-o", str(directory.parent / "trace"), *options]
    run = subprocess.run([*trace, *LIVE, str(directory)], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "strace: " not in run.stderr, f"{run.stderr}\n{ALLOW}"
    return run


def promised(run: subprocess.CompletedProcess[str]) -> int:
    return max((int(line.removeprefix("found ")) for line in run.stdout.splitlines()), default=0)


@pytest.mark.proves("JRN-001")
def test_nothing_is_said_while_a_record_is_written_and_not_synced(tmp_path: Path) -> None:
    run = traced(["-y", "-e", "trace=write,fdatasync"], tmp_path / "journal")
    assert promised(run) == 100
    unsynced, said = set(), 0
    for line in (tmp_path / "trace").read_text().splitlines():
        call = re.search(r"(write|fdatasync)\((\d+)<([^>]*)>", line)
        if call is None:
            continue
        name, number, path = call.groups()
        if name == "fdatasync":
            unsynced.discard(path)
        elif path.endswith(".seg"):
            unsynced.add(path)
        elif number == "1":
            said += 1
            assert unsynced == set(), line
    assert said == 101


@pytest.mark.proves("FLT-032", "JRN-025")
@pytest.mark.parametrize("call", ["fdatasync", "fsync", "rename", "ftruncate"])
@pytest.mark.parametrize("harm", ["signal=SIGKILL", "error=EIO"])
def test_harm_at_every_call_of_a_life_costs_no_promise(call: str, harm: str, tmp_path: Path, soak: bool) -> None:
    runs = 0
    for when in range(1, CALLS_MAX, 1 if soak else 9):
        directory = tmp_path / str(when) / "journal"
        directory.parent.mkdir()
        inject = f"inject={call}:{harm}:when={when}"
        run = traced(["-e", f"trace={call}", "-e", inject], directory)
        journal, recovery = Journal.open(directory, NODE, Files(), WALL, SMALL)
        assert promised(run) <= check_entries(recovery.entries()).last_turn, inject
        journal.close(WALL)
        if run.returncode == 0:
            break
        assert run.returncode == (74 if harm == "error=EIO" else -9), run.stderr
        runs += 1
    assert runs > 0 or call in ("rename", "ftruncate")


def test_a_disk_that_is_broken_from_the_start_is_a_refusal(tmp_path: Path) -> None:
    run = traced(["-e", "trace=fsync", "-e", "inject=fsync:error=EIO"], tmp_path / "journal")
    assert run.returncode == 74, run.stderr
    with pytest.raises(StorageFailed):
        Journal.open(tmp_path / "trace", NODE, Files(), WALL, SMALL)
