"""Which node a command means: a number, a name and a directory are one and the same, in every command."""

import asyncio
from pathlib import Path

import pytest

from tests.client.node import until
from tests.client.test_real import made
from tests.patience import PATIENCE_S
from weft.base.errors import UserError
from weft.cli.manual import Command, commands
from weft.cli.nouns import ROOMS, app
from weft.cli.which import place_of, port_of

OTHERS = {
    "catalog": "of brokers, which --broker names",
    "doctor": "as of weft up: a node that need not run",
    "join": "as of weft up",
    "lake cluster": "of Spark's master",
    "lake export": "of whom the rows are",
    "lake missing": "of whom the numbers are",
    "reload": "as of weft up: the file names the node",
    "sim": "of a simulated fleet",
    "up": "of the node that it starts",
}
"""Commands in which a port or a node is something else."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "weft"


def note(home: Path, fleet: str, name: str, first: int) -> Path:
    place = home / fleet / name
    place.mkdir(parents=True)
    (place / "http.endpoint").write_text(f"127.0.0.1:{first + 6}\n")
    return place


def test_a_number_a_name_a_directory_and_a_socket_are_one_node(home: Path) -> None:
    place = note(home, "lab", "pi", 27_510)
    for word in ("27510", "pi", str(place), f"ipc://{place}/chains.sock", "tcp://127.0.0.1:27518"):
        assert 27_510 == port_of(word), word
    assert str(place) == place_of("27510")
    assert "pi" == place_of("pi")


@pytest.mark.parametrize(
    "word, code",
    [
        ("0", "usage"),
        ("70000", "usage"),
        ("nobody", "unavailable"),
        ("./no", "unavailable"),
        ("tcp://10.0.0.7:27508", "usage"),
        ("tcp://x", "usage"),
    ],
)
def test_what_is_no_node_is_said_with_what_helps(home: Path, word: str, code: str) -> None:
    with pytest.raises(UserError) as refused:
        port_of(word)
    assert code == refused.value.code
    with pytest.raises(UserError, match="ports from 27520 on"):
        place_of("27520")


def test_of_two_nodes_of_one_name_none_is_taken(home: Path) -> None:
    for fleet, first in (("lab", 27_510), ("van", 27_520)):
        note(home, fleet, "pi", first)
    with pytest.raises(UserError, match=f"--node {home}/lab/pi"):
        port_of("pi")


def test_a_node_notes_where_it_is_while_it_runs(tmp_path: Path) -> None:
    async def main() -> int:
        process = made(tmp_path)
        running = asyncio.ensure_future(process.run())
        async with asyncio.timeout(PATIENCE_S):
            await until((tmp_path / "http.endpoint").exists)
        found = port_of(str(tmp_path))
        process.stop()
        await running
        return found - process.settings.node.port

    assert 0 == asyncio.run(main())
    assert not (tmp_path / "http.endpoint").exists()


def test_every_command_that_asks_a_node_takes_both_ways() -> None:
    listed = [one for one in commands(app) if one.name.split()[0] in ROOMS]
    assert [] == [one.name for one in listed if len(ways(one)) == 1 and not is_other(one.name)]


def ways(command: Command) -> set[str]:
    return {"--node", "--port"} & {name for option in command.options for name in option.name.split(", ")}


def is_other(name: str) -> bool:
    return any(f"{name} ".startswith(f"{other} ") for other in OTHERS)
