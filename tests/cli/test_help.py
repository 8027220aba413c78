"""What `--help` of a command says: all of its own words, and one line of it in the list of all commands."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from cyclopts import App

from weft.cli.nouns import app


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


def commands(room: App, *above: str) -> Iterator[tuple[str, App]]:
    """Every command below, by its whole name."""
    for name in room:
        if not name.startswith("-"):
            yield " ".join((*above, name)), room[name]
            yield from commands(room[name], *above, name)


def dumb(command: App) -> list[str]:
    """What a command takes and does not explain."""
    if command.default_command is None:
        return []
    return [
        argument.name
        for argument in command.assemble_argument_collection(parse_docstring=True)
        if not argument.parameter.help
    ]


@pytest.mark.parametrize("room", ["up", "lake", "sql", "doctor", "drain", "sim"])
def test_every_option_of_a_command_is_explained(room: str) -> None:
    found = [(room, app[room]), *commands(app[room], room)]
    assert {name: dumb(command) for name, command in found if dumb(command)} == {}


def test_a_command_of_the_lake_says_all_of_its_words_too() -> None:
    text = said("lake", "run", "--help")
    assert "another one is refused with exit status 75" in text
    assert "a port on loopback at which Prometheus can scrape the driver's metrics" in text
    assert "Make tables of the drained records" in said("lake", "--help")
