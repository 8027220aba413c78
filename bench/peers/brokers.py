"""Brokers that take messages for good: JetStream, synced or as it comes, and mosquitto with QoS 1; on loopback.

Each is published to by its own client in Python, within this process, and its acknowledgements are waited for. JetStream
as it comes, and mosquitto, do not sync what they acknowledge.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bench.peers.programs import running

PENDING: Final = 2_000
INFLIGHT: Final = 1_000
PATIENCE_S: Final = 120.0
NATS_CONF: Final = """listen: "127.0.0.1:{port}"
jetstream {{
    store_dir: "{place}"
    {more}
}}
"""
ALWAYS: Final = "sync_interval: always"
MOSQUITTO_CONF: Final = """listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {place}/
autosave_interval 1
max_inflight_messages 1000
max_queued_messages 0
"""
Make = Callable[[], bytes]
"""Makes the payload of a message."""


@contextlib.contextmanager
def nats(place: Path, port: int, *, is_synced: bool = False) -> Iterator[int]:
    """A server with JetStream, in a new folder; its process. `is_synced`: it syncs before it acknowledges."""
    place.mkdir()
    (place / "n.conf").write_text(NATS_CONF.format(port=port, place=place, more=ALWAYS if is_synced else ""))
    with running(["nats-server", "-c", "n.conf"], place, port) as process:
        yield process.pid


@contextlib.contextmanager
def mosquitto(place: Path, port: int) -> Iterator[int]:
    """A broker in a new folder; its process."""
    place.mkdir()
    (place / "m.conf").write_text(MOSQUITTO_CONF.format(port=port, place=place))
    place.chmod(0o777)  # as root it becomes the user nobody
    with running(["mosquitto", "-c", "m.conf"], place, port) as process:
        yield process.pid


async def _publish(port: int, count: int, make: Make) -> float:
    import nats as client

    connection = await client.connect(f"nats://127.0.0.1:{port}")
    stream = connection.jetstream(publish_async_max_pending=PENDING)
    name = f"bench{time.monotonic_ns()}"
    await stream.add_stream(name=name, subjects=[name])
    began = time.perf_counter()
    futures = [
        await stream.publish_async(name, make(), headers={"Nats-Msg-Id": f"{name}-{number}"}) for number in range(count)
    ]
    await asyncio.wait_for(asyncio.gather(*futures), PATIENCE_S)
    spent = time.perf_counter() - began
    await stream.delete_stream(name)
    await connection.close()
    return count / spent


def to_jetstream(port: int, count: int, make: Make) -> float:
    """Acknowledged messages a second, published with ids and without waiting for each."""
    return asyncio.run(_publish(port, count, make))


def to_mosquitto(port: int, count: int, make: Make) -> float:
    """Acknowledged publishes a second with QoS 1."""
    from paho.mqtt.client import Client as Publisher
    from paho.mqtt.enums import CallbackAPIVersion

    left, is_done = count, threading.Event()

    def on_publish(*_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            is_done.set()

    client = Publisher(CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(INFLIGHT)
    client.max_queued_messages_set(0)
    client.on_publish = on_publish
    client.connect("127.0.0.1", port)
    client.loop_start()
    began = time.perf_counter()
    for _ in range(count):
        client.publish("bench", make(), qos=1)
    if not is_done.wait(PATIENCE_S):
        raise TimeoutError(f"mosquitto: {left} publishes without an answer")
    spent = time.perf_counter() - began
    client.disconnect()
    client.loop_stop()
    return count / spent
