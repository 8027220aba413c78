"""The example of docs/annex.md, installed as its page says: listed, in a real node, recorded, in the simulator."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest
import zmq

from tests.fabric.closed import ClosedFabric
from tests.fabric.fabric import FIRST_PORT, Fabric
from weft.shell.blocks import free_blocks
from weft.shell.keys import Keys
from weft.shell.sockets import connect_with

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "annex"
PAGE = (ROOT / "docs" / "annex.md").read_text("utf-8")
WEFT = ("-m", "weft.cli.main")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in it, made without any network."""
    place = tmp_path_factory.mktemp("packages")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check")
    command = (sys.executable, "-m", "pip", "install", *offline, "--target", str(place), str(EXAMPLE))
    subprocess.run(command, check=True, timeout=120)
    return place


def python(packages: Path, *words: str) -> tuple[int, str, str]:
    """What a process says that has the package: its exit status, and its two outputs."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def list_package(place: Path, name: str, points: str) -> None:
    """What pip writes beside a package, so that its entry points are found."""
    place = place / f"{name}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (place / "entry_points.txt").write_text(points, "utf-8")


def test_the_example_is_short() -> None:
    files = [path for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".toml", ".md")]
    assert 6 == len(files)
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) < 300


@pytest.mark.prove("a process for each word")
@pytest.mark.proves("HSE-007", part="its page, and its noun of the command line")
def test_an_installed_annex_is_listed_with_its_page_and_its_command(packages: Path) -> None:
    said = "lease           weft-lease 1.0          Take a name for a while, so that nobody else of the fleet has it.\n"
    assert (0, said, "") == python(packages, *WEFT, "annexes")
    assert (0, (EXAMPLE / "src/weft_lease/lease.md").read_text("utf-8") + "\n", "") == python(
        packages, *WEFT, "annexes", "lease"
    )
    _, listed, _ = python(packages, *WEFT, "--help")
    assert re.search(r"lease +Take a name for a while", listed)
    status, said, _ = python(packages, *WEFT, "lease", "--help")
    assert (0, True) == (status, "--take" in said)


def test_without_the_package_its_table_its_command_and_its_page_are_unknown(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[node]\nname = "a"\n[lease]\nport = 27700\n', "utf-8")
    status, _, said = python(tmp_path, *WEFT, "up", str(file), "--check")
    assert (2, True) == (status, "E02 lease: [lease] is no table" in said)
    assert 2 == python(tmp_path, *WEFT, "lease", "backup")[0]


def test_a_wrong_setting_is_said_when_the_file_is_read(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "src", tmp_path, dirs_exist_ok=True)  # as pip does, in a fraction of its time
    (points,) = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"].items()
    list_package(tmp_path, "lease", f"[{points[0]}]\n" + "".join(f"{name} = {at}\n" for name, at in points[1].items()))
    file = tmp_path / "a.toml"
    file.write_text('[node]\nname = "a"\n[lease]\nports = 27700\n', "utf-8")
    status, _, said = python(tmp_path, *WEFT, "up", str(file), "--check")
    assert (2, True) == (status, "E02 lease.ports: is not known here, did you mean `port`?" in said)


@pytest.mark.prove("a process for each word")
def test_a_broken_package_stops_nothing_but_what_needs_it(tmp_path: Path) -> None:
    list_package(tmp_path, "broken", "[weft.annexes]\nbroken = broken:ANNEX\nnothing = json:dumps\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    status, said, _ = python(tmp_path, *WEFT, "annexes")
    assert (1, True, True) == (status, "cannot be loaded: ZeroDivisionError" in said, "names no Annex" in said)
    status, _, said = python(tmp_path, *WEFT, "--help")
    assert (0, "") == (status, said)
    status, _, said = python(tmp_path, *WEFT, "broken")
    assert (2, True) == (status, said.startswith("weft: the annex broken (broken:ANNEX) cannot be loaded"))


class Leasing(Fabric):
    """A root that gives leases, and a collector that asks it; what the collector hears and does is recorded."""

    is_fresh = True  # packages of PYTHONPATH are found by a process that starts
    at = 0

    def settings(self, name: str, port: int, state: Path) -> str:
        self.at = self.at or free_blocks(3, FIRST_PORT)[2]
        table = f"port = {self.at}" if name == "root" else f'at = "127.0.0.1:{self.at}"'
        text = super().settings(name, port, state) + f"[lease]\n{table}\n"
        return text.replace("[node]", f'[node]\nrecord = "{self.place}/{name}.tape"', 1)


@pytest.mark.prove("real nodes, and the annex is in the simulator here")
@pytest.mark.proves("HSE-007", part="in a real node, asked through its noun; what it promised outlives kill -9")
@pytest.mark.proves("OBS-006", part="a recording holds what an annex did")
def test_in_a_real_node_a_lease_outlives_its_giver(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(packages))  # for the nodes

    def lease(at: str, *words: str) -> tuple[int, str]:
        status, said, _ = python(packages, *WEFT, "lease", *words, "--port", str(fabric.ports[at]))
        return status, re.sub(r"for [\d.]+ s", "for a while", said)

    with Leasing(tmp_path, {"root": "", "collector-1": "root"}) as fabric:
        fabric.until(lambda: bool(fabric.status("root") and fabric.status("collector-1")), "both to be up")
        fabric.until(lambda: lease("collector-1", "x")[0] == 0, "an answer of the giver")
        assert (0, "backup: collector-1 has it for a while\n") == lease("collector-1", "backup", "--take", "900")
        fabric.kill("root")
        status, _, said = python(packages, *WEFT, "lease", "backup", "--port", str(fabric.ports["collector-1"]))
        assert (4, True) == (status, "is silent, and may still give the lease" in said)
        fabric.until(lambda: bool(fabric.status("root")), "the giver to be started again")
        fabric.until(lambda: lease("root", "x")[0] == 0, "its answer")
        assert (1, "backup: collector-1 has it for a while\n") == lease("root", "backup", "--take", "5")
        assert (0, "backup: nobody has it\n") == lease("collector-1", "backup", "--free")
        assert (0, "backup: boss has it for a while\n") == lease("root", "backup", "--take", "5", "--who", "boss")
        fabric.fleet.stop_all()
    status, said, wrong = python(packages, *WEFT, "sim", "replay", str(tmp_path / "collector-1.tape"))
    assert (0, "") == (status, wrong), said


class Closed(ClosedFabric, Leasing):
    """The same with keys; a reader has one, too, and is no node."""


@pytest.mark.prove("real nodes with keys and an annex")
@pytest.mark.proves(
    "HSE-007", part="on a fabric with keys, asked through its noun; its channels hear whom its rows admit"
)
def test_on_a_fabric_with_keys_no_stranger_takes_a_lease_or_gives_one(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(packages))  # for the nodes

    def lease(at: str, *words: str) -> tuple[int, str]:
        status, said, wrong = python(packages, *WEFT, "lease", *words, "--port", str(fabric.ports[at]))
        return status, re.sub(r"for [\d.]+ s", "for a while", said + wrong)

    def counted() -> tuple[int, int, int]:
        status = fabric.status("root")
        handshakes = status["security"]["handshakes"]
        return handshakes["no-handshake"], handshakes["unknown-key"], status["refused"].get("lease:denied", 0)

    tree, own = {"root": "", "collector-1": "root", "sensor-1": "root"}, "backup: collector-1 has it for a while\n"
    with Closed(tmp_path, tree, guests={"clerk": "reader"}) as fabric:
        fabric.until(lambda: lease("sensor-1", "x")[0] == lease("collector-1", "x")[0] == 0, "answers of the giver")
        assert (0, own) == lease("collector-1", "backup", "--take", "900")
        assert (1, own) == lease("sensor-1", "backup", "--take", "5")
        strangers = Strangers(fabric)
        fabric.until(lambda: strangers.speak() and all(counted()), "each of them to be refused, and counted")
        assert [] == strangers.heard()
        assert (1, own) == lease("root", "backup", "--take", "5")
        assert (0, "evil: nobody has it\n") == lease("root", "evil")
        fabric.kill("root")
        strangers.pose_as_giver()
        assert (4, True) == ((told := lease("collector-1", "backup"))[0], "is silent" in told[1]), told
        assert [] == strangers.heard()
        strangers.close()


class Strangers:
    """One without keys, one whose key nobody knows, and one whose role may not: they ask for the lease `evil`."""

    ASK = msgspec.msgpack.encode([1, "take", "evil", "evil", 900.0])

    def __init__(self, fabric: Closed) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._at, server = f"tcp://127.0.0.1:{fabric.at}", fabric.nodes["root"].keys.public
        self._unknown = Keys(*(half.decode() for half in zmq.curve_keypair()))
        self._asking = [self._made("DEALER") for _ in range(3)]
        self._giver = self._made("ROUTER")
        for made, keys in zip(self._asking, (None, self._unknown, fabric.guests["clerk"].keys), strict=True):
            if keys is not None:
                connect_with(made, keys, server)
            made.connect(self._at)

    def _made(self, kind: str) -> "zmq.Socket[bytes]":
        made = self._context.socket(getattr(zmq, kind))
        made.setsockopt(zmq.LINGER, 0)
        return made

    def speak(self) -> bool:
        """Ask once more, where somebody listens."""
        for made in self._asking:
            with contextlib.suppress(zmq.Again):
                made.send(self.ASK, zmq.NOBLOCK)
        return True

    def pose_as_giver(self) -> None:
        """Listen where the giver was, with a key of one's own."""
        for made in self._asking:
            made.close()
        self._giver.setsockopt(zmq.CURVE_SERVER, 1)
        self._giver.setsockopt(zmq.CURVE_SECRETKEY, self._unknown.secret.encode())
        self._giver.bind(self._at)
        self._asking = [self._giver]

    def heard(self) -> list[list[bytes]]:
        """What anybody said to them."""
        return [made.recv_multipart() for made in self._asking if made.poll(0)]

    def close(self) -> None:
        self._giver.close()
        self._context.term()


