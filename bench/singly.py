"""What a node spends on a request that comes alone: the next one is sent when the answer is there.

    .venv/bin/python -m bench.singly [NAME...] [--rounds 24] [--count 120] [--beside OTHER...]

Microseconds of CPU of the node's process, all threads, a request; of a hop, both nodes together. The lowest quarter of the
rounds counts, since whoever else is at work on the machine only adds. Clients are plain sockets
in this process, so the node alone is counted; journals lie in memory, so a sync costs little. `start` is `weft up` of a
sensor, with compiled sources, until it says that it has started. `--beside OTHER` is a directory with other sources of Weft
(`git archive COMMIT | tar -x -C OTHER`): both take turns, each with nodes of its own.
"""

import argparse
import contextlib
import itertools
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgpack
import zmq

from bench.peers.catalogload import NAMES, T, asked, dialled, record
from bench.peers.client import Client, sends
from bench.peers.rounds import load
from weft.shell.blocks import free_blocks

ROOT: Final = Path(__file__).parents[1]
MEMORY: Final = "/dev/shm"  # a folder of memory
PATIENCE_S: Final = 60.0
KIND: Final = "bench.load"
PAYLOAD: Final = bytes(256)
SETTINGS: Final = """
[fleet]
name = "singly-{port}"
beacon_port = {other}
[node]
name = "{name}"
host = "127.0.0.1"
level = "{level}"
parent = "{parent}"
port = {port}
state = "{state}"
runs = {runs}
beacons = false
[journal]
megabytes = 4096
[metric]
{more}
"""
STORE: Final = '[store]\nclock = "5s"\nfound = "home"\n'
CATALOG: Final = '[catalog]\nhost = "127.0.0.1"\nport = {router}\nbeacon_port = {other}\n'
PATIENT: Final = "[chains]\ndead_s = 60.0\n"  # a client is silent while the other sources have their turn
JOURNAL: Final = '[[chains.filter]]\nname = "journal"\nkind = "journal"\ntypes = ["bench.*"]\ndir = "in"\n'
CHAINS: Final = ("measurement", "chains", "carrier", "topology")
One = Callable[[int], object]


