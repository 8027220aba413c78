"""Children of other stacks, in C on CZMQ and in Java on JeroMQ, beside a root that runs."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fabric.placed import PlacedFabric
from tests.interop.programs import needed
from tests.patience import PATIENCE_S

PEERS: Final = Path(__file__).parent / "peers"
JEROMQ: Final = "/usr/share/java/jeromq.jar"
LAB: Final = "/CONFIG/lab/"
NAMES: Final = ("root", "sensor-1")
Line = tuple[str, str, int, Any]
"""Word, key or subtree, number, value."""


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlacedFabric]:
    with PlacedFabric(tmp_path_factory.mktemp("fabric"), NAMES) as fabric:
        fabric.until(lambda: fabric.is_joined("sensor-1"), "the sensor has its place")
        yield fabric


def built(*command: str) -> None:
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert 0 == made.returncode, made.stderr


@pytest.fixture(scope="module")
def child_in_c(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("c") / "child"
    compiler = needed("gcc")
    for header in ("/usr/include/czmq.h", "/usr/include/zmq.h"):
        needed(header)
    built(compiler, "-Wall", "-Werror", str(PEERS / "child.c"), "-o", str(program), "-lczmq", "-lzmq")
    return str(program)


@pytest.fixture(scope="module")
def child_in_java(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    place = tmp_path_factory.mktemp("java")
    java, jar = needed("java"), needed(JEROMQ)
    built(needed("javac"), "-cp", jar, "-d", str(place), str(PEERS / "Child.java"))
    return (java, "-cp", f"{jar}:{place}", "Child")


def at(fabric: PlacedFabric, port: int) -> str:
    return f"tcp://127.0.0.1:{fabric.ports['root'] + port}"


def line_of(text: str) -> Line:
    word, name, number, value = [*text.split(" ", 3), ""][:4]
    return word, name, int(number), json.loads(value) if value else None


def lines(*command: str) -> list[Line]:
    """What a child says that ends by itself."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (0, "") == (ran.returncode, ran.stderr), ran.stdout
    return [line_of(text) for text in ran.stdout.splitlines()]


def pairs(said: list[Line]) -> dict[str, Any]:
    return {name: value for word, name, _, value in said if word == "KVSYNC"}


def tip(fabric: PlacedFabric) -> int:
    return max(int(number) for _, number, _ in fabric.ask("root", "list", subtree=LAB)["pairs"])


@pytest.mark.proves("CFG-013", "CFG-018")
def test_a_req_in_c_gets_the_bundle(fabric: PlacedFabric, child_in_c: str) -> None:
    said = lines(child_in_c, at(fabric, 3), LAB)
    assert fabric.values("root", LAB) == pairs(said)
    assert ("KTHXBAI", LAB, tip(fabric), None) == said[-1]


@pytest.mark.proves("CFG-007", "CFG-012")
def test_a_req_in_c_hears_a_refusal_and_a_tip(fabric: PlacedFabric, child_in_c: str) -> None:
    assert [("KTHXBAI", f"/.tip{LAB}", tip(fabric), None)] == lines(child_in_c, at(fabric, 3), f"/.tip{LAB}")
    ran = subprocess.run(
        (child_in_c, at(fabric, 3), "nowhere"), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (1, "WTF") == (ran.returncode, ran.stdout.partition(" ")[0])
    assert ran.stdout.endswith(" 1\n")


@pytest.mark.proves("CFG-001", "CFG-010", "CFG-045")
def test_a_dealer_in_java_gets_snapshot_beat_and_update(fabric: PlacedFabric, child_in_java: tuple[str, ...]) -> None:
    expected = fabric.values("root", LAB)
    value = {"detail": "LOAD", "rate": "1s"}
    command = (*child_in_java, "DEALER", at(fabric, 3), at(fabric, 2), LAB)
    said: list[Line] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for text in child.stdout or ():
            said.append(line_of(text))
            if said[-1][0] == "KTHXBAI":
                fabric.ask("root", "set", key=f"{LAB}metric/load", value=value)
    assert 0 == child.returncode
    end = next(place for place, line in enumerate(said) if line[0] == "KTHXBAI")
    assert ("HUGZ", "-", 0, None) == said[0]
    assert expected == pairs(said[1:end])
    assert ("KVPUB", f"{LAB}metric/load", tip(fabric), value) == said[-1]


@pytest.mark.proves("CFG-013")
def test_a_req_in_java_hears_one_pair_and_the_bundle_when_it_asks(
    fabric: PlacedFabric, child_in_java: tuple[str, ...]
) -> None:
    expected = fabric.values("root", LAB)
    (first,) = lines(*child_in_java, "REQ", at(fabric, 3), at(fabric, 2), LAB)
    assert ("KVSYNC", min(expected), expected[min(expected)]) == (first[0], first[1], first[3])
    said = lines(*child_in_java, "BUNDLE", at(fabric, 3), at(fabric, 2), LAB)
    assert expected == pairs(said)
    assert ("KTHXBAI", LAB, tip(fabric), None) == said[-1]