def night(packages: Path, place: Path, seed: int) -> str:
    """What the simulation on the page says."""
    found = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    (place / "night.py").write_text(found[1], "utf-8")
    status, said, wrong = python(packages, str(place / "night.py"), str(seed))
    assert 0 == status, wrong
    return said


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("HSE-007", part="in the simulator, the same for the same seed")
@pytest.mark.varies("seed", range(1, 2), range(1, 200))
def test_in_the_simulator_no_lease_is_held_by_two(packages: Path, tmp_path: Path, seed: int) -> None:
    said = night(packages, tmp_path, seed)
    assert re.fullmatch(r"[0-9a-f]{32} 2 names, 0 mistakes\n", said), said
    assert said == night(packages, tmp_path, seed)


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("HSE-007", part="the simulator's checkers judge annexes, too")
def test_a_giver_that_forgets_is_found(packages: Path, tmp_path: Path) -> None:
    shutil.copytree(packages, tmp_path / "forgetful")
    core = tmp_path / "forgetful" / "weft_lease" / "core.py"
    text = core.read_text("utf-8")
    core.write_text(
        text.replace("                self._held[name] = holder, until\n", "                pass\n"), "utf-8"
    )
    said = night(tmp_path / "forgetful", tmp_path, 1)
    assert re.search(
        r" 2 names, [1-9]\d* mistakes converged: root and disk of root hold different memory of root", said
    )
