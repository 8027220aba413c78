"""Real processes on a real disk: killed, doubled, denied, starved (FLT-033, JRN-007, JRN-033, FLT-018)."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.journal.model import NODE, SMALL, WALL, check_entries
from tests.journal.test_crash import recorded
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.shell.files import Files
from weft.shell.journal import Journal, JournalReader
from weft.testing.disk import crash_images

ROOT = Path(__file__).parents[2]
ALLOW = "allow user namespaces on this machine: sysctl kernel.unprivileged_userns_clone=1, or run as root"


def command(what: str, directory: Path) -> list[str]:
    return [sys.executable, "-m", "tests.journal.process", what, str(directory)]


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Whatever a test starts is ended with it."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def begin(processes: list[subprocess.Popen[str]], what: str, directory: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(command(what, directory), stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)
    processes.append(process)
    return process


@pytest.mark.proves("JRN-001", "JRN-002")
def test_a_writer_that_is_killed_again_and_again_loses_nothing_it_has_said(
    tmp_path: Path, processes: list[subprocess.Popen[str]], soak: bool
) -> None:
    chance = Chance("kill")
    promised = 0
    for _ in range(200 if soak else 10):
        process = begin(processes, "live", tmp_path / "journal")
        assert process.stdout is not None
        found = int(process.stdout.readline().removeprefix("found "))
        assert promised <= found, "everything that was said before the kill"
        for _ in range(chance.randint(0, 60)):
            promised = int(process.stdout.readline())
        process.kill()
        said = process.stdout.read().splitlines()
        promised = int(said[-1]) if said and said[-1].isdigit() else max(promised, found)
        process.wait()
    journal, recovery = Journal.open(tmp_path / "journal", NODE, Files(), WALL, SMALL)
    assert promised <= check_entries(recovery.entries()).last_turn
    journal.close(WALL)


@pytest.mark.proves("JRN-007")
def test_a_second_start_is_refused_and_names_the_first(tmp_path: Path, processes: list[subprocess.Popen[str]]) -> None:
    directory = tmp_path / "journal"
    first = begin(processes, "hold", directory)
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    with pytest.raises(UserError) as refused:
        Journal.open(directory, NODE, Files(), WALL, SMALL)
    assert refused.value.code == "lease-held"
    assert f"process {first.pid}" in refused.value.text
    second = begin(processes, "hold", directory)
    _, error = second.communicate()
    assert (second.returncode, f"process {first.pid}" in error) == (75, True)
    assert JournalReader(directory).next_lsn == 1, "reading needs no lock"
    first.kill()
    first.wait()
    journal, _ = Journal.open(directory, NODE, Files(), WALL, SMALL)
    journal.close(WALL)


@pytest.mark.proves("JRN-007")
def test_what_a_node_keeps_is_nobody_elses(tmp_path: Path) -> None:
    directory = tmp_path / "state" / "journal"
    before = os.umask(0)
    try:
        journal, _ = Journal.open(directory, NODE, Files(), WALL, SMALL)
        journal.close(WALL)
    finally:
        os.umask(before)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    directory.chmod(0o755)
    journal, _ = Journal.open(directory, NODE, Files(), WALL, SMALL)
    journal.close(WALL)
    assert directory.stat().st_mode & 0o777 == 0o700


def in_namespace(script: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a shell script with mounts of its own, that end with it."""
    shell = ["unshare", "-rm", "sh", "-ec", script, "sh", *arguments]
    run = subprocess.run(shell, capture_output=True, text=True, cwd=ROOT, check=False)
    assert "unshare:" not in run.stderr, f"{run.stderr}\n{ALLOW}"
    return run


def test_a_read_only_state_directory_is_refused_by_the_name_of_its_mount(tmp_path: Path) -> None:
    mount = tmp_path / "mounted"
    mount.mkdir()
    script = 'mount -t tmpfs -o size=8m tmpfs "$1"; shift; "$@"; mount -o remount,ro "$0"; exec "$@"'.replace(
        '"$0"', f'"{mount}"'
    )
    run = in_namespace(script, [str(mount), *command("live-shortly", mount / "journal")])
    assert run.returncode == 74, run.stderr
    assert "Read-only file system" in run.stderr
    assert f"({mount})" in run.stderr
    assert run.stdout.splitlines()[-1] == "15", "the start before it was good"


@pytest.mark.proves("JRN-030")
def test_a_small_disk_fills_and_is_given_room_and_nothing_is_lost(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=2m tmpfs "$1"; shift; exec "$@"'
    run = in_namespace(script, [str(tmp_path), *command("starve", tmp_path)])
    assert run.stdout.splitlines() == ["full FULL False", "room OPEN True", "kept True True True"], run.stderr


@pytest.mark.proves("FLT-030")
def test_the_real_file_calls_start_on_what_a_power_cut_left(tmp_path: Path) -> None:
    for number, image in enumerate(crash_images(recorded("real", 120), "real", 25)):
        root = tmp_path / str(number)
        image.lay(root)
        promised = max((message.turn for message in image.sent), default=0)
        for _ in range(2):
            journal, recovery = Journal.open(root / "state" / "journal", NODE, Files(), WALL, SMALL)
            assert promised <= check_entries(recovery.entries()).last_turn, image.name
            journal.close(WALL)
