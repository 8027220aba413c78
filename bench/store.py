"""The store beside a real MoaT-KV server and etcd: several measures, each by its name.

    scripts/bench-install
    .venv/bin/python -m bench.store [NAME...] [--rounds 5] [--entries 100000]

Both sides take turns; the medians' ratio is the result, beside the bar of the specification. Clients are processes of
their own, ours with our library, theirs with theirs. MoaT-KV acknowledges from memory: equal durability means our journal
on tmpfs.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.peers import programs
from bench.peers.rounds import load, take_turns
from bench.peers.stores import MOAT, Clock, Etcd, Moat, Said, Weft, cpu_s, mosquitto, until
from bench.snapshot import forget_high, resident_mb
from weft.base.changes import Chain, Event
from weft.shell.files import Files, append_whole
from weft.wire.store.files import Writer
from weft.wire.store.pack import pack

MEMORY: Final = "/dev/shm"  # a folder of memory, as the measure says
SETS, SETS_AT_ONCE, GETS, WATCHED, REPLICATED = 1_000, 10_000, 2_000, 500, 10_000
FILED: Final = 100_000
THEIRS: Final = 4  # how many times fewer operations the slower peer gets in its turn
IDLE_S: Final = 20.0
MEMBERS: Final = ("a", "b", "c")


class Options(NamedTuple):
    rounds: int
    entries: int


class Bar(NamedTuple):
    """What is asked: `ours` against `theirs`, at least so many times, or with `is_at_most`, at most."""

    what: str
    ours: float
    theirs: float
    times: float
    is_at_most: bool = False

    def __str__(self) -> str:
        ratio = self.ours / self.theirs if self.theirs else float("inf")
        is_met = ratio <= self.times if self.is_at_most else ratio >= self.times
        sign = "at most" if self.is_at_most else "at least"
        return f"{'met   ' if is_met else 'MISSED'} {self.what}: {ratio:.3g}, {sign} {self.times:g}"


def folder(stack: ExitStack, *, is_on_disk: bool) -> Path:
    """An empty folder, on the disk of `TMPDIR` or in memory."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(dir=None if is_on_disk else MEMORY)))


def one_node(stack: ExitStack, *, is_on_disk: bool) -> Weft:
    nodes = stack.enter_context(Weft(folder(stack, is_on_disk=is_on_disk) / "weft", ["a"]))
    nodes.start("a")
    return nodes


def real(stack: ExitStack, count: int) -> Moat:
    place = folder(stack, is_on_disk=True)
    broker = stack.enter_context(mosquitto(place / "mosquitto"))
    return stack.enter_context(Moat(place / "moat", count, broker))


def bare_rate(place: Path) -> float:
    """How many appends of 200 bytes, each with its fdatasync, a second has."""
    files, count = Files(), 500
    file = files.create(place / f"bare-{time.monotonic_ns()}")
    began = time.perf_counter()
    for _ in range(count):
        append_whole(files, file, b"x" * 200)
        files.sync(file)
    files.close(file)
    return count / (time.perf_counter() - began)


def compared(ways: dict[str, Callable[[], float]], rounds: int, unit: str) -> dict[str, float]:
    """The medians, printed."""
    figures = take_turns(ways, rounds)
    medians = {name: statistics.median(those) for name, those in figures.items()}
    for name, those in figures.items():
        print(f"  {name:<28} {medians[name]:>12,.4g} {unit:<6} ({min(those):,.4g} to {max(those):,.4g})")
    return medians


def rate(nodes: Weft | Moat, name: str, mode: str, count: int, at_once: int = 1) -> Callable[[], float]:
    return lambda: nodes.load(name, mode, count, at_once)["per_second"]


# The measures


