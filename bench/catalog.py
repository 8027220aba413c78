"""The catalog beside a bare pyzmq ROUTER, etcd and redis: several measures, each by its name.

    scripts/bench-install
    .venv/bin/python -m bench.catalog [NAME...] [--rounds 5] [--beats-s 60]

All take turns; the medians' ratio is the result, beside the bar of the specification. Clients are processes of their
own, in plain pyzmq (bench/peers/catalogload.py). Changes are durable on both sides: redis syncs each write, as etcd does.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from bench.peers import programs
from bench.peers.stores import ROOT, Etcd, Said, told, until
from bench.sensor import cpu_seconds
from bench.store import Bar, bare_rate, compared, show
from weft.shell.blocks import free_blocks

LOOKUPS, FLOWN, LISTS, CHANGES = 5_000, 20_000, 500, 500
LISTED, MANY, FEW = 100, 10_000, 10
SETTINGS: Final = """
[fleet]
name = "bench-catalog"
beacon_port = {other}
[node]
name = "root"
level = "root"
port = {port}
state = "{state}"
runs = ["topology", "configuration", "carrier"]
[security]
mode = "none"
allow_insecure = true
[catalog]
port = {router}
beacon_port = {other}
"""


class Options(NamedTuple):
    rounds: int
    beats_s: float


class Broker:
    """A node with a catalog, on a disk of its own."""

    def __init__(self, place: Path, more: str = "") -> None:
        self.base, router = free_blocks(2, 36_000)
        self.port = router + 1
        file = place / "node.toml"
        file.write_text(
            SETTINGS.format(port=self.base, router=self.port, other=router + 9, state=place / "state") + more
        )
        with (place / "log").open("wb") as log:
            words = [sys.executable, "-m", "weft.cli.main", "up", str(file)]
            self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=ROOT)
        until(lambda: self.facts().get("events_port"), "the broker")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        programs.end(self.process)

    def facts(self) -> dict[str, Any]:
        """What the node says of its catalog."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.base + 6}/status", timeout=10) as page:
                return dict(json.load(page)["cores"]["catalog"])
        except (OSError, KeyError):
            return {}

    def load(self, mode: str, count: int, *more: object) -> Said:
        return loaded(mode, self.port, count, *more)

    @property
    def events(self) -> int:
        return int(self.facts()["events_port"])


def loaded(mode: str, port: int, count: int, *more: object) -> Said:
    return told([sys.executable, "-m", "bench.peers.catalogload", mode, str(port), str(count), *map(str, more)])


@contextmanager
def echo() -> Iterator[int]:
    """A bare ROUTER in a process of its own."""
    port = free_blocks(1, 39_000)[0]
    words = [sys.executable, "-m", "bench.peers.catalogload", "echo", str(port), "0"]
    with subprocess.Popen(words, cwd=ROOT) as process:
        try:
            yield port
        finally:
            process.kill()


@contextmanager
def redis(place: Path) -> Iterator[int]:
    """A redis whose every write is on disk before it is answered."""
    port = free_blocks(1, 40_000)[0]
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
    with programs.running([*words, "--appendfsync", "always", "--dir", str(place)], place, port):
        yield port


class Stage:
    """Who takes part in a measure, each in a folder of its own; all ended with it."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def place(self) -> Path:
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory()))

    def broker(self, instances: int, more: str = "") -> Broker:
        made = self._stack.enter_context(Broker(self.place(), more))
        if instances:
            made.load("fill", instances)
        return made

    def echo(self) -> int:
        return self._stack.enter_context(echo())

    def redis(self) -> int:
        return self._stack.enter_context(redis(self.place()))

    def etcd(self) -> Etcd:
        return self._stack.enter_context(Etcd(self.place(), 1))


def micro(ask: Callable[[], Said]) -> Callable[[], float]:
    return lambda: 1e6 * ask()["p50"]


# The measures


def lookups(options: Options) -> list[Bar]:
    """One REQ in lock-step, 300 names; then one DEALER with 200 in flight."""
    with Stage() as stage:
        broker, bare = stage.broker(300), stage.echo()
        step = compared(
            {
                "weft, REQ": lambda: broker.load("lookup", LOOKUPS)["per_second"],
                "bare ROUTER, REQ": lambda: loaded("lookup", bare, LOOKUPS)["per_second"],
                "weft, DEALER": lambda: broker.load("dealer", FLOWN)["per_second"],
                "bare ROUTER, DEALER": lambda: loaded("dealer", bare, FLOWN)["per_second"],
            },
            options.rounds,
            "/s",
        )
    return [
        Bar("lookups in lock-step of a bare ROUTER", step["weft, REQ"], step["bare ROUTER, REQ"], 0.75),
        Bar("lookups in flight of a bare ROUTER", step["weft, DEALER"], step["bare ROUTER, DEALER"], 0.5),
    ]


def latency(options: Options) -> list[Bar]:
    """The median of one lookup, beside a get of etcd and of redis."""
    with Stage() as stage:
        broker, etcd, cache = stage.broker(300), stage.etcd(), stage.redis()
        seen = compared(
            {
                "weft": micro(lambda: broker.load("lookup", LOOKUPS)),
                "etcd": micro(lambda: etcd.load("get", LOOKUPS, 1)),
                "redis": micro(lambda: loaded("redisget", cache, LOOKUPS)),
            },
            options.rounds,
            "us",
        )
    return [Bar("lookup of a get of etcd", seen["weft"], seen["etcd"], 1, is_at_most=True)]


def changes(options: Options) -> list[Bar]:
    """From an update until a watcher has it, durable; and a registration, beside etcd's put."""
    with Stage() as stage:
        broker, etcd, cache = stage.broker(300), stage.etcd(), stage.redis()
        flush = 1e6 / bare_rate(stage.place())
        events = broker.events
        seen = compared(
            {
                "weft, watcher": micro(lambda: broker.load("watch", CHANGES, events)),
                "etcd, watcher": micro(lambda: etcd.load("watch", CHANGES, 1)),
                "redis, subscriber": micro(lambda: loaded("redis", cache, CHANGES)),
                "weft, register": micro(lambda: broker.load("register", CHANGES)),
                "etcd, put": micro(lambda: etcd.load("put", CHANGES, 1)),
            },
            options.rounds,
            "us",
        )
    print(f"  a bare write and fdatasync: {flush:,.0f} us")
    return [
        Bar("change to watcher of etcd", seen["weft, watcher"], seen["etcd, watcher"], 1, is_at_most=True),
        Bar("change to watcher of redis", seen["weft, watcher"], seen["redis, subscriber"], 1, is_at_most=True),
        Bar("register of a put of etcd", seen["weft, register"], seen["etcd, put"], 1, is_at_most=True),
    ]


