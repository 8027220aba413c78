"""No command prints to a terminal but through what cleans it, so that no text of others moves a cursor (SEC-045)."""

import ast
import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.live import Live
from rich.progress import track
from rich.table import Table
from rich.text import Text

import weft.cli
from tests.tidy.tree import parsed
from weft.cli.kit.console import console, plain_table
from weft.cli.kit.ending import ended

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b1m\u202e\rhello"
RAW = {
    "catalog_reach.py": "weft catalog call --raw",
    "catalog_watch.py": "weft catalog last --raw",
    "doc_show.py": "weft doc show --c14n",
    "sim.py": "plans, as files",
    "store_data.py": "weft get --raw",
    "torture.py": "plans, as files",
}
"""What writes bytes past all that, because somebody asked for bytes."""
OWN = {
    "doctor_node.py": ["os.write"],  # a file, to measure its disk
    "kit/console.py": ["bare"],  # for the codes of rich
    "lake_import.py": ["bare"],  # one line of progress, which goes back to its beginning
    "start.py": ["os.write"],  # a file in memory
}


class Terminal(io.StringIO):
    """What a terminal is told."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in the place of an output. Not as a fixture: pytest puts outputs of its own in place before each test."""
    made = Terminal()
    monkeypatch.setattr(sys, name, made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    return made


def _of(name: str) -> Any:
    return console(stderr=name == "stderr", width=200)


def _table(text: str) -> Table:
    table = plain_table("head")
    table.add_row(Text(text, style="red"))
    return table


def _live(name: str) -> None:
    with Live(_table(EVIL), console=_of(name)) as live:
        live.update(_table(EVIL))
        sys.stdout.write(EVIL)


def _tracked(name: str) -> None:
    assert [1] == list(track([1], description=EVIL, console=_of(name)))


PRINTED: dict[str, Callable[[str], Any]] = {
    "print": lambda name: print(EVIL, file=getattr(sys, name)),  # as commands print
    "write": lambda name: getattr(sys, name).write(EVIL),
    "writelines": lambda name: getattr(sys, name).writelines([EVIL]),
    "text of rich": lambda name: _of(name).print(Text(EVIL, style="red")),
    "markup of rich": lambda name: _of(name).print(f"[red]{EVIL}[/red]"),
    "a table": lambda name: _of(name).print(_table(EVIL)),
    "a live picture": _live,
    "a bar": _tracked,
}


@pytest.mark.proves("SEC-045", part="whatever a command prints to a terminal, in each way of printing that there is")
@pytest.mark.parametrize("way", PRINTED)
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_no_way_of_printing_lets_the_text_of_others_move_a_cursor(
    way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = terminal(name, monkeypatch)
    assert 0 == ended(lambda: PRINTED[way](name) and None)
    assert "\\x1b[2J" in told.getvalue()
    assert [] == [each for each in ("\x1b[2J", "\x1b]", "\x9b", "\u202e", "\x07") if each in told.getvalue()]


def test_what_rich_does_with_a_terminal_itself_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told = terminal("stdout", monkeypatch)
    assert 0 == ended(lambda: _of("stdout").print(Text("red", style="red")))
    assert "\x1b[31mred\x1b[0m\n" == told.getvalue()


def test_a_file_gets_what_is_printed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    assert 0 == ended(lambda: sys.stdout.write(EVIL) and None)
    assert EVIL == file.getvalue()
    assert file is sys.stdout


def test_a_real_terminal_is_told_what_a_command_prints(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text('[group.a]\n"x\\u001b[2J" = 1\n', "utf-8")
    words = [sys.executable, "-m", "weft.cli.main", "config", "check", str(tmp_path / "f.toml")]
    ours, theirs = pty.openpty()
    ran = subprocess.run(words, stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    told = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert (1, True, False) == (ran.returncode, "x\\x1b[2J" in told, "\x1b" in told)


def past(text: str) -> Iterator[str]:
    """What in a module could reach a terminal and pass the cleaning."""
    nodes = parsed(text)
    for call in nodes.of(ast.Call):
        told = ast.unparse(call.func)
        if told in {"Console", "os.write", "FileProxy", "bare"} or told.endswith((".control", ".from_ansi", ".out")):
            yield told
    for attribute in nodes.of(ast.Attribute):
        told = ast.unparse(attribute)
        if told in {"sys.__stdout__", "sys.__stderr__"} or told.endswith(("stdout.buffer", "stderr.buffer")):
            yield told
    for name in nodes.of(ast.alias):
        if name.name in {"rich.print", "rich"}:
            yield name.name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Console(stderr=True)", ["Console"]),
        ("sys.stdout.buffer.write(x)", ["sys.stdout.buffer"]),
        ("os.write(1, x)", ["os.write"]),
        ("Text.from_ansi(x)", ["Text.from_ansi"]),
        ("import rich", ["rich"]),
        ("print(x)", []),
        ("console().print(x)", []),
    ],
)
def test_what_passes_the_cleaning_is_found(text: str, expected: list[str]) -> None:
    assert expected == list(past(text))


@pytest.mark.proves("SEC-045", part="no command reaches a terminal but through it, save where bytes are asked for")
def test_no_command_reaches_a_terminal_but_through_what_cleans_it() -> None:
    (root,) = map(Path, weft.cli.__path__)
    found = {
        str(path.relative_to(root)): sorted(set(past(path.read_text("utf-8")))) for path in sorted(root.rglob("*.py"))
    }
    raw = {name: ["sys.stdout.buffer"] for name in RAW}
    assert OWN | raw == {name: names for name, names in found.items() if names}