def sets(options: Options) -> list[Bar]:
    """One open request, in memory and on disk."""
    with ExitStack() as stack:
        place = folder(stack, is_on_disk=True)
        ways = {
            "weft, tmpfs": rate(one_node(stack, is_on_disk=False), "a", "set", SETS),
            "moat-kv": rate(real(stack, 1), "n1", "set", SETS // THEIRS),
            "weft, disk": rate(one_node(stack, is_on_disk=True), "a", "set", SETS),
            "bare fdatasync": lambda: bare_rate(place),
        }
        seen = compared(ways, options.rounds, "/s")
    reachable = 1 / (1 / seen["weft, tmpfs"] + 1 / seen["bare fdatasync"])
    by_moat = 1 / (1 / (10 * seen["moat-kv"]) + 1 / seen["bare fdatasync"])
    print(f"  on disk of what tmpfs and the disk allow: {seen['weft, disk'] / reachable:.2f}")
    return [
        Bar("sets, tmpfs, of moat-kv", seen["weft, tmpfs"], seen["moat-kv"], 10),
        Bar("sets, disk, of 1/(1/10 moat-kv + 1/F)", seen["weft, disk"], by_moat, 0.7),
    ]


def sets_at_once(options: Options) -> list[Bar]:
    """A hundred open requests on one connection, on disk."""
    with ExitStack() as stack:
        ways = {
            "weft, disk": rate(one_node(stack, is_on_disk=True), "a", "set", SETS_AT_ONCE, 100),
            "moat-kv": rate(real(stack, 1), "n1", "set", SETS_AT_ONCE // THEIRS, 100),
        }
        seen = compared(ways, options.rounds, "/s")
    return [Bar("sets, 100 open, disk, of moat-kv", seen["weft, disk"], seen["moat-kv"], 10)]


def gets(options: Options) -> list[Bar]:
    """One open request."""
    with ExitStack() as stack:
        ways = {
            "weft": rate(one_node(stack, is_on_disk=True), "a", "get", GETS),
            "moat-kv": rate(real(stack, 1), "n1", "get", GETS // THEIRS),
        }
        seen = compared(ways, options.rounds, "/s")
    return [Bar("gets of moat-kv", seen["weft"], seen["moat-kv"], 4)]


class Replicated(NamedTuple):
    whole_s: float
    lag_s: float


def replicated(nodes: Weft | Moat, first: str, second: str, share: int = 1) -> Replicated:
    """Write at one node, and wait until the other one has it all: since the first write, and since the last answer.

    `share`: only so much of it is written, and the time counts as many times.
    """
    with Clock(nodes.client(first)) as here, Clock(nodes.client(second)) as there:
        said = nodes.load(first, "set", REPLICATED // share, 100)
        tick = here.tick(first)
        until(lambda: there.tick(first) >= tick, "replication", 0.002)
        ended = time.monotonic()
    return Replicated(share * (ended - said["began"]), max(0.0, ended - said["ended"]))


def replication(options: Options) -> list[Bar]:
    """10,000 writes, 100 open, until complete on the second node; and how long after the last answer that is."""
    with ExitStack() as stack:
        place = folder(stack, is_on_disk=False)
        mesh = stack.enter_context(Weft(place / "mesh", ["a", "b"]))
        mesh.start("a", "b")
        broker = stack.enter_context(mosquitto(place / "mosquitto"))
        brokered = stack.enter_context(Weft(place / "brokered", ["a", "b"], broker))
        brokered.start("a", "b")
        peers = real(stack, 2)
        lags: dict[str, list[float]] = {}

        def timed(who: str, nodes: Weft | Moat, first: str, second: str, share: int = 1) -> Callable[[], float]:
            def once() -> float:
                seen = replicated(nodes, first, second, share)
                lags.setdefault(who, []).append(seen.lag_s)
                return seen.whole_s

            return once

        ways = {
            "weft, mesh": timed("mesh", mesh, "a", "b"),
            "weft, mosquitto": timed("mosquitto", brokered, "a", "b"),
            "moat-kv, mosquitto": timed("moat", peers, "n1", "n2", THEIRS),
        }
        seen = compared(ways, min(options.rounds, 3), "s")
    lag = {who: statistics.median(those) for who, those in lags.items()}
    print("  lag after the last answer: " + ", ".join(f"{who} {1e3 * those:.1f} ms" for who, those in lag.items()))
    return [
        Bar("mesh of moat-kv", seen["weft, mesh"], seen["moat-kv, mosquitto"], 1 / 10, is_at_most=True),
        Bar("mosquitto of moat-kv", seen["weft, mosquitto"], seen["moat-kv, mosquitto"], 1 / 5, is_at_most=True),
        Bar("lag, mesh, of 1/10 of moat-kv or 20 ms", lag["mesh"], max(0.02, lag["moat"] / 10), 1, is_at_most=True),
    ]


def watch(options: Options) -> list[Bar]:
    """From the order to set until a watcher at the same node has it: the median."""
    with ExitStack() as stack:
        nodes = one_node(stack, is_on_disk=True)
        etcd = stack.enter_context(Etcd(folder(stack, is_on_disk=True), 1))
        ways = {
            "weft": lambda: 1e6 * nodes.load("a", "watch", WATCHED, 1)["p50"],
            "etcd": lambda: 1e6 * etcd.load("watch", WATCHED, 1)["p50"],
        }
        seen = compared(ways, options.rounds, "us")
    return [Bar("set to watcher of etcd", seen["weft"], seen["etcd"], 1, is_at_most=True)]


def join(options: Options) -> list[Bar]:
    """A node, a member, that has nothing, until it has all; from the start of its process."""
    count = options.entries
    with ExitStack() as stack:
        nodes = stack.enter_context(Weft(folder(stack, is_on_disk=True) / "weft", ["a", "b"]))
        nodes.start("a")
        nodes.load("a", "set", count, 500)
        server = forget_high(nodes.pid("a"))
        spent, began = cpu_s(nodes.pid("a")), time.monotonic()
        nodes.begin("b")
        until(lambda: nodes.store("b").get("entries", 0) > count, "joined", 0.1)
        until(lambda: nodes.serves("b"), "serves", 0.1)
        ours = time.monotonic() - began
        pids = nodes.pid("a"), nodes.pid("b")
        print(
            f"  weft {ours:.1f} s; CPU {cpu_s(pids[0]) - spent:.1f} + {cpu_s(pids[1]):.1f} s; server {server:.0f} MB, at most"
            f" {resident_mb(pids[0], 'VmHWM'):.0f}; joiner at most {resident_mb(pids[1], 'VmHWM'):.0f},"
            f" {resident_mb(pids[1]):.0f} in the end"
        )
        joiner = resident_mb(pids[1], "VmHWM") - resident_mb(pids[1])
        server = resident_mb(pids[0], "VmHWM") - server
    with ExitStack() as stack:
        etcd = stack.enter_context(Etcd(folder(stack, is_on_disk=True), 1))
        etcd.load("fill", count, 1)
        began = time.monotonic()
        etcd.join()
        until(lambda: etcd.count(1) >= count, "etcd's member", 0.1)
        theirs = time.monotonic() - began
    print(f"  etcd {theirs:.1f} s")
    return [
        Bar("join, seconds of 20", ours, 20, 1, is_at_most=True),
        Bar("join of etcd", ours, theirs, 4, is_at_most=True),
        Bar("server's growth of 64 MB", server, 64, 1, is_at_most=True),
        Bar("joiner's peak over its end, of 64 MB", joiner, 64, 1, is_at_most=True),
    ]


def restart(options: Options) -> list[Bar]:
    """A node that was killed, until it serves again: from its journal, then from a snapshot; memory of an entry."""
    count = options.entries
    with ExitStack() as stack:
        nodes = one_node(stack, is_on_disk=True)
        empty = nodes.memory_mb("a")
        nodes.load("a", "set", count, 500)
        print(f"  filled: {(nodes.memory_mb('a') - empty) * 1024 / count:.2f} kB of memory an entry")
        took, memory = list[float](), 0.0
        for is_kill in (True, False, True):
            nodes.end("a", is_kill=is_kill)
            began = time.monotonic()
            nodes.begin("a")
            until(lambda: nodes.store("a").get("entries", 0) > count, "restarted", 0.05)
            took.append(time.monotonic() - began)
            memory = (nodes.memory_mb("a") - empty) * 1024 / count
            print(f"  restarted in {took[-1]:.1f} s; {memory:.2f} kB of memory an entry")
    return [
        Bar("restart, of 15 s", statistics.median(took), 15, 1, is_at_most=True),
        Bar("memory of an entry, of 1 kB", memory, 1, 1, is_at_most=True),
    ]


def heal(options: Options) -> list[Bar]:
    """Of three nodes one is away while the others write; from its return until it has all."""
    count = options.entries
    with ExitStack() as stack:
        nodes = stack.enter_context(Weft(folder(stack, is_on_disk=True) / "weft", ["a", "b", "c"]))
        nodes.start("a", "b", "c")
        nodes.end("c", is_kill=True)
        nodes.load("a", "set", count, 500)
        began = time.monotonic()
        nodes.begin("c")
        until(lambda: nodes.store("c").get("entries", 0) > count, "healed", 0.05)
        seconds = time.monotonic() - began
    print(f"  {count:,} missed changes: {seconds:.1f} s, {count / seconds:,.0f}/s, the start of the process included")
    return []


def idle(_: Options) -> list[Bar]:
    """What three nodes cost that have nothing to do."""
    with ExitStack() as stack:
        nodes = stack.enter_context(Weft(folder(stack, is_on_disk=False) / "weft", ["a", "b", "c"]))
        nodes.start("a", "b", "c")
        time.sleep(5)
        before = [cpu_s(nodes.pid(name)) for name in nodes.members]
        time.sleep(IDLE_S)
        shares = [(cpu_s(nodes.pid(name)) - was) / IDLE_S for name, was in zip(nodes.members, before, strict=True)]
    print("  shares of a core: " + ", ".join(f"{100 * share:.2f} %" for share in shares))
    return [Bar("idle, of 0.5 % of a core, clock 1 s", max(shares), 0.005, 1, is_at_most=True)]


def files(_: Options) -> list[Bar]:
    """A file of 100,000 entries: loaded as new at a node on disk, loaded again, and saved; each by the command."""
    count = FILED
    with ExitStack() as stack:
        place = folder(stack, is_on_disk=True)
        nodes = one_node(stack, is_on_disk=True)
        writer, whole = Writer(), place / "whole"
        whole.write_bytes(b"".join(writer.entry(entry) for entry in filed(count)))
        took: dict[str, float] = {}
        for what, file in {"load": whole, "load again": whole, "save": place / "saved"}.items():
            spent, asked, began = cpu_s(nodes.pid("a")), ended_s(), time.monotonic()
            words = ["store", what.split()[0], str(file), "--node", f"127.0.0.1:{nodes.client('a')}"]
            command = [sys.executable, "-m", "weft.cli.main", *words]
            subprocess.run(command, check=True, capture_output=True, timeout=300)
            took[what] = time.monotonic() - began
            node, client = cpu_s(nodes.pid("a")) - spent, ended_s() - asked
            print(f"  {what} {took[what]:.1f} s; CPU of the node {node:.1f} s, of the command {client:.1f} s")
    return [Bar("load of 100,000 entries, of 10 s", took["load"], 10, 1, is_at_most=True)]


def ended_s() -> float:
    """Seconds of a processor of all processes that ended here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def filed(count: int) -> Iterator[Event]:
    """Entries of a saved store: four elements and 40 characters each."""
    value = pack("x" * 40)
    for number in range(count):
        path = ("house", f"room{number % 1_000}", f"sensor{number // 1_000}", "value")
        yield Event(Chain((("n1", number + 1),)), number + 1, path, value)


class Writes(NamedTuple):
    """So many entries by so many clients, each with its own connection and one request open: by a node's load, by etcd's."""

    what: str
    entries: int
    clients: int
    ours: str
    theirs: str
    times: float
    """The bar: how many times etcd's rate."""


WRITES: Final = (
    Writes("1 client", 500, 1, "majority", "clients", 1),
    Writes("100 clients", 5_000, 100, "majority", "clients", 3),
    Writes("10 clients, batches of 100", 50_000, 10, "batches", "txns", 3),
)


class Trio(NamedTuple):
    """Three members: how they are loaded, and what each has spent since its start."""

    load: Callable[[Writes], Said]
    spent: Callable[[], list[dict[str, float]]]


def three_nodes(stack: ExitStack) -> Trio:
    nodes = stack.enter_context(Weft(folder(stack, is_on_disk=True) / "weft", [*MEMBERS]))
    nodes.start(*MEMBERS)
    for name in MEMBERS:
        nodes.load(name, "set", 1, 1)  # who has never changed anything is no member whose word is asked for
    with Clock(nodes.client("a")) as clock:
        until(lambda: all(clock.tick(name) > 0 for name in MEMBERS), "three members")

    def spent(name: str) -> dict[str, float]:
        turns, messages = nodes.timing(name, "turn_messages")
        syncs, _ = nodes.timing(name, "sync_seconds")
        return {"CPU us": 1e6 * cpu_s(nodes.pid(name)), "syncs": syncs, "turns": turns, "messages": messages}

    return Trio(
        lambda writes: nodes.load("a", writes.ours, writes.entries, writes.clients),
        lambda: [spent(name) for name in MEMBERS],
    )


def three_of_etcd(stack: ExitStack) -> Trio:
    """Loaded at the member that leads, so that it has to hand no request on."""
    etcd = stack.enter_context(Etcd(folder(stack, is_on_disk=True), len(MEMBERS)))
    leader = etcd.leader
    order = sorted(range(etcd.members), key=lambda number: number != leader)

    def spent(number: int) -> dict[str, float]:
        return {"CPU us": 1e6 * cpu_s(etcd.processes[number].pid), "syncs": etcd.syncs(number)}

    return Trio(
        lambda writes: etcd.load(writes.theirs, writes.entries, writes.clients, leader),
        lambda: [spent(number) for number in order],
    )


def written(writes: Writes, sides: dict[str, Trio], rounds: int) -> Bar:
    """Both in turns; rate, latency of a request, and what an entry costs at each member, medians."""
    seen: dict[str, list[Said]] = {name: [] for name in sides}

    def once(name: str) -> float:
        side = sides[name]
        before = side.spent()
        said = side.load(writes)
        for number, (was, now) in enumerate(zip(before, side.spent(), strict=True)):
            said |= {f"{what} {number}": (now[what] - was[what]) / writes.entries for what in now}
        seen[name].append(said)
        return said["per_second"]

    print(f"  {writes.what}:")
    medians = compared({name: partial(once, name) for name in sides}, rounds, "/s")
    for name, those in seen.items():
        middle = {what: statistics.median(one[what] for one in those) for what in those[0]}
        costs: dict[str, list[str]] = {}
        for what, each in middle.items():
            if what[-2:] in (" 0", " 1", " 2"):
                costs.setdefault(what[:-2], []).append(f"{each:.3g}")
        told = "; ".join(f"{what} {' + '.join(each)}" for what, each in costs.items())
        print(f"  {name}: p50 {1e3 * middle['p50']:.2f} ms, p99 {1e3 * middle['p99']:.2f} ms; of an entry {told}")
    return Bar(f"durable at a majority, {writes.what}, of etcd", medians["weft"], medians["etcd"], writes.times)


def majority(options: Options) -> list[Bar]:
    """Durable at a majority of three members, on disk: one client, a hundred, and batches, beside etcd at its leader."""
    with ExitStack() as stack:
        place = folder(stack, is_on_disk=True)
        sides = {"weft": three_nodes(stack), "etcd": three_of_etcd(stack)}
        bars = [written(writes, sides, options.rounds) for writes in WRITES]
        print(f"  a bare write and fdatasync: {1e6 / bare_rate(place):,.0f} us")
    return bars


MEASURES: Final[dict[str, Callable[[Options], list[Bar]]]] = {
    "sets": sets,
    "sets_at_once": sets_at_once,
    "gets": gets,
    "replication": replication,
    "watch": watch,
    "join": join,
    "heal": heal,
    "restart": restart,
    "majority": majority,
    "idle": idle,
    "files": files,
}
ALONE: Final = frozenset({"files", "idle"})
"""Measures that have no peer."""


def show(name: str, measure: Callable[[Any], list[Bar]], options: Any) -> None:
    """Take one measure and print what came of it, also if nothing did."""
    print(f"{name}: {(measure.__doc__ or '').splitlines()[0]} ({load()})", flush=True)
    try:
        for bar in measure(options):
            print(f"  {bar}", flush=True)
    except (TimeoutError, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"  FAILED: {error}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entries", type=int, default=100_000)
    given = parser.parse_args()
    if unknown := set(given.names) - set(MEASURES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    programs.end_in_order()
    if not given.names or set(given.names) - ALONE:
        programs.demand("mosquitto", "etcd", "etcdload")
        if not MOAT.exists():
            raise SystemExit("not installed: MoaT-KV; scripts/bench-install brings it")
    options = Options(given.rounds, given.entries)
    for name in given.names or MEASURES:
        show(name, MEASURES[name], options)


if __name__ == "__main__":
    main()
