"""Stores for a bench: nodes of Weft with `[store]`, real MoaT-KV servers, etcd; all on loopback, all ended with the block.

Each is asked in its own way, by its own client in a process of its own (`storeload`, `moatload`, `etcdload`).
"""

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import msgpack

from bench.peers import programs
from bench.snapshot import resident_mb
from weft.cli.asking import try_status
from weft.cli.fleet import Fleet, Member
from weft.shell.blocks import free_blocks

ROOT: Final = Path(__file__).parents[2]
MOAT: Final = ROOT / "var/peers/moat-new/bin/python"
LAUNCHER: Final = ROOT / "tests/interop/moat/peer.py"
FIRST_PORT: Final = 36_000
PATIENCE_S: Final = 100.0
SETTINGS: Final = """
[fleet]
name = "bench-{fleet}"
beacon_port = {fleet}

[node]
name = "{name}"
level = "root"
port = {port}
state = "{state}"
runs = ["topology", "store"]
beacons = false

[metric]

[limits]
memory_megabytes = 8192

[journal]
megabytes = 16384

[store]
clock = "1s"
{more}
"""
BROKER: Final = """
listener {port} 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 0
"""
WAL_SYNCS: Final = "etcd_disk_wal_fsync_duration_seconds_count"
Said = dict[str, float]


def until(holds: Callable[[], Any], what: str, look_s: float = 0.01) -> Any:
    """Wait until something holds, and return it; TimeoutError."""
    ends_at = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        if time.monotonic() > ends_at:
            raise TimeoutError(what)
        time.sleep(look_s)
    return found


def told(command: list[str]) -> Said:
    """The line of JSON that a load prints."""
    done = subprocess.run(command, capture_output=True, cwd=ROOT, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.decode()[-2000:]}")
    line: Said = json.loads(done.stdout.splitlines()[-1])
    return line


def cpu_s(pid: int) -> float:
    """Seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Clock:
    """Asks a store's client port how far it has come; the same for ours and for real servers."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = msgpack.Unpacker(strict_map_key=False, ext_hook=lambda code, data: (code, data))
        self._sequence = 0
        if "error" in self._next():
            raise ConnectionError("not yet")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _next(self) -> dict[str, Any]:
        while True:
            for message in self._incoming:
                return dict(message)
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("closed")
            self._incoming.feed(data)

    def tick(self, node: str) -> int:
        """How many of a node's changes it has without a gap; -1: there are gaps."""
        self._sequence += 1
        self._socket.sendall(
            msgpack.packb({"seq": self._sequence, "action": "get_state", "nodes": True, "missing": True})
        )
        while (answer := self._next()).get("seq") != self._sequence:
            pass
        missing = (answer.get("missing") or {}).get(node)
        return -1 if missing else (answer["nodes"].get(node) or 0)