class Nodes:
    """Nodes of one directory of sources."""

    def __init__(self, sources: Path, place: Path) -> None:
        self.sources, self.place = sources, place
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, runs: tuple[str, ...], more: str = "", parent: int = 0) -> int:
        """Start a node, and wait until it answers; its first port."""
        port = self.begin(name, runs, more, parent)
        until(lambda: status(port), name)
        return port

    def begin(self, name: str, runs: tuple[str, ...], more: str = "", parent: int = 0) -> int:
        """Start a node; its first port."""
        port, router = free_blocks(2, 45_000)
        words = {
            "name": name,
            "level": "sensor" if parent else "root",
            "parent": f"127.0.0.1:{parent}" if parent else "",
            "port": port,
            "other": router + 9,
            "state": self.place / name,
            "runs": list(runs),
            "more": more.format(router=router, other=router + 9) if "{router}" in more else more,
        }
        file = self.place / f"{name}.toml"
        file.write_text(SETTINGS.format(**words), "utf-8")
        command = [sys.executable, "-m", "weft.cli.main", "up", str(file)]
        environment = {**os.environ, "PYTHONPATH": str(self.sources / "src")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with file.with_suffix(".log").open("wb") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        return port

    def cpu_ns(self) -> int:
        """What all threads of the nodes have spent."""
        tasks = (task for each in self.processes for task in Path(f"/proc/{each.pid}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()


def status(port: int) -> bytes:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port + 6}/status", timeout=5) as page:
        return bytes(page.read())
    return b""


def until(holds: Callable[[], Any], what: str, look_s: float = 0.02) -> None:
    ends_at = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > ends_at:
            raise TimeoutError(what)
        time.sleep(look_s)


class StoreClient:
    """A client of a store on a bare connection."""

    def __init__(self, port: int) -> None:
        self._link = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = msgpack.Unpacker(strict_map_key=False, ext_hook=lambda code, data: (code, data))
        self._count = 0
        self._hear()

    def ask(self, **words: Any) -> None:
        """Ask, and wait for the answer."""
        self._count += 1
        self._link.sendall(msgpack.packb({"seq": self._count, **words}))
        answer = self._hear()
        assert (self._count, False) == (answer.get("seq"), "error" in answer), answer

    def _hear(self) -> dict[str, Any]:
        while True:
            for message in self._incoming:
                return dict(message)
            data = self._link.recv(1 << 16)
            if not data:
                raise ConnectionError("closed")
            self._incoming.feed(data)


def _path(number: int) -> list[str]:
    return ["bench", "home", "kitchen", f"temperature{number:07d}"]


# What is asked of the nodes: each starts them, and returns functions that ask once


def store(nodes: Nodes) -> dict[str, One]:
    port = nodes.start("a", ("topology", "store"), STORE) + 5
    until(lambda: _is_open(port), "the store")
    client = StoreClient(port)
    client.ask(action="set_value", path=_path(0), value="v" * 38)
    return {
        "store: set": lambda number: client.ask(action="set_value", path=_path(number), value="v" * 38),
        "store: get": lambda _: client.ask(action="get_value", path=_path(0)),
    }


def _is_open(port: int) -> bool:
    with contextlib.suppress(OSError, AssertionError):
        StoreClient(port).ask(action="set_value", path=_path(0), value="v")
        return True
    return False


def catalog(nodes: Nodes) -> dict[str, One]:
    nodes.start("broker", ("topology", "configuration", "carrier"), CATALOG)
    settings = (nodes.place / "broker.toml").read_text()
    port = int(settings.rpartition("\nport = ")[2].split()[0])
    req = dialled(zmq.REQ, port)

    def ask(*frames: bytes) -> list[bytes]:
        req.send_multipart(frames)
        return req.recv_multipart()

    def register(number: int) -> None:
        answer = ask(b"UwU", T, record(number, name=f"r{time.time_ns()}"))
        assert answer[0] == b"OwO", answer

    for number in range(NAMES):
        ask(b"UwU", T, record(number))
    return {
        "catalog: look-up": asked(port, b"u_U", T, b"n%d"),
        "catalog: change": lambda _: ask(b"UoU", T, b'{"name":"n0","function":"%d"}' % time.time_ns()),
        "catalog: register": register,
    }


def chains(nodes: Nodes) -> dict[str, One]:
    nodes.start("root", CHAINS, PATIENT)
    sender, reader = _attached(nodes, "root", "sender"), _attached(nodes, "root", "reader")
    reader.stand(1, "in", KIND)
    tags = itertools.count(1)

    def one(_: int) -> None:
        sender.say(*sends(next(tags), 1, KIND, PAYLOAD, to=["DIRECT"]))
        _heard(reader, "rec")
        _heard(sender, "status")

    return {"chains: a message to a reader": one}


def hop(nodes: Nodes) -> dict[str, One]:
    parent = nodes.start("root", CHAINS, PATIENT + JOURNAL)
    nodes.start("child", CHAINS, PATIENT, parent)
    sender, tags = _attached(nodes, "child", "sender"), itertools.count(1)

    def one(_: int) -> None:
        sender.say(*sends(next(tags), 1, KIND, PAYLOAD, to=["PARENTSOF"], want="dest"))
        assert _heard(sender, "status")["m"][0]["ok"]

    one(0)
    return {"carrier: a durable hop": one}


def start(nodes: Nodes) -> dict[str, One]:
    def one(number: int) -> None:
        nodes.end()
        nodes.begin(f"sensor{number}", CHAINS, '[metric.cpu]\ndetail = "CPU"\nrate = "1s"\n', parent=1)
        log = nodes.place / f"sensor{number}.log"
        until(lambda: b"node.started" in log.read_bytes(), log.name, 0.002)

    one(0)
    return {"start of a sensor": one}


def _attached(nodes: Nodes, node: str, name: str) -> Client:
    door = nodes.place / node / "chains.endpoint"
    until(door.exists, "the door")
    return Client(door.read_text("utf-8").strip(), name)


def _heard(client: Client, op: str) -> dict[str, Any]:
    while (told := client.hear()[0])["op"] != op:
        pass
    return told


MEASURES: Final[dict[str, Callable[[Nodes], dict[str, One]]]] = {
    "store": store,
    "catalog": catalog,
    "chains": chains,
    "hop": hop,
    "start": start,
}
ONCE: Final = ("start of a sensor",)
"""What happens once in a round."""


def spent_us(nodes: Nodes, one: One, count: int) -> tuple[float, float]:
    """Microseconds a request: of the nodes' CPU, and of the clock."""
    before, began = nodes.cpu_ns() if count > 1 else 0, time.perf_counter()
    for number in range(count):
        one(number)
    ended = time.perf_counter()
    return (nodes.cpu_ns() - before) / count / 1e3, (ended - began) / count * 1e6


@contextlib.contextmanager
def standing(name: str, trees: dict[str, Path]) -> Iterator[dict[str, tuple[Nodes, dict[str, One]]]]:
    """The nodes of one measure, of each directory of sources."""
    with ExitStack() as stack:
        made = {}
        for tree, sources in trees.items():
            nodes = Nodes(sources, Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY))))
            stack.callback(nodes.end)
            made[tree] = nodes, MEASURES[name](nodes)
        yield made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--beside", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    trees = {"here": ROOT} | {each.name: each.resolve() for each in options.beside}
    print(f"us a request, {options.rounds} rounds of {options.count}; CPU (lowest to median), and of the clock")
    for name in options.names or MEASURES:
        with standing(name, trees) as made:
            show(made, options.rounds, options.count)
    print(load())


def show(made: dict[str, tuple[Nodes, dict[str, One]]], rounds: int, count: int) -> None:
    """Let the trees take turns, and print a line for each request."""
    for what in next(iter(made.values()))[1]:
        seen: dict[str, list[tuple[float, float]]] = {tree: [] for tree in made}
        for tree, (nodes, ways) in [*made.items()] * rounds:
            seen[tree].append(spent_us(nodes, ways[what], 1 if what in ONCE else count))
        line = f"{what:<30}"
        for tree, figures in seen.items():
            cpu, clock = (sorted(each[column] for each in figures) for column in (0, 1))
            quarter = len(figures) // 4
            line += (
                f" | {tree} {cpu[quarter]:6.1f} ({cpu[0]:.1f} to {statistics.median(cpu):.1f}), {clock[quarter]:6.0f}"
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()
