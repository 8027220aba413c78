"""How a program finds its broker (BEA-003, BEA-004, BEA-005, BEA-007)."""

import asyncio
import socket
from typing import Any

import pytest

from tests.client.node import in_loop, until
from tests.client.servicebroker import EPOCH, FakeBroker
from tests.shell.ports import free_port
from weft.catalog import Found, Service, Unreachable, find_broker
from weft.client.catalog.discovery import BeaconListener
from weft.wire.catalog import beacon as codec
from weft.wire.catalog.messages import Beacon


class Shouting:
    """Says a datagram to a port of this machine again and again, as brokers do."""

    def __init__(self, port: int, *said: bytes) -> None:
        self._port, self._said = port, said

    async def __aenter__(self) -> None:
        self._task = asyncio.ensure_future(self._shout())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _shout(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while True:
                for said in self._said:
                    sender.sendto(said, ("127.0.0.1", self._port))
                await asyncio.sleep(0.01)  # tidy: nobody says when he listens; bounded by in_loop


def beacon(**parts: Any) -> bytes:
    return codec.encode(Beacon(**{"port": 5246, "dbp": 1, "id": EPOCH, "hb": 7, "pub": 8, **parts}))[0]


@pytest.mark.proves("BEA-004")
@in_loop
async def test_the_first_seed_that_answers_is_the_broker() -> None:
    async with FakeBroker() as broker:
        found = await find_broker([broker.seed])
        assert Found("127.0.0.1", broker.port, 5, 6, EPOCH, "blue", ("f64",), is_legacy=False) == found
        assert [b"dbp.status"] == broker.bodies[b"u_U"]


@pytest.mark.proves("BEA-004")
@in_loop
async def test_a_seed_that_is_away_is_passed_over() -> None:
    async with FakeBroker() as broker:
        found = await find_broker([f"127.0.0.1:{free_port()}", broker.seed], net="blue")
        assert broker.port == found.port


@pytest.mark.proves("BEA-004")
@pytest.mark.parametrize(
    "status", [{}, {"Error": "none", "warning": "inactive"}, {"thermo": {"ip": "1.2.3.4"}}, {"dbp": "x"}]
)
def test_any_answer_makes_a_seed_valid(status: dict[str, Any]) -> None:
    @in_loop
    async def case() -> None:
        async with FakeBroker() as broker:
            broker.status = status
            assert Found("127.0.0.1", broker.port, is_legacy=True) == await find_broker([broker.seed])

    case()


@pytest.mark.proves("BEA-003", "BEA-004")
@in_loop
async def test_without_seeds_the_first_beacon_is_the_broker_and_all_else_is_ignored() -> None:
    port = free_port(socket.SOCK_DGRAM)
    async with Shouting(port, b"SHALOM", b"\xff" * 600, b"WEFTN1 a b", beacon(net="blue")):
        found = await find_broker(beacon_port=port)
    assert Found("127.0.0.1", 5246, 7, 8, EPOCH, "blue", (), is_legacy=False) == found


@pytest.mark.proves("BEA-004")
@in_loop
async def test_the_beacon_of_an_existing_broker_is_one() -> None:
    port = free_port(socket.SOCK_DGRAM)
    async with Shouting(port, b"SHALOM 5250"):
        assert Found("127.0.0.1", 5250, is_legacy=True) == await find_broker(beacon_port=port)


@pytest.mark.proves("BEA-005", "BEA-007")
@in_loop
async def test_of_several_the_one_of_the_network_with_the_right_code_is_meant() -> None:
    port = free_port(socket.SOCK_DGRAM)
    right = codec.encode(codec.sign(Beacon(3, net="blue"), b"key"))[0]
    wrong = codec.encode(codec.sign(Beacon(2, net="blue"), b"other"))[0]
    async with Shouting(port, beacon(port=1, net="red"), wrong, right):
        assert 3 == (await find_broker(net="blue", beacon_port=port, beacon_key="key")).port


@pytest.mark.proves("BEA-004")
@in_loop
async def test_nobody_is_said_to_be_nobody() -> None:
    for seeds in ([], [f"127.0.0.1:{free_port()}"]):
        with pytest.raises(Unreachable):
            await find_broker(seeds, wait_s=0.01, beacon_port=free_port(socket.SOCK_DGRAM))
    with pytest.raises(Unreachable):
        await find_broker(["no port at all"])


@pytest.mark.proves("BEA-003")
@in_loop
async def test_several_hear_beacons_beside_each_other_and_count_what_is_none() -> None:
    port = free_port(socket.SOCK_DGRAM)
    heard: list[str] = []
    both = [await BeaconListener.open(port, lambda beacon, ip: heard.append(ip)) for _ in range(2)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        for said in (b"SHALOM 5246", b"nothing"):
            sender.sendto(said, ("127.255.255.255", port))
    await until(lambda: sum(ears.ignored for ears in both) == 2)
    assert ["127.0.0.1"] * 2 == heard
    for ears in both:
        ears.close()


@pytest.mark.proves("BEA-003")
@in_loop
async def test_a_port_that_somebody_has_for_himself_is_said() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", 0))
        port = other.getsockname()[1]
        with pytest.raises(Unreachable):
            await find_broker(beacon_port=port, wait_s=0.01)
        with pytest.raises(Unreachable):
            await Service("thermo", beacon_port=port).start()
        async with FakeBroker() as broker, Service("thermo", broker=broker.seed, beacon_port=port) as service:
            assert service.is_registered


@pytest.mark.proves("BEA-004", "BEA-010", "BEA-020")
@in_loop
async def test_a_service_finds_its_broker_by_beacon_and_beats_where_that_says() -> None:
    port = free_port(socket.SOCK_DGRAM)
    beats: asyncio.Queue[bytes] = asyncio.Queue()

    class Hears(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, address: Any) -> None:
            beats.put_nowait(data)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Hears, local_addr=("127.0.0.1", 0))
    hb = transport.get_extra_info("sockname")[1]
    async with FakeBroker(hb=hb) as broker:
        said = beacon(port=broker.port, hb=hb)
        async with Shouting(port, said), Service("thermo", beacon_port=port, interval_s=0.05):
            first, second = await beats.get(), await beats.get()
        word, _, rest = first.decode().split(" ", 2)
        assert ("<3", ["thermo", "id=i1", "seq=1"]) == (word, rest.split("\t"))
        assert second.endswith(b"seq=2")
        assert "beacon" not in broker.records[0]
    transport.close()
