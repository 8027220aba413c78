"""What `--help` of a command says: all of its own words, and one line of it in the list of all commands."""

import subprocess
import sys


def said(*words: str) -> str:
    """The words on the terminal, without its lines."""
    ran = subprocess.run([sys.executable, "-m", "weft.cli.main", *words], capture_output=True, text=True, check=True)
    return " ".join(ran.stdout.replace("│", " ").split())


def test_whoever_asks_for_one_command_reads_how_to_begin() -> None:
    text = said("up", "--help")
    assert "weft up --name root --level root --config fleet.toml --lake ./lake" in text
    assert "weft up --name s1 --port 27510" in text


def test_the_list_shows_a_line_of_each_command() -> None:
    text = said("--help")
    assert "up Run one node here." in text
    assert "weft up --name root" not in text