def scale(options: Options) -> list[Bar]:
    """Lookups among 10,000 instances and among 10; a list of 100."""
    with Stage() as stage:
        many, few, hundred = stage.broker(MANY), stage.broker(FEW), stage.broker(LISTED)
        seen = compared(
            {
                "10,000 instances": lambda: many.load("lookup", LOOKUPS)["per_second"],
                "10 instances": lambda: few.load("lookup", LOOKUPS)["per_second"],
            },
            options.rounds,
            "/s",
        )
        print(f"  a list of {LISTED}: {1e6 * hundred.load('list', LISTS)['p50']:,.0f} us")
    return [Bar("lookups among 10,000 of those among 10", seen["10,000 instances"], seen["10 instances"], 0.9)]


def beating(options: Options) -> list[Bar]:
    """10,000 instances, each beating by UDP once a second: what of a core that is, who is lost, and lookups meanwhile."""
    with Stage() as stage:
        broker = stage.broker(0)
        words = ["-m", "bench.peers.catalogload", "beats", broker.port, MANY, broker.facts()["beats_port"]]
        command = [sys.executable, *map(str, words), str(options.beats_s + 5)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as beater:
            until(lambda: broker.facts().get("instances", {}).get("ACTIVE", 0) >= MANY, "all are registered", 0.5)
            time.sleep(3)
            lost = -sum(broker.facts()["evictions"].values())
            quiet, a_beat = spent_by(broker, lambda: time.sleep(options.beats_s / 2))
            waited = list[float]()
            share, _ = spent_by(broker, lambda: waited.extend(waits(broker, options.beats_s / 2)))
            facts = broker.facts()
            beater.kill()
    lost += sum(facts["evictions"].values())
    print(f"  {facts['beats']}, {lost} evicted, {100 * quiet:.1f} % of a core, {1e6 * a_beat:.1f} us a beat;", end="")
    print(f" {100 * share:.1f} % with {len(waited) * 300:,} lookups meanwhile")
    return [
        Bar("evictions of who beats, of 0", lost, 1, 0, is_at_most=True),
        Bar("share of a core with 10,000 beating, of 10 %", quiet, 0.1, 1, is_at_most=True),
        Bar("share of a core with lookups meanwhile, of 60 %", share, 0.6, 1, is_at_most=True),
        Bar("lookup p99 meanwhile, of 20 ms", statistics.median(waited), 0.02, 1, is_at_most=True),
    ]


def waits(broker: Broker, seconds: float) -> Iterator[float]:
    """The p99 of 300 lookups, again and again for so long."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        yield broker.load("lookup", 300)["p99"]


def spent_by(broker: Broker, meanwhile: Callable[[], object]) -> tuple[float, float]:
    """The share of a core that a broker takes, and CPU seconds for each beat that it hears by UDP."""
    pid, beats = broker.process.pid, broker.facts()["beats"]["udp"]
    spent, began = cpu_seconds(pid), time.monotonic()
    meanwhile()
    spent, took = cpu_seconds(pid) - spent, time.monotonic() - began
    return spent / took, spent / (broker.facts()["beats"]["udp"] - beats)


MEASURES: Final[dict[str, Callable[[Options], list[Bar]]]] = {
    "lookups": lookups,
    "latency": latency,
    "changes": changes,
    "scale": scale,
    "beating": beating,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beats-s", type=float, default=60.0)
    given = parser.parse_args()
    if unknown := set(given.names) - set(MEASURES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    programs.end_in_order()
    programs.demand("etcd", "etcdload", "redis-server")
    options = Options(given.rounds, given.beats_s)
    for name in given.names or MEASURES:
        show(name, MEASURES[name], options)


if __name__ == "__main__":
    main()
