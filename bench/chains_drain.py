"""After an outage: how fast a child that has spooled for hours starts again, and hands its backlog over.

    .venv/bin/python -m bench.chains_drain [--messages 200000] [--rounds 3]

A program at a child whose parent is away sends messages of 256 bytes; each is synced. Then the child is killed and starts
anew, several times, beside a child without a spool: the difference of the two, in CPU time, is what reading the spool
takes; a snapshot of the journal, one in every four segments, spares what stands before it. At last the parent appears, and
the time runs from the first message that is safe there to the last; its `journal` filter keeps them. `--messages 1440000`
is the whole night: four hours at 100 a second. The goals are absolute; there is no peer.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.peers.client import Client, Sender
from bench.peers.loads import KIND, SIZE
from bench.peers.nodes import JOURNAL, Nodes
from bench.peers.programs import end_in_order
from bench.peers.rounds import Figures, middle, show
from bench.sensor import cpu_seconds

GROUP: Final = 64
MB: Final = 1e6
DRAIN_GOAL: Final = 20_000.0
READ_GOAL: Final = 200.0
PARENTS: Final = {"root": "", "child": "root"}


def started(nodes: Nodes, name: str) -> float:
    """Seconds of processor from starting a node to its welcome to a client."""
    nodes.start(name)
    with Client(nodes.endpoint(name), "clock"):
        return cpu_seconds(nodes.pid(name))


def size_of(folder: Path) -> int:
    """Bytes of a journal's segments."""
    return sum(path.stat().st_size for path in folder.glob("*.seg"))


def spool(nodes: Nodes, count: int) -> float:
    """Let the child, without its parent, take so many messages; a second."""
    began = time.perf_counter()
    with Client(nodes.endpoint("child"), "load") as client:
        sender = Sender(client, KIND, os.urandom(SIZE), to=["PARENTSOF"])
        sender.send(count, GROUP)
    assert not sender.refused, sender.refused
    return count / (time.perf_counter() - began)


def drain(nodes: Nodes, count: int) -> float:
    """Let the parent appear; messages a second from the first that is safe to the last."""

    def safe() -> int:
        return int(nodes.counters("child", "carrier")["safe"])

    nodes.start("root")
    nodes.until(lambda: safe() > 0, "the first is safe", look_s=0.005)
    before, began = safe(), time.perf_counter()
    nodes.until(lambda: safe() >= count, "all is safe", look_s=0.05)
    return (count - before) / (time.perf_counter() - began)


def one_round(place: Path, count: int, starts: int, figures: Figures) -> None:
    """From an empty child to an empty child."""
    with Nodes(place, PARENTS, {"root": JOURNAL}) as nodes:
        empty = [started(nodes, "child")]
        for _ in range(starts):
            nodes.stop("child")
            empty.append(started(nodes, "child"))
        spooled = spool(nodes, count)
        size = size_of(place / "child" / "journal")
        full = []
        for _ in range(starts):
            nodes.kill("child")
            full.append(started(nodes, "child"))
        kept = nodes.counters("child", "carrier")["spool_records"]
        assert kept >= count, f"{kept} of {count} in the spool"
        doubt = max(empty[1:]) - min(empty[1:])  # a difference below it is none
        reading = max(statistics.median(full) - statistics.median(empty[1:]), doubt, 1e-3)
        found = {
            "spooled a second": spooled,
            "spool, MB": size / MB,
            "start without a spool, s of CPU": statistics.median(empty[1:]),
            "start with the spool, s of CPU": statistics.median(full),
            "read at a start, MB/s at least": size / MB / reading,
            "drained a second": drain(nodes, count),
        }
        for name, value in found.items():
            figures.setdefault(name, []).append(value)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=3)
    options = parser.parse_args()
    end_in_order()
    figures: Figures = {}
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            one_round(Path(folder), options.messages // GROUP * GROUP, options.starts, figures)
        print(f"# round {number + 1}: {figures['drained a second'][-1]:,.0f} a second", flush=True)
    show(f"P7: a backlog of {options.messages:,} messages of 256 bytes", figures, "of the child", "")
    for name, goal in (("drained a second", DRAIN_GOAL), ("read at a start, MB/s at least", READ_GOAL)):
        word = "met" if middle(figures, name) >= goal else "MISSED"
        print(f"{word}: {name}: {middle(figures, name):,.0f}, goal ≥ {goal:,.0f}")


if __name__ == "__main__":
    main()
