"""What any command says when its output cannot be written, and that no text of others reaches a terminal as it is."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from weft.base.errors import UserError
from weft.cli.kit.console import console
from weft.cli.kit.ending import ended
from weft.lake.layout import Layout

WEFT = [sys.executable, "-m", "weft.cli.main"]
FULL = "weft: the output is incomplete: No space left on device\n  try: a disk with more room\n"
ROWS = "SELECT range AS number, 'a row of many' AS words FROM range(5000)"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake without tables: SQL that needs none is answered."""
    layout = Layout(tmp_path_factory.mktemp("lake"))
    layout.lake_json.parent.mkdir(parents=True, exist_ok=True)
    layout.lake_json.write_text("{}", "utf-8")
    return str(layout.root)


MORE = ("rows", "rows as JSON", "rows as CSV", "a page")


@pytest.fixture(
    params=[
        "help",
        "text",
        *(pytest.param(kind, marks=pytest.mark.prove("DuckDB is loaded each time")) for kind in MORE),
    ]
)
def words(request: pytest.FixtureRequest, lake: str) -> list[str]:
    """Commands that print in each way that there is."""
    of_rows = ["sql", ROWS, "--limit", "5000", "--lake", lake]
    return {
        "help": ["chain", "--help"],
        "rows": of_rows,
        "rows as JSON": [*of_rows, "--json"],
        "rows as CSV": [*of_rows, "--csv"],
        "text": ["up", "--example"],
        "a page": ["lake", "schema", "silver.values"],
    }[str(request.param)]


def run(words: list[str], out: IO[bytes] | int) -> tuple[int, str]:
    ran = subprocess.run([*WEFT, *words], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    return ran.returncode, ran.stderr


def test_a_full_disk_is_a_sentence_and_a_status_of_its_own(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        assert (74, FULL) == run(words, full)


def test_a_reader_that_has_seen_enough_is_no_error(words: list[str]) -> None:
    with subprocess.Popen([*WEFT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr is not None
        assert (b"", 0) == (process.stderr.read(), process.wait())


def test_a_reader_that_was_never_there_is_no_error(words: list[str]) -> None:
    ran = subprocess.run(["/bin/sh", "-c", '"$@" >&-', "sh", *WEFT, *words], stderr=subprocess.PIPE, check=False)
    assert (0, b"") == (ran.returncode, ran.stderr)


class Closed:
    """An output that nobody reads."""

    encoding = "utf-8"

    def __init__(self, file: IO[bytes]) -> None:
        self.fileno = file.fileno

    def write(self, _: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        """Nothing is left."""

    def isatty(self) -> bool:
        return False


def test_a_reader_that_goes_while_tasks_run_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch() -> None:
        await asyncio.create_task(one())

    async def one() -> None:
        console().print("a change")

    with (tmp_path / "out").open("wb") as file:
        monkeypatch.setattr(sys, "stdout", Closed(file))
        assert 0 == ended(lambda: asyncio.run(watch()))


@pytest.mark.proves("SEC-045", part="what a command complains of")
@pytest.mark.proves("HSE-004", part="one complaint, whose text is cleaned")
def test_what_others_said_moves_no_cursor_in_a_complaint(capsys: pytest.CaptureFixture[str]) -> None:
    def refused() -> Any:
        raise UserError("refused", "the node refused: \x1b[2J\x9b1mhello\u202e", "weft status")

    assert 4 == ended(refused)
    assert "weft: the node refused: \\x1b[2J\\x9b1mhello\\u202e\n  try: weft status\n" == capsys.readouterr().err


def test_a_mistake_in_a_fleet_file_moves_no_cursor(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text('[group.a]\n"x\\u001b[2J" = 1\n', "utf-8")
    status, text = run(["config", "check", str(tmp_path / "f.toml")], subprocess.DEVNULL)
    assert (1, True, False) == (status, "x\\x1b[2J" in text, "\x1b" in text)


def test_an_interrupt_ends_as_shells_say_it() -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    assert 130 == ended(interrupted)
