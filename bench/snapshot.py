"""A snapshot of a large configuration, from a root to a fresh replica, over real sockets, journals and syncs.

Beside it, in the same run: Redis, which resynchronises a fresh replica fully with as many keys of the same size. Both are
timed from the order to follow until the replica has everything, and both sides' resident memory is read before, at its
highest, and after. The peer keeps nothing on disk at the replica; ours has journaled every pair before it says so.

    scripts/bench-install
    .venv/bin/python -m bench.snapshot [--keys 100000 1000000]
"""

import argparse
import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.hosts import Hosts, enter_own_network, load
from bench.peers import programs
from bench.sensor import cpu_seconds
from weft.shell.blocks import free_blocks

VALUE_BYTES: Final = 64
BATCH: Final = 10_000
PATIENCE_S: Final = 120
MASTER, COPY = 28_001, 28_002


class Memory(NamedTuple):
    """Resident MB of a process."""

    before: float
    high: float
    after: float

    def __str__(self) -> str:
        return f"{self.before:,.0f} -> {self.high:,.0f} -> {self.after:,.0f}"


class Seen(NamedTuple):
    """One full synchronisation."""

    seconds: float
    cpu_s: tuple[float, float]
    """Of the source and of the replica."""
    source: Memory
    replica: Memory


def resident_mb(pid: int, what: str = "VmRSS") -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1_024


def forget_high(pid: int) -> float:
    """Let the kernel count the highest resident memory from now on; what it is now."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    return resident_mb(pid)


# Ours


def documents(place: Path, keys: int) -> tuple[dict[str, Any], dict[str, Any]]:
    root_port, replica_port = free_blocks(2, 33_000)
    file = place / "fleet.toml"
    file.write_text(
        '[fleet]\nname = "bench"\nheartbeat = "10s"\n[metric.load]\ndetail = "LOAD"\nrate = "60s"\n'
        f'[group.copies]\ncollectors = ["127.0.0.1:{replica_port}"]\nmembers = ["copy"]\nmetrics = ["load"]\n'
    )
    shared = {
        "fleet": {"name": "bench", "beacon_port": root_port, "heartbeat": "10s"},
        "limits": {"memory_megabytes": 8_192, "cores": {"configuration": 4_096}},
        "configuration": {"keys": keys + 1_000, "megabytes": 1_024},
    }
    own = {"host": "127.0.0.1"}
    root = {
        "name": "root",
        "level": "root",
        "config": str(file),
        "port": root_port,
        "state": str(place / "root"),
        **own,
    }
    copy = {"name": "copy", "port": replica_port, "state": str(place / "copy"), **own}
    lake = {"path": str(place / "lake")}
    return {**shared, "node": root, "lake": lake, "bench": {"keys": keys, "counts": False}}, {
        **shared,
        "node": copy,
        "bench": {"counts": False},
    }


def ours(place: Path, keys: int) -> Seen:
    root, copy = documents(place, keys)
    with Hosts(place) as hosts:
        hosts.start([root])
        source = hosts.hosts[0].process.pid
        if not hosts.until(lambda: hosts.filled.get("root", 0) >= keys, PATIENCE_S):
            raise TimeoutError(f"{hosts.filled} of {keys} keys")
        time.sleep(2)
        before = forget_high(source)
        hosts.start([copy])
        replica = hosts.hosts[1].process.pid
        if not hosts.until(lambda: "copy" in hosts.placed, PATIENCE_S):
            raise TimeoutError("the replica has no place")
        fresh, spent = forget_high(replica), (cpu_seconds(source), cpu_seconds(replica))
        if not hosts.until(lambda: hosts.stands["copy"].is_settled, PATIENCE_S):
            raise TimeoutError("the snapshot")
        seconds = hosts.stands["copy"].at - hosts.placed["copy"]
        spent = cpu_seconds(source) - spent[0], cpu_seconds(replica) - spent[1]
        assert hosts.counts()["copy"]["keys"] >= keys
        time.sleep(2)
        return Seen(
            seconds,
            spent,
            Memory(before, resident_mb(source, "VmHWM"), resident_mb(source)),
            Memory(fresh, resident_mb(replica, "VmHWM"), resident_mb(replica)),
        )


# Redis


class Redis:
    """A server of the machine's own redis on a loopback port; nothing is written to disk."""

    def __init__(self, place: Path, port: int) -> None:
        words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(place)]
        words += ["--repl-diskless-sync-delay", "0", "--repl-diskless-load", "swapdb", "--client-output-buffer-limit"]
        words += ["replica", "0", "0", "0"]
        program = programs.found("redis-server")
        assert program is not None, "looked for before"
        self.process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, env=programs.environment())
        self.link = self._connected(port)
        self.lines = self.link.makefile("rb")

    def _connected(self, port: int) -> socket.socket:
        ends_at = time.monotonic() + 10
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), 30)
            except OSError:
                if time.monotonic() > ends_at:
                    raise
                time.sleep(0.02)

    def ask(self, *words: bytes) -> bytes:
        """One command; the text of its answer."""
        self.link.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
        line = self.lines.readline()
        if line.startswith(b"-"):
            raise ValueError(line)
        return self.lines.read(int(line[1:]) + 2) if line.startswith(b"$") else line[1:]

    def fill(self, keys: int) -> None:
        value = b"v" * VALUE_BYTES
        for first in range(0, keys, BATCH):
            numbers = range(first, min(first + BATCH, keys))
            self.ask(b"MSET", *(word for n in numbers for word in (b"/BENCH/many/k%07d" % n, value)))

    def is_synchronised(self, keys: int) -> bool:
        told = self.ask(b"INFO", b"replication")
        return b"master_link_status:up" in told and int(self.ask(b"DBSIZE")) == keys

    def stop(self) -> None:
        self.link.close()
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def redis(place: Path, port: int) -> Iterator[Redis]:
    (place / str(port)).mkdir()
    server = Redis(place / str(port), port)
    try:
        yield server
    finally:
        server.stop()


