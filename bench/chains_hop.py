"""A durable hop: messages of 256 bytes from a child to its parent, both whole nodes, nothing acknowledged before it is synced.

    scripts/bench-install
    .venv/bin/python -m bench.chains_hop [--messages 40000] [--rounds 5]

A program at the child sends within its credit of 1,024, 64 to a multipart; the child syncs each message before it says
`spooled`, the parent, whose `journal` filter keeps it, before it acknowledges. The rate counts what the child knows to be
safe at its parent, and in the end they are counted in the parent's journal. Beside it in the same run: JetStream published to with message ids, mosquitto with QoS 1,
and bare append and fdatasync in groups of 64. The brokers do not sync what they acknowledge.
"""

import argparse
import asyncio
import contextlib
import functools
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bench.peers.client import Client, Sender
from bench.peers.loads import KIND
from bench.peers.nodes import JOURNAL, Nodes
from bench.peers.programs import demand, demand_modules, end_in_order, running
from bench.peers.rounds import Goal, show, take_turns
from bench.sensor import cpu_seconds
from weft.base.records import Stream, StreamRecord
from weft.shell.journal import JournalReader

SIZE: Final = 256
GROUP: Final = 64
NATS, MOSQUITTO = 14_222, 18_831
PENDING: Final = 2_000
INFLIGHT: Final = 1_000
PATIENCE_S: Final = 120.0
RAW, WEFT, JETSTREAM, QOS = "raw append + fdatasync", "weft hop", "JetStream", "mosquitto QoS 1"
MOSQUITTO_CONF: Final = """listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {place}/
autosave_interval 1
max_inflight_messages 1000
max_queued_messages 0
"""


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


async def _publish(count: int) -> float:
    import nats

    payload = os.urandom(SIZE)
    connection = await nats.connect(f"nats://127.0.0.1:{NATS}")
    stream = connection.jetstream(publish_async_max_pending=PENDING)
    name = f"bench{time.monotonic_ns()}"
    await stream.add_stream(name=name, subjects=[name])
    began = time.perf_counter()
    futures = [
        await stream.publish_async(name, payload, headers={"Nats-Msg-Id": f"{name}-{number}"})
        for number in range(count)
    ]
    await asyncio.wait_for(asyncio.gather(*futures), PATIENCE_S)
    spent = time.perf_counter() - began
    await stream.delete_stream(name)
    await connection.close()
    return count / spent


def jetstream(count: int) -> float:
    """Acknowledged messages a second of JetStream, published to with ids and without waiting for each."""
    return asyncio.run(_publish(count))


def mosquitto(count: int) -> float:
    """Acknowledged publishes a second with QoS 1."""
    from paho.mqtt.client import Client as Publisher
    from paho.mqtt.enums import CallbackAPIVersion

    payload, left, is_done = os.urandom(SIZE), count, threading.Event()

    def on_publish(*_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            is_done.set()

    client = Publisher(CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(INFLIGHT)
    client.max_queued_messages_set(0)
    client.on_publish = on_publish
    client.connect("127.0.0.1", MOSQUITTO)
    client.loop_start()
    began = time.perf_counter()
    for _ in range(count):
        client.publish("bench", payload, qos=1)
    if not is_done.wait(PATIENCE_S):
        raise TimeoutError(f"mosquitto: {left} publishes without an answer")
    spent = time.perf_counter() - began
    client.disconnect()
    client.loop_stop()
    return count / spent


@contextlib.contextmanager
def brokers(place: Path) -> Iterator[None]:
    """Both, on loopback, in folders of their own."""
    folders = [place / "nats", place / "mosquitto"]
    for folder in folders:
        folder.mkdir()
    (folders[1] / "m.conf").write_text(MOSQUITTO_CONF.format(port=MOSQUITTO, place=folders[1]))
    folders[1].chmod(0o777)  # as root it becomes the user nobody
    server = ["nats-server", "-a", "127.0.0.1", "-p", str(NATS), "-js", "-sd", str(folders[0])]
    with running(server, folders[0], NATS), running(["mosquitto", "-c", "m.conf"], folders[1], MOSQUITTO):
        yield


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
            sender = Sender(client, KIND, os.urandom(SIZE), to=["PARENTSOF"])
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
    with tempfile.TemporaryDirectory() as folder, brokers(Path(folder)):
        with Nodes(Path(folder), {"root": "", "child": "root"}, {"root": JOURNAL}) as nodes:
            hop = Hop(nodes)
            ways: dict[str, Callable[[], float]] = {
                RAW: functools.partial(raw, Path(folder), count),
                WEFT: functools.partial(hop.run, count),
                JETSTREAM: functools.partial(jetstream, count),
                QOS: functools.partial(mosquitto, count // 4),
            }
            figures = take_turns(ways, options.rounds)
        hop.check()
    goals = [Goal(WEFT, JETSTREAM, 1.0), Goal(WEFT, QOS, 2.0), Goal(WEFT, RAW, 0.20)]
    show("P4: a durable hop, 256 bytes", figures, "messages/s", RAW, goals)
    for name in hop.nodes.parents:
        print(f"{name}: {statistics.median(one[name] for one in hop.cpu):.0f} us of CPU a message")


if __name__ == "__main__":
    main()
