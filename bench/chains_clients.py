"""From a program through its node to another program that reads: what the node adds to two bare sockets.

    .venv/bin/python -m bench.chains_clients [--messages 200000] [--rounds 5]

Messages of 256 bytes, one process sending within its credit, one node, one read-only client in a process of its own,
over ipc; the reader counts. Beside it in the same run: DEALER to ROUTER with the same two frames, two processes. Load and
reader are pyzmq and msgspec alone; Weft's own client library has lines of its own.
"""

import argparse
import functools
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.peers.loads import flow
from bench.peers.nodes import Nodes
from bench.peers.programs import end_in_order
from bench.peers.rounds import Goal, show, take_turns
from bench.sensor import cpu_seconds

BATCH: Final = 64
RAW, BATCHES, SINGLY = "raw DEALER to ROUTER", "batches of 64", "singly"
UNASKED = "batches of 64, no status wanted"
LIBRARY_READS, LIBRARY_SENDS = "library reads, batches of 64", "library sends, 64 at once"


def raw(place: Path, count: int) -> float:
    return flow("raw-read", "raw-send", f"ipc://{place / 'raw.sock'}", count).rate


class Road:
    """Through a node, in one of several ways; and what the node spends."""

    def __init__(self, nodes: Nodes, count: int, batch: int, reads: str = "read", sends: str = "send") -> None:
        self.nodes, self.count, self.batch = nodes, count, batch
        self.reads, self.sends = reads, sends
        self.cpu: list[float] = []
        """Microseconds for each message, of each run."""

    def run(self) -> float:
        """Messages a second."""
        pid = self.nodes.pid("root")
        before = cpu_seconds(pid)
        seen = flow(self.reads, self.sends, self.nodes.endpoint("root"), self.count, self.batch)
        self.cpu.append(1e6 * (cpu_seconds(pid) - before) / self.count)
        if seen.lost:
            print(f"# {seen.lost} of {self.count} copies were discarded, the reader being slower", file=sys.stderr)
        return seen.rate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    end_in_order()
    few = options.messages // 4 // BATCH * BATCH
    count = 4 * few
    with tempfile.TemporaryDirectory() as folder, Nodes(Path(folder), {"root": ""}) as nodes:
        nodes.start("root")
        roads = {
            BATCHES: Road(nodes, count, BATCH),
            UNASKED: Road(nodes, count, BATCH, sends="send-only"),
            SINGLY: Road(nodes, count // 2, 1),
            LIBRARY_READS: Road(nodes, few, BATCH, reads="library-read"),
            LIBRARY_SENDS: Road(nodes, few, BATCH, sends="library-send"),
        }
        bare = functools.partial(raw, Path(folder), count)
        figures = take_turns({RAW: bare, **{name: road.run for name, road in roads.items()}}, options.rounds)
    goals = [Goal(BATCHES, RAW, 0.60), Goal(SINGLY, RAW, 0.25)]
    show("P2: program, node, reading program, 256 bytes over ipc", figures, "messages/s", RAW, goals)
    for name, road in roads.items():
        print(f"node, {name}: {statistics.median(road.cpu):.0f} us of CPU a message")


if __name__ == "__main__":
    main()
