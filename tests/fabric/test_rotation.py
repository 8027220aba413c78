"""Nodes of a closed fabric take other keys while all of them measure: nothing is lost, and the old keys are nobody's (SEC-054)."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fabric.fabric import Fabric, numbered_in
from tests.fabric.test_enrolment import WEFT, Site
from weft.cli.asking import status_of, try_status
from weft.shell.keys import load_keys

pytestmark = pytest.mark.prove("fleets that change their keys")

QUICK = """
[fleet]
beat_s = 0.2
dead_s = 1.0
heartbeat = 0.2

[node]
flush_s = 0.1
"""
OFTEN = '{"detail": "CPU", "rate": "100ms"}'


def leads(port: int) -> bool:
    """Whether the root there has taken its office."""
    status = try_status(port) or {}
    return bool(status.get("cores", {}).get("configuration", {}).get("number"))


class Measuring(Site):
    """A root, and machines that join it; all of them measure ten times a second."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.file = place / "quick.toml"
        self.file.write_text(QUICK, "utf-8")
        self.all = ["root"]
        self.up = ["root"]

    def begin(self, *words: str) -> None:
        at = 2 if words[0] == "join" else 1
        super().begin(*words[:at], str(self.file), *words[at:])

    def bring_in(self, name: str, number: int) -> None:
        self.join(self.invite()["token"], name, number)
        self.all.append(name)
        self.up.append(name)
        self.until(lambda: name in self.names(), f"{name} has joined")

    def come_back(self, name: str) -> None:
        """A machine that has joined starts again."""
        Site.begin(self, "up", str(self.place / name / "node.toml"))

    def port_of(self, name: str) -> int:
        return ([self.port, *self.others])[self.all.index(name)]

    def taken(self, name: str) -> int:
        status = try_status(self.port_of(name)) or {}
        return int(status.get("cores", {}).get("measurement", {}).get("numbered", 0))

    def measure_on(self, samples: int = 20) -> None:
        before = {name: self.taken(name) for name in self.up}
        self.until(
            lambda: all(self.taken(name) >= before[name] + samples for name in before),
            f"{samples} more samples of each",
        )

    def keys(self) -> dict[str, list[str]]:
        told: list[dict[str, Any]] = json.loads(self.run("key", "ls", "--port", str(self.port), "--json"))
        return {each["name"]: each["curve"] for each in told}

    def rotate(self, *words: str, port: int = 0) -> None:
        self.run("key", "rotate", *words, "--port", str(port or self.port))

    def secret(self, name: str) -> str:
        pair = load_keys(self.place / name)
        assert pair is not None
        return pair.secret

    def stop(self) -> None:
        """Those below the root first, so that all is handed over."""
        for each in reversed(self.running):
            each.terminate()
            assert 0 == each.wait(30), self.said()
        self.running.clear()

    def lakes(self) -> list[Path]:
        """Those of all nodes that were the root."""
        return [self.place / "lake"]

    def lost_and_doubled(self) -> tuple[dict[str, Any], int]:
        """What nodes numbered and no lake has, and how many rows a lake has twice."""
        missing, doubled = numbered_in(*(self.place / name / "journal" for name in self.all)), 0
        assert len(list(missing)) >= len(self.all)
        for path in self.lakes():
            lake = Fabric(self.place, {})
            lake.lake = path
            drained, twice = lake.drained()
            missing, doubled = missing - drained, doubled + twice
        return {str(origin): list(ranges) for origin, ranges in missing}, doubled


@pytest.fixture
def measuring(tmp_path: Path) -> Iterator[Measuring]:
    with Measuring(tmp_path) as made:
        made.until(lambda: leads(made.port), "the root may write")
        made.run("config", "set", "all/metric/cpu", OFTEN, "--port", str(made.port))
        made.bring_in("a", 0)
        made.bring_in("b", 1)
        yield made


@pytest.mark.proves("SEC-024", part="a node has two keys while its key is rotated, and nothing is lost")
@pytest.mark.proves(
    "SEC-054", part="the root's key, another node's, one's own, and all keys are renewed while all measure"
)
def test_keys_of_the_root_and_of_nodes_are_renewed_and_no_sample_is_lost(measuring: Measuring) -> None:
    first, secrets = measuring.keys(), [measuring.secret(name) for name in measuring.all]
    measuring.rotate(port=measuring.port_of("b"))
    measuring.measure_on()
    second = measuring.keys()
    assert [True, True, False] == [second[name] == first[name] for name in ("root", "a", "b")]
    measuring.rotate("--all")
    measuring.measure_on()
    third = measuring.keys()
    assert [1, 1, 1] == [len(curve) for curve in third.values()]
    assert not {curve[0] for curve in third.values()} & {curve[0] for curve in second.values()}
    assert [] == list(measuring.place.glob("*/keys/next.key_secret"))
    written = [path.read_bytes() for path in measuring.place.rglob("*") if path.is_file()]
    assert [] == [secret for secret in secrets if any(secret.encode() in data for data in written)]
    measuring.until(lambda: measuring.names() == ["a", "b"], "both are below the root")
    measuring.stop()
    assert ({}, 0) == measuring.lost_and_doubled()


@pytest.mark.proves(
    "SEC-054", part="the root waits for who is away before it takes another key, until it is told not to"
)
def test_a_root_keeps_its_key_until_everybody_knows_the_next_one(measuring: Measuring) -> None:
    b = measuring.running.pop()
    b.terminate()
    b.wait(20)
    measuring.up.remove("b")
    first = measuring.keys()
    asked = measuring.place / "asked"
    with asked.open("wb") as said:
        words = [*WEFT, "key", "rotate", "--port", str(measuring.port)]
        waiting = subprocess.Popen(words, env=measuring.environment(), stdout=said, stderr=said)
    measuring.until(lambda: len(measuring.keys()["root"]) == 2, "the next key is known")
    measuring.measure_on()
    assert first["root"] == measuring.keys()["root"][:1]
    measuring.come_back("b")
    assert 0 == waiting.wait(60), asked.read_text("utf-8")
    assert first["root"] != measuring.keys()["root"]
    measuring.until(lambda: measuring.names() == ["a", "b"], "both are below the root")
    assert status_of(measuring.port)["name"] == "root"


@pytest.mark.proves(
    "SEC-054",
    part="a root's key is renewed at once; who was away comes home with one command, and nothing of it is lost",
)
def test_who_was_away_when_the_root_took_another_key_comes_home_by_a_token(measuring: Measuring) -> None:
    b = measuring.running.pop()
    b.terminate()
    b.wait(20)
    measuring.up.remove("b")
    before = measuring.keys()
    measuring.rotate("--now")
    after = measuring.keys()
    assert ([1, True], [True, False]) == (
        [len(after["root"]), after["a"] == before["a"]],
        [after["b"] == before["b"], after["root"] == before["root"]],
    )
    measuring.until(lambda: measuring.names() == ["a"], "a is below the root")
    measuring.join(measuring.invite()["token"], "b", 1)
    measuring.up.append("b")
    measuring.until(lambda: measuring.names() == ["a", "b"], "both are below the root")
    measuring.measure_on()
    measuring.stop()
    assert ({}, 0) == measuring.lost_and_doubled()