class Weft:
    """Nodes of Weft by name, each with the store; the first founds it. Links: a mesh, or a broker's port."""

    def __init__(self, place: Path, names: list[str], broker: int = 0) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place, self.broker = place, broker
        self.ports = dict(zip(names, free_blocks(len(names), FIRST_PORT), strict=True))
        self.founder = names[0]
        self.fleet = Fleet(place)
        self.members: dict[str, Member] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            if member.process is not None:
                member.process.kill()
                member.process.wait()

    def start(self, *names: str) -> None:
        """Start nodes, and wait until all serve."""
        for name in names:
            self.begin(name)
        for name in names:
            until(partial(self.serves, name), name)

    def begin(self, name: str) -> None:
        """Start a node, and wait for nothing."""
        if self.broker:
            more = f'mesh = false\nbroker = "127.0.0.1:{self.broker}"\n'
        else:
            more = f"peers = {[f'127.0.0.1:{port}' for other, port in self.ports.items() if other != name]}\n"
        if name == self.founder:
            more += 'found = "home"\n'
        file = self.place / f"{name}.toml"
        words = {"name": name, "port": self.ports[name], "state": self.place / name, "more": more}
        words["fleet"] = self.ports[self.founder]
        file.write_text(SETTINGS.format(**words), "utf-8")
        member = Member(name, ("-m", "weft.cli.main", "up", str(file)), self.ports[name])
        self.members[name] = member
        self.fleet.add(member)

    def end(self, name: str, *, is_kill: bool = False) -> None:
        """End a node, in order or as a crash does."""
        process = self.members.pop(name).process
        assert process is not None
        if is_kill:
            process.kill()
            process.wait()
        else:
            programs.end(process)

    def client(self, name: str) -> int:
        return self.ports[name] + 5

    def serves(self, name: str) -> bool:
        """Whether it answers clients; RuntimeError if it has ended."""
        if not self.members[name].is_running:
            raise RuntimeError(self.log(name))
        return bool(self.store(name).get("serves")) and self.is_open(name)

    def is_open(self, name: str) -> bool:
        with contextlib.suppress(OSError), Clock(self.client(name)):
            return True
        return False

    def timing(self, name: str, what: str) -> tuple[int, float]:
        """Of one of its timings, how many values and their sum."""
        found = (try_status(self.ports[name]) or {})["timings"][what]
        return int(found["count"]), float(found["sum"])

    def store(self, name: str) -> dict[str, Any]:
        """What its store says of itself."""
        found: dict[str, Any] = (try_status(self.ports[name]) or {}).get("cores", {}).get("store", {})
        return found

    def pid(self, name: str) -> int:
        process = self.members[name].process
        assert process is not None
        return process.pid

    def memory_mb(self, name: str) -> float:
        return resident_mb(self.pid(name))

    def log(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text("utf-8")[-1_500:]

    def load(self, name: str, mode: str, count: int, at_once: int) -> Said:
        """Let a client of its own do something there."""
        words = [mode, str(self.client(name)), str(count), str(at_once)]
        return told([sys.executable, "-m", "bench.peers.storeload", *words])


@contextlib.contextmanager
def mosquitto(place: Path) -> Iterator[int]:
    """A broker; its port."""
    place.mkdir(parents=True, exist_ok=True)
    [port] = free_blocks(1, FIRST_PORT + 5_000)
    (place / "conf").write_text(BROKER.format(port=port))
    with programs.running(["mosquitto", "-c", str(place / "conf")], place, port):
        yield port


class Moat:
    """Real servers `n1`, `n2` at one broker; the first founds the store."""

    def __init__(self, place: Path, count: int, broker: int) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place, self.broker = place, broker
        [self.base] = free_blocks(1, FIRST_PORT + 6_000)
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(1, count + 1):
                self._start(f"n{number}", *(["hello"] if number == 1 else []))
        except BaseException:
            self.__exit__()
            raise

    def _start(self, name: str, *init: str) -> None:
        log = self.place / f"{name}.log"
        with log.open("wb") as file:
            environment = {**os.environ, "BASE": str(self.base), "CYCLE": "2", "GAP": "0.4"}
            command = [str(MOAT), str(LAUNCHER), name, str(self.broker), *init]
            self.processes.append(subprocess.Popen(command, stdout=file, stderr=file, env=environment))
        until(lambda: b"READY" in log.read_bytes() or self.processes[-1].poll() is not None, name)
        if self.processes[-1].poll() is not None:
            raise RuntimeError(log.read_text()[-2000:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def client(self, name: str) -> int:
        return self.base + int(name[1:])

    def load(self, name: str, mode: str, count: int, at_once: int) -> Said:
        words = [mode, str(self.client(name)), str(count), str(at_once)]
        return told([str(MOAT), str(ROOT / "bench/peers/moatload.py"), *words])


class Etcd:
    """Members of one etcd, on loopback."""

    def __init__(self, place: Path, count: int) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place = place
        self.bases = free_blocks(count + 1, FIRST_PORT + 7_000)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.members = count
        for number in range(count):
            self._start(number, range(count), "new")
        until(lambda: all(self.is_healthy(number) for number in range(count)), "etcd")

    def _start(self, number: int, members: range, state: str) -> None:
        program, base = programs.found("etcd"), self.bases[number]
        assert program is not None, "demanded before"
        client, peer = f"http://127.0.0.1:{base}", f"http://127.0.0.1:{base + 1}"
        all_peers = ",".join(f"e{k}=http://127.0.0.1:{self.bases[k] + 1}" for k in members)
        words = [
            "--name",
            f"e{number}",
            "--data-dir",
            str(self.place / f"e{number}"),
            "--quota-backend-bytes",
            "8589934592",
        ]
        words += ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer]
        words += [
            "--initial-advertise-peer-urls",
            peer,
            "--initial-cluster",
            all_peers,
            "--initial-cluster-state",
            state,
        ]
        with (self.place / f"e{number}.log").open("wb") as log:
            self.processes.append(subprocess.Popen([program, *words], stdout=log, stderr=log))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def ask(self, number: int, what: str, body: dict[str, Any]) -> dict[str, Any]:
        """A request of its gateway; nothing if it does not answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.bases[number]}/v3/{what}", json.dumps(body).encode())
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
        return {}

    def is_healthy(self, number: int) -> bool:
        key = base64.b64encode(b"?").decode()
        return bool(self.ask(number, "kv/range", {"key": key}))

    def count(self, number: int) -> int:
        """How many keys a member has by itself."""
        nothing = base64.b64encode(b"\0").decode()
        body = {"key": nothing, "range_end": nothing, "count_only": True, "serializable": True}
        return int(self.ask(number, "kv/range", body).get("count", 0))

    def join(self) -> None:
        """Add a member, and start it."""
        number = self.members
        self.ask(0, "cluster/member/add", {"peerURLs": [f"http://127.0.0.1:{self.bases[number] + 1}"]})
        self._start(number, range(number + 1), "existing")

    @property
    def leader(self) -> int:
        """The member that leads."""
        said = [self.ask(number, "maintenance/status", {}) for number in range(self.members)]
        return next(number for number, one in enumerate(said) if one["leader"] == one["header"]["member_id"])

    def syncs(self, number: int) -> float:
        """How often a member has synced its log."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.bases[number]}/metrics", timeout=30) as page:
            lines = page.read().decode().splitlines()
        return float(next(line for line in lines if line.startswith(WAL_SYNCS)).split()[1])

    def load(self, mode: str, count: int, at_once: int, member: int | None = None) -> Said:
        """`member`: at this one alone."""
        program = programs.found("etcdload")
        assert program is not None, "demanded before"
        bases = self.bases[: self.members] if member is None else [self.bases[member]]
        endpoints = ",".join(f"http://127.0.0.1:{base}" for base in bases)
        return told([program, mode, endpoints, str(count), str(at_once)])
