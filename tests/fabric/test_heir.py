"""A closed fabric whose root is lost for good: a collector becomes the root, and lets machines in by tokens of its own (SEC-054)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fabric.test_rotation import Measuring
from weft.cli.asking import try_status

pytestmark = pytest.mark.prove("a fleet whose root is lost")


@pytest.fixture
def led(tmp_path: Path) -> Iterator[Measuring]:
    """A root and two collectors, which are a majority without it."""
    with Measuring(tmp_path) as made:
        for number, name in enumerate(("collector-1", "collector-2")):
            made.join(made.invite("--role", "collector")["token"], name, number)
            made.until(lambda name=name: name in made.names(), f"{name} has joined")  # type: ignore[misc]  # bound
        yield made


def level_of(port: int) -> str:
    return str((try_status(port) or {}).get("level"))


@pytest.mark.proves("SEC-054", part="a root that is lost has an heir, which invites: its key is known to who joins")
def test_an_heir_of_a_lost_root_lets_machines_in(led: Measuring) -> None:
    unused = led.invite()["token"]
    led.until(lambda: _knows_keys(led.others[0]) and _knows_keys(led.others[1]), "all know the keys of all")
    root = led.running.pop(0)
    root.kill()
    root.wait()
    led.until(lambda: "root" in map(level_of, led.others[:2]), "a collector is the root")
    led.port = next(port for port in led.others[:2] if level_of(port) == "root")
    said = led.run("join", unused, "--name", "late", *led.where("late", led.others[2]), "--stay", expects=3)
    assert "weft" in said
    told = json.loads(led.run("invite", "--port", str(led.port), "--json"))
    led.join(told["token"], "d", 2)
    led.until(lambda: "d" in _tree(led.port), "a machine has its place in the heir's tree")
    keys = json.loads(led.run("key", "ls", "--port", str(led.port), "--json"))
    assert {"collector-1", "collector-2", "root", "d"} == {each["name"] for each in keys}


def _tree(port: int) -> set[str]:
    return {str(row["name"]) for row in (try_status(port) or {}).get("tree", [])}


def _knows_keys(port: int) -> bool:
    status = try_status(port) or {}
    return int(status.get("security", {}).get("known", 0)) == 3
