"""`weft up FILE` becomes its node without the libraries of the command line, and as the whole command line would."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final, NoReturn

import pytest

from weft.cli import main

SAYS: Final = """
import os, sys
def instead(program, words):
    print(sorted({name.partition(".")[0] for name in sys.modules} & {"cyclopts", "msgspec", "rich"}))
    print(open(int(words[3].removeprefix("fd:"))).read(), words[1:3], words[4:], flush=True)
    os._exit(0)
os.execv = instead
from weft.cli.main import main
main()
"""
"""A command that prints what it would become."""
SENSOR: Final = """
[node]
name = "s1"
level = "sensor"
parent = "root"
state = "state/s1"
[metric.cpu]
detail = "CPU"
rate = "1s"
[chp]
"""
ROOT: Final = """
[node]
name = "r"
level = "root"
[[chains.filter]]
name = "large"
kind = "threshold"
types = ["weft.metric"]
dir = "out"
field = "value"
above = 20e6
[global.metric.cpu]
detail = "CPU"
rate = "1s"
"""


def became(*words: str, place: Path) -> tuple[str, str]:
    """Which large libraries a command has loaded when it becomes a node, and as what it does."""
    ran = subprocess.run([sys.executable, "-c", SAYS, *words], capture_output=True, text=True, check=True, cwd=place)
    loaded, what = ran.stdout.splitlines()
    return loaded, what.replace(" ", "")


@pytest.mark.parametrize("text", [SENSOR, ROOT, '[node]\nname = "free"\n'], ids=["sensor", "root", "free"])
def test_a_file_becomes_its_node_without_what_reads_options(text: str, tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text(text, "utf-8")
    loaded, quickly = became("up", "node.toml", place=tmp_path)
    assert "[]" == loaded
    all_loaded, slowly = became("up", "--fleet", "weft", "node.toml", place=tmp_path)
    assert "cyclopts" in all_loaded
    assert slowly.replace('"fleet":{"name":"weft"}', "").replace(",}", "}") == quickly


@pytest.mark.parametrize(
    "text", ['[node]\nname = "d"\n[doc.session.friday]\n', '[node]\nname = "d"\nsince = 2026-01-01\n', "[node", "\0"]
)
def test_what_is_not_plain_is_left_to_the_command(text: str, tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text(text, "utf-8")
    program = f"from weft.cli.start import start\nstart({str(tmp_path / 'node.toml')!r})\nstart({str(tmp_path)!r})\nprint('left')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "left\n" == ran.stdout


@pytest.mark.proves("OPS-005", part="a file that its node cannot use is named, and moves no cursor of a terminal")
def test_a_file_that_cannot_be_used_is_named_by_its_node(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text('[node]\nname = "\\u001b[2J"\n["a\\u001b[2J"]\n', "utf-8")
    words = [sys.executable, "-m", "weft.cli.main", "up", "node.toml"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert 2 == ran.returncode
    assert ran.stderr.startswith("weft: node.toml cannot be used:\n")
    assert "[a\\x1b[2J] is no table" in ran.stderr
    assert "\x1b" not in ran.stderr


def test_ctrl_c_while_a_node_loads_its_modules_shows_no_traceback() -> None:
    """On a slow machine a start takes seconds, in which forty lines of Python were the answer to Ctrl-C."""
    words = [sys.executable, "-m", "weft.shell.serve", "fd:0"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as node:
        while "msgspec" not in Path(f"/proc/{node.pid}/maps").read_text("utf-8"):
            assert node.poll() is None
        node.send_signal(signal.SIGINT)
        assert node.stderr is not None
        assert b"" == node.stderr.read()
    assert -signal.SIGINT == node.returncode


def test_ctrl_c_while_a_command_loads_its_modules_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed() -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_run", pressed)
    with pytest.raises(SystemExit) as end:
        main.main()
    assert 130 == end.value.code
