"""A durable hop: messages of 256 bytes from a child to its parent, both whole nodes, nothing acknowledged before it is synced.

    scripts/bench-install
    .venv/bin/python -m bench.chains_hop [--messages 40000] [--rounds 5]

A program at the child sends within its credit of 1,024, 64 to a multipart; the child syncs each message before it says
`spooled`, the parent, whose `journal` filter keeps it, before it acknowledges. The rate counts what the child knows to be
safe at its parent, and in the end they are counted in the parent's journal. Beside it in the same run: JetStream published to with message ids,
as it comes and with `sync_interval: always`, mosquitto with QoS 1, and bare append and fdatasync in groups of 64. Of the
brokers only that second JetStream syncs what it acknowledges.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from bench.peers import brokers
from bench.peers.client import Client, Sender
from bench.peers.loads import KIND
from bench.peers.nodes import JOURNAL, Nodes
from bench.peers.programs import demand, demand_modules, end_in_order
from bench.peers.rounds import Goal, show, take_turns
from bench.sensor import cpu_seconds
from weft.base.records import Stream, StreamRecord
from weft.shell.journal import JournalReader

SIZE: Final = 256
GROUP: Final = 64
PAYLOAD: Final = os.urandom(SIZE)
NATS, NATS_SYNCED, MOSQUITTO = 14_222, 14_223, 18_831
RAW, WEFT, JETSTREAM, QOS = "raw append + fdatasync", "weft hop", "JetStream", "mosquitto QoS 1"
SYNCED: Final = "JetStream, sync always"


# The peers


def raw(place: Path, count: int) -> float:
    """Messages a second of nothing but writing and syncing."""
    group = os.urandom(SIZE * GROUP)
    file = os.open(place / "raw", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    began = time.perf_counter()
    for _ in range(count // GROUP):
        os.write(file, group)
        os.fdatasync(file)
    spent = time.perf_counter() - began
    os.close(file)
    return count // GROUP * GROUP / spent


def payload() -> bytes:
    return PAYLOAD


# Ours


class Hop:
    """A child and its parent, and a program that sends at the child."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        for name in nodes.parents:
            nodes.start(name)
        nodes.until(lambda: nodes.counters("child", "carrier").get("state") == "OPEN", "a link to the parent")
        self.cpu: list[dict[str, float]] = []
        self.sent = 0

    def run(self, count: int) -> float:
        """Messages a second until all of them are safe at the parent."""
        pids = {name: self.nodes.pid(name) for name in self.nodes.parents}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        with Client(self.nodes.endpoint("child"), "load") as client:
            sender = Sender(client, KIND, PAYLOAD, to=["PARENTSOF"])
            goal = self._safe + count
            began = time.perf_counter()
            sender.send(count, GROUP)
            self.nodes.until(lambda: self._safe >= goal, "all is safe")
            spent = time.perf_counter() - began
        assert not sender.refused, sender.refused
        self.sent += count
        self.cpu.append({name: 1e6 * (cpu_seconds(pid) - before[name]) / count for name, pid in pids.items()})
        return count / spent

    @property
    def _safe(self) -> int:
        return int(self.nodes.counters("child", "carrier")["safe"])

    def check(self) -> None:
        """All of them stand in the parent's journal, each once."""
        found = [
            record.sequence
            for _, record in JournalReader(self.nodes.place / "root" / "journal").entries()
            if isinstance(record, StreamRecord) and record.stream == Stream.MESSAGES
        ]
        assert len(found) == len(set(found)) == self.sent, f"{len(found)} of {self.sent} in the journal"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    end_in_order()
    count = options.messages // GROUP * GROUP
    demand("nats-server", "mosquitto")
    demand_modules("nats", "paho.mqtt")
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(brokers.nats(place / "nats", NATS))
        stack.enter_context(brokers.nats(place / "synced", NATS_SYNCED, is_synced=True))
        stack.enter_context(brokers.mosquitto(place / "mosquitto", MOSQUITTO))
        with Nodes(place, {"root": "", "child": "root"}, {"root": JOURNAL}) as nodes:
            hop = Hop(nodes)
            ways: dict[str, Callable[[], float]] = {
                RAW: partial(raw, place, count),
                WEFT: partial(hop.run, count),
                JETSTREAM: partial(brokers.to_jetstream, NATS, count, payload),
                SYNCED: partial(brokers.to_jetstream, NATS_SYNCED, count // 4, payload),
                QOS: partial(brokers.to_mosquitto, MOSQUITTO, count // 4, payload),
            }
            figures = take_turns(ways, options.rounds)
        hop.check()
    goals = [Goal(WEFT, JETSTREAM, 2.0), Goal(WEFT, SYNCED, 5.0), Goal(WEFT, QOS, 6.0), Goal(WEFT, RAW, 0.30)]
    show("P4: a durable hop, 256 bytes", figures, "messages/s", RAW, goals)
    for name in hop.nodes.parents:
        print(f"{name}: {statistics.median(one[name] for one in hop.cpu):.0f} us of CPU a message")


if __name__ == "__main__":
    main()
