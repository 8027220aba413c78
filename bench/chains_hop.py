"""A durable hop: messages of 256 bytes from a child to its parent, both whole nodes, nothing acknowledged before it is synced.

    scripts/bench-install
    .venv/bin/python -m bench.chains_hop [--messages 40000] [--rounds 5]

A program at the child sends within its credit of 1,024; the child syncs each message before it says `spooled`, the
parent before it acknowledges, and once more nobody has to: its `journal` keeps them. The rate counts what the child
knows to be safe at its parent. Beside it in the same run: JetStream published to with message ids, mosquitto with QoS 1,
and bare append and fdatasync in groups of 64. The brokers do not sync what they acknowledge.
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.peers.programs import demand, demand_modules, running
from bench.peers.rounds import Goal, show, take_turns

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
    from paho.mqtt import client as mqtt

    payload, left, is_done = os.urandom(SIZE), count, threading.Event()

    def on_publish(*_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            is_done.set()

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
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
