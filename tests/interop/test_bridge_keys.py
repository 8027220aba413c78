"""Two brokers of one closed fabric, each with plain programs of its own machine, are bridged by what the pages say (BRI-012)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from tests.interop.netns import Net, host_of
from tests.interop.programs import needed
from tests.interop.test_strangers import said_zmq
from tests.interop.test_two_machines import Machine
from weft.shell.keys import Keys, load_keys

TABLES = """\
[catalog]
net = "{net}"
[catalog.bridge]
to = [{to}]
export = ["*"]
import = ["*"]
"""
DOOR = 5_249
SERVICE = """
import asyncio, weft.catalog
thermo = weft.catalog.Service("thermo")
@thermo.endpoint
async def read(sensor: bytes) -> str:
    return f"{sensor.decode()} 21.5"
asyncio.run(thermo.run())
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[dict[int, Machine]]:
    needed("ip")
    with Net(3) as net:
        made = {number: Machine(net, number, tmp_path) for number in net.numbers}
        for each, name in zip(made.values(), ("blue", "green", "red"), strict=True):
            to = f'"{host_of(1)}:{DOOR}"' if each.number > 1 else ""
            (each.home / "more.toml").write_text(TABLES.format(net=name, to=to), "utf-8")
        try:
            yield made
        finally:
            for each in reversed(made.values()):
                each.end()


async def _knock(keys: Keys | None, server: str) -> list[list[bytes]]:
    return said_zmq(host_of(1), DOOR, keys, server)


@pytest.mark.proves(
    "BRI-012",
    part="two brokers of one closed fabric, by commands on three machines; a stranger and a sensor are not heard",
)
def test_collectors_bridge_and_neither_a_sensor_nor_a_stranger_does(machines: dict[int, Machine]) -> None:
    root, other, sensor = machines.values()
    root.begin(["up", "more.toml", "--name", "root", "--level", "root"])
    root.until(["status"], lambda said: "root" in said)
    token = root.run(["invite", "--listen", host_of(1), "--role", "collector"]).split()[-1]
    other.begin(["join", token, "more.toml", "--name", "m2"])
    (other.home / "thermo.py").write_text(SERVICE, "utf-8")
    root.until(["status"], lambda said: " m2 " in said)
    other.begin_program([sys.executable, "thermo.py"])
    root.until(["catalog", "ls"], lambda said: "thermo@green" in said)
    assert "kitchen 21.5" == root.run(["catalog", "call", "thermo@green", "read", "kitchen"]).strip()
    token = root.run(["invite"]).split()[-1]
    joined = sensor.begin(["join", token, "more.toml", "--name", "m3"])
    assert joined.wait(120) != 0
    assert "weft invite --role collector" in sensor.said(), sensor.said()
    (secret,) = root.home.rglob("keys/node.key_secret")
    own = load_keys(secret.parent.parent)
    (secret,) = sensor.home.rglob("keys/node.key_secret")
    stranger, known = Keys(*(each.decode() for each in zmq.curve_keypair())), load_keys(secret.parent.parent)
    assert own is not None
    for keys in (None, stranger, known):
        assert [] == sensor.net.at(3).call(_knock(keys, own.public))
    assert "thermo@green" in root.run(["catalog", "ls"])
