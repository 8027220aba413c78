"""A closed fabric whose root is lost: a collector becomes the root, lets machines in, and has the lost one below it when it comes back (SEC-054)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fabric.test_rotation import OFTEN, Measuring, leads
from weft.cli.asking import try_status

pytestmark = pytest.mark.prove("a fleet whose root is lost")

SELDOM = '{"detail": "MEMORY", "rate": "3s"}'


class Led(Measuring):
    """A root and two collectors, which are a majority without it. `port` is that of the root of today."""

    def bring_collectors_in(self) -> None:
        for number, name in enumerate(("collector-1", "collector-2")):
            self.join(self.invite("--role", "collector")["token"], name, number)
            self.until(lambda name=name: name in self.names(), f"{name} has joined")  # type: ignore[misc]  # bound
            self.all.append(name)
            self.up.append(name)

    def bring_sensor_in(self) -> None:
        self.join(self.invite()["token"], "d", 2)
        self.until(lambda: "d" in self.tree(), "d has its place below a collector")
        self.all.append("d")
        self.up.append("d")

    def port_of(self, name: str) -> int:
        return self.ports[self.all.index(name)]

    def lose_root(self) -> str:
        """Kill the root; returns who is the root then."""
        self.until(lambda: all(_knows(port, len(self.all)) for port in self.others[:2]), "all know the keys of all")
        root = self.running.pop(0)
        root.kill()
        root.wait()
        self.up.remove("root")
        self.until(lambda: "root" in map(level_of, self.others[:2]), "a collector is the root")
        self.port = next(port for port in self.others[:2] if level_of(port) == "root")
        return self.all[self.ports.index(self.port)]

    def start_root_again(self, port: int) -> None:
        """The machine of the lost root runs what it has always run."""
        self.begin(*self.root_words(port))
        self.up.append("root")

    def end_last(self) -> None:
        last = self.running.pop()
        last.terminate()
        assert 0 == last.wait(30), self.said()

    def stop(self) -> None:
        """The root of today last, so that all is handed over."""
        heir = self.ports.index(self.port)
        self.running.insert(0, self.running.pop(self.up.index(self.all[heir])))
        super().stop()

    def tree(self) -> set[str]:
        """Whom the root of today has given a place, and itself."""
        return {str(row["name"]) for row in (try_status(self.port) or {}).get("tree", [])}

    def rate(self, metric: str, port: int) -> str:
        """What a node says that everybody measures a metric by."""
        told = json.loads(self.run("config", "get", f"all/metric/{metric}", "--port", str(port), "--json"))
        return str(told["value"]["rate"])

    def lakes(self) -> list[Path]:
        """Those of the lost root and of its heir. Without its first words the lost root drains beside its state, until it hears its heir."""
        return [path for path in (self.place / "lake", *self.place.glob("*/lake")) if path.exists()]


def level_of(port: int) -> str:
    return str((try_status(port) or {}).get("level"))


def parent_of(port: int) -> str:
    return str((try_status(port) or {}).get("parent", {}).get("name"))


def why_shut(port: int) -> set[str]:
    """Why doors refuse a node."""
    return {str(each["why"]) for each in (try_status(port) or {}).get("security", {}).get("shut", [])}


def parent_check(port: int) -> str:
    """What a node says of its place, and what to do."""
    checks = (try_status(port) or {}).get("health", {}).get("checks", [])
    return next((f"{check['text']}: {check['do']}" for check in checks if check["name"] == "parent"), "")


def _knows(port: int, keys: int) -> bool:
    return int((try_status(port) or {}).get("security", {}).get("known", 0)) == keys


@pytest.fixture
def led(tmp_path: Path) -> Iterator[Led]:
    with Led(tmp_path) as made:
        made.until(lambda: leads(made.port), "the root may write")
        made.run("config", "set", "all/metric/cpu", OFTEN, "--port", str(made.port))
        made.bring_collectors_in()
        yield made


@pytest.mark.proves("SEC-054", part="a root that is lost has an heir, which invites: its key is known to who joins")
def test_an_heir_of_a_lost_root_lets_machines_in(led: Led) -> None:
    unused = led.invite()["token"]
    led.lose_root()
    said = led.run("join", unused, "--name", "late", *led.where("late", led.others[2]), "--stay", expects=3)
    assert "weft" in said
    led.join(led.invite()["token"], "d", 2)
    led.until(lambda: "d" in led.tree(), "a machine has its place in the heir's tree")
    assert {"collector-1", "collector-2", "root", "d"} == set(led.keys())


@pytest.mark.proves(
    "SEC-054", part="a lost root that comes back stands below its heir with the key it had, and nothing is lost"
)
def test_a_lost_root_that_comes_back_stands_below_its_heir(led: Led) -> None:
    former, pair = led.port, led.secret("root")
    led.bring_sensor_in()
    led.measure_on()
    heir = led.lose_root()
    led.measure_on()
    led.run("config", "set", "all/metric/memory", SELDOM, "--port", str(led.port))
    keys = led.keys()
    led.start_root_again(former)
    led.until(lambda: heir == parent_of(former), "the lost root has its heir as its parent")
    assert ("collector", "root") == (level_of(former), level_of(led.port))
    assert {"collector-1", "collector-2", "d", "root"} == led.tree()
    assert (keys, pair) == (led.keys(), led.secret("root"))
    assert ("100ms", "3s") == (led.rate("cpu", former), led.rate("memory", former))
    led.measure_on()
    assert [heir] == [name for name in led.all if level_of(led.port_of(name)) == "root"]
    led.stop()
    assert ({}, 0) == led.lost_and_doubled()


@pytest.mark.proves(
    "SEC-054", part="a lost root whose key its heir has revoked moves and writes nothing until a token lets it in again"
)
def test_a_lost_root_that_was_revoked_is_shut_out_until_its_heir_invites_it(led: Led) -> None:
    former = led.port
    led.bring_sensor_in()
    heir = led.lose_root()
    led.measure_on()
    led.run("key", "revoke", "root", "--port", str(led.port))
    led.start_root_again(former)
    led.until(lambda: {"key-refused"} == why_shut(former), "it knows that every door refuses it")
    assert "weft join with a token" in parent_check(former)
    assert "out of reach" in led.run("config", "set", "all/metric/cpu", SELDOM, "--port", str(former), expects=4)
    led.measure_on()
    assert {"collector-1", "collector-2", "d"} == led.tree()
    assert "root" not in led.names()
    assert "100ms" == led.rate("cpu", led.port)
    led.end_last()
    led.begin("join", led.invite("--role", "collector")["token"], "--name", "root", *led.where("root", former))
    led.until(lambda: heir == parent_of(former), "a token of its heir has let it in, below its heir")
    led.measure_on()
    assert "collector" == level_of(former)
    led.stop()
    assert ({}, 0) == led.lost_and_doubled()
