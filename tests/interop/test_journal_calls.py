"""The system calls of processes that promise to keep something, seen from outside by strace (FLT-031, FLT-032, FLD-042)."""

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


NAMES: Final = r"(openat|mkdir|link|linkat|rename|renameat2)\((.*)\) = \d"
PASSING: Final = re.compile(r"\.tmp$|lock$|\.json#|\.sha256$|/_weft/spill")
"""As in `tests/syncs/calls.py`."""
MADE: Final = re.compile(r'"([^"]+)"')


class Unsynced:
    """What the traced process has written, and named, below a folder, and not synced yet."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.found: set[str] = set()

    def take(self, line: str) -> None:
        """One line of the trace."""
        if call := re.search(r"(write|pwrite64|fdatasync|fsync)\(\d+<([^>]*)>", line):
            name, path = call.groups()
            if name in ("write", "pwrite64"):
                self._note(path)
            else:
                self.found = {one for one in self.found if one not in (path, f"name in {path}")}
        elif call := re.search(NAMES, line):
            name, paths = call[1], MADE.findall(call[2])
            if name != "openat" or "O_CREAT" in call[2]:
                for path in paths[name.startswith("link") :]:
                    self._note(f"name in {Path(path).parent}", path)
            if name.startswith("rename") and paths[0] in self.found:
                self.found |= {paths[-1]}
                self.found.discard(paths[0])

    def _note(self, what: str, path: str = "") -> None:
        path = path or what
        if path.startswith(self.root) and not PASSING.search(path):
            self.found.add(what)


@pytest.mark.proves("FLD-042")
@pytest.mark.parametrize(
    "life", ["journal_turns", "journal_without_room", "identity", "lake", "imported", "driver", "tables"]
)
def test_nothing_is_answered_before_its_bytes_and_its_name_are_synced(life: str, tmp_path: Path) -> None:
    root, trace = tmp_path / "root", tmp_path / "trace"
    root.mkdir()
    calls = "trace=write,pwrite64,fdatasync,fsync,openat,mkdir,link,linkat,rename,renameat2"
    command = (sys.executable, "-m", "tests.syncs.process", life, str(root))
    run = subprocess.run(
        [needed("strace"), "-f", "-y", "-e", calls, "-o", str(trace), *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert 0 == run.returncode, f"{run.stderr}\n{ALLOW}"
    unsynced, answers = Unsynced(root), 0
    for line in trace.read_text().splitlines():
        unsynced.take(line)
        if "write(1<" in line:
            answers += 1
            assert set() == unsynced.found, line
    assert answers == len(run.stdout.splitlines()) > 0