def theirs(place: Path, keys: int) -> Seen:
    with redis(place, MASTER) as master, redis(place, COPY) as copy:
        master.fill(keys)
        pids = master.process.pid, copy.process.pid
        before = [forget_high(pid) for pid in pids]
        began, spent = time.monotonic(), [cpu_seconds(pid) for pid in pids]
        copy.ask(b"REPLICAOF", b"127.0.0.1", b"%d" % MASTER)
        while not copy.is_synchronised(keys):
            if time.monotonic() > began + PATIENCE_S:
                raise TimeoutError("redis")
            time.sleep(0.01)
        seconds, spent = (
            time.monotonic() - began,
            [cpu_seconds(pid) - was for pid, was in zip(pids, spent, strict=True)],
        )
        memory = [
            Memory(was, resident_mb(pid, "VmHWM"), resident_mb(pid)) for was, pid in zip(before, pids, strict=True)
        ]
        return Seen(seconds, (spent[0], spent[1]), *memory)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, nargs="+", default=[100_000, 1_000_000])
    options = parser.parse_args()
    is_there = programs.found("redis-server") is not None
    enter_own_network()
    if not is_there:
        print("redis-server is not installed, so there is no ratio: scripts/bench-install")
    print(
        f"{'keys':>9} {'who':>6} {'seconds':>8} {'keys/s':>9} {'CPU s of each':>13} {'root MB':>24} {'replica MB':>24}"
        f" {'rate/Redis':>10} {'per CPU':>8}"
    )
    for keys in options.keys:
        with tempfile.TemporaryDirectory() as place:
            peer = theirs(Path(place), keys) if is_there else None
            rows = {"weft": ours(Path(place), keys), **({"redis": peer} if peer else {})}
        for who, seen in rows.items():
            ratios = (peer.seconds / seen.seconds, sum(peer.cpu_s) / sum(seen.cpu_s)) if peer else (float("nan"),) * 2
            print(
                f"{keys:>9,} {who:>6} {seen.seconds:>8.2f} {keys / seen.seconds:>9,.0f} {seen.cpu_s[0]:>6.2f} {seen.cpu_s[1]:>6.2f}"
                f" {seen.source!s:>24} {seen.replica!s:>24} {ratios[0]:>10.3f} {ratios[1]:>8.3f}"
            )
        print(f"{load()}\n", flush=True)


if __name__ == "__main__":
    main()
