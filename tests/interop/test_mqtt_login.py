"""Two nodes of a closed fabric share a store through a real broker that wants TLS and a password, and a forger is not heard."""

import asyncio
import ssl
import subprocess
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from tests.fabric.closed import ClosedFabric
from tests.interop.moat.peers import Program, free_ports, is_open, until
from tests.interop.programs import needed
from tests.shell import certificate
from weft import store

BROKER = """
listener {port} 127.0.0.1
certfile {place}/broker.pem
keyfile {place}/broker.pem
password_file {place}/users
persistence false
user root
"""
TREE = {"root": "", "sensor-1": "root"}


class Mosquitto(Program):
    """A broker of TLS that knows one user."""

    def __init__(self, place: Path) -> None:
        [self.port], self.place = free_ports(1), place
        (place / "broker.pem").write_text(certificate.PAIR, "ascii")
        (place / "password").write_text("sesame\n", "ascii")
        (place / "password").chmod(0o600)
        words = [needed("/usr/bin/mosquitto_passwd"), "-c", "-b", str(place / "users"), "weft", "sesame"]
        subprocess.run(words, check=True, capture_output=True)
        (place / "broker.conf").write_text(BROKER.format(port=self.port, place=place), "ascii")
        super().__init__("broker", place, [needed("/usr/sbin/mosquitto"), "-c", str(place / "broker.conf")])

    def start(self) -> None:
        super().start()
        until(lambda: is_open(self.port), self.said)


def seed(port: int, place: Path) -> str:
    """The table of a store that is shared through the broker only."""
    return f"""
[store]
found = "founded"
mesh = false
clock = "500ms"
broker = "127.0.0.1:{port}"
broker_tls = true
broker_ca = "{place}/broker.pem"
broker_user = "weft"
broker_password = "{place}/password"
"""


def value_of(fabric: ClosedFabric, name: str) -> Any:
    """The value at `home`, as a node has it; None: it has none, or does not serve yet."""
    try:
        with store.SyncClient(fabric.place / name, timeout=5.0) as client:
            return client.get("home")
    except store.StoreError:
        return None


def written(fabric: ClosedFabric, name: str) -> bool:
    try:
        with store.SyncClient(fabric.place / name, timeout=5.0) as client:
            client.set("home", 21.5)
    except store.StoreError:
        return False
    return True


@pytest.mark.proves(
    "LNK-030", part="through a real broker with TLS and a password, two nodes share a store, and a forger is not heard"
)
def test_a_store_is_shared_through_a_broker_of_tls_and_a_forger_is_not_heard(tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as broker, ClosedFabric(tmp_path, TREE, seed(broker.port, tmp_path)) as fabric:
        until(lambda: written(fabric, "root"), fabric.logs)
        until(lambda: value_of(fabric, "sensor-1") == 21.5, fabric.logs)
        with pytest.raises(aiomqtt.MqttError):
            asyncio.run(forge(broker, "guess"))
        asyncio.run(forge(broker, "sesame"))
        until(lambda: dropped(fabric, "root") == 1, fabric.logs)


async def forge(broker: Mosquitto, password: str) -> None:
    """Say something below a topic of the store, as somebody who knows the password and not the fabric's secret."""
    tls = ssl.create_default_context(cafile=str(broker.place / "broker.pem"))
    async with aiomqtt.Client("127.0.0.1", broker.port, username="weft", password=password, tls_context=tls) as client:
        await client.publish("weft/update", b"forged")


def dropped(fabric: ClosedFabric, name: str) -> int:
    """What a node did not take from the broker, for want of a code."""
    return int(fabric.status(name)["dropped"].get("store-mqtt:bad-mac", 0))
