"""From a program through its node to another program that reads: what the node adds to two bare sockets.

    .venv/bin/python -m bench.chains_clients [--messages 100000] [--rounds 5]

Messages of 256 bytes, one process sending within its credit, one node, one read-only client in a process of its own,
over ipc; the reader counts. Beside it in the same run: DEALER to ROUTER with the same two frames, two processes. Load and
reader are pyzmq and msgspec alone; Weft's own client library has lines of its own.
"""

import argparse
import functools
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.peers.loads import flow
from bench.peers.nodes import Nodes
from bench.peers.rounds import Goal, show, take_turns

BATCH: Final = 64
RAW, BATCHES, SINGLY = "raw DEALER to ROUTER", "batches of 64", "singly"
LIBRARY_READS, LIBRARY_SENDS = "library reads, batches of 64", "library sends, 64 at once"


def raw(place: Path, count: int) -> float:
    return flow("raw-read", "raw-send", f"ipc://{place / 'raw.sock'}", count).rate


def ours(endpoint: str, count: int, batch: int, reads: str = "read", sends: str = "send") -> float:
    seen = flow(reads, sends, endpoint, count, batch)
    if seen.lost:
        print(f"# {seen.lost} of {count} copies were discarded, the reader being slower", file=sys.stderr)
    return seen.rate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    count = options.messages // BATCH * BATCH
    with tempfile.TemporaryDirectory() as folder, Nodes(Path(folder), {"root": ""}) as nodes:
        nodes.start("root")
        endpoint = nodes.endpoint("root")
        ways = {
            RAW: functools.partial(raw, Path(folder), count),
            BATCHES: functools.partial(ours, endpoint, count, BATCH),
            SINGLY: functools.partial(ours, endpoint, count // 2, 1),
            LIBRARY_READS: functools.partial(ours, endpoint, count // 4, BATCH, reads="library-read"),
            LIBRARY_SENDS: functools.partial(ours, endpoint, count // 4, BATCH, sends="library-send"),
        }
        figures = take_turns(ways, options.rounds)
    goals = [Goal(BATCHES, RAW, 0.60), Goal(SINGLY, RAW, 0.25)]
    show("P2: program, node, reading program, 256 bytes over ipc", figures, "messages/s", RAW, goals)


if __name__ == "__main__":
    main()
