"""What the Tab key of zsh and fish offers, in these shells (OPS-004)."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.interop.programs import needed
from tests.patience import PATIENCE_S
from weft.cli.completion import Shell


def home_with(shell: Shell, place: Path) -> dict[str, str]:
    """The environment of a user who has installed the completion, with `weft` on the path."""
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"HOME": str(place), "PATH": paths, "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    subprocess.run(["weft", "completion", shell, "--install"], env=environment, check=True, capture_output=True)
    return environment


@pytest.mark.proves("OPS-004", part="fish offers commands, options and names")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [("weft la", "lake\t"), ("weft lake mis", "missing\t"), ("weft metrics DISK_P", "DISK_PERCENT\t")],
)
def test_fish_offers_what_can_follow(typed: str, offered: str, tmp_path: Path) -> None:
    asked = [needed("fish"), "-c", f"complete -C '{typed}'"]
    ended = subprocess.run(asked, env=home_with("fish", tmp_path), check=True, capture_output=True, text=True)
    assert ended.stdout.startswith(offered)


@pytest.mark.proves("OPS-004", part="zsh completes commands, options and names")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [("weft la", "weft lake "), ("weft lake mis", "weft lake missing "), ("weft metrics DISK_PE", "DISK_PERCENT ")],
)
def test_zsh_completes_what_is_typed(typed: str, completed: str, tmp_path: Path) -> None:
    (tmp_path / ".zshrc").write_text(
        "fpath+=(~/.local/share/zsh/site-functions)\nautoload -U compinit; compinit -u\nPS1=\n"
    )
    environment, program = home_with("zsh", tmp_path), needed("zsh")
    child, terminal = pty.fork()
    if child == 0:
        os.execve(program, [program, "-i"], environment)
    try:
        os.write(terminal, b"print rea''dy\n")
        read_until(terminal, "ready\r\n")
        os.write(terminal, f"{typed}\t".encode())
        read_until(terminal, completed)
    finally:
        os.close(terminal)  # a shell whose terminal is gone ends
        os.waitpid(child, 0)


def read_until(terminal: int, words: str) -> None:
    """Read what the shell shows until these words are there."""
    shown, ends_at = b"", time.monotonic() + PATIENCE_S
    while words.encode() not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0.0, ends_at - time.monotonic()))
        assert ready, f"no {words!r} in {shown.decode()!r}"
        shown += os.read(terminal, 4_096)
