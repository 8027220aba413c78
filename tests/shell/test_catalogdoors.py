"""The sockets of the catalog: where they stand, who is told apart by what, and what is said to whom."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq

from tests.patience import PATIENCE_MS, PATIENCE_S
from weft.base.effects import Connect, Source
from weft.base.errors import UserError
from weft.client.catalog.discovery import Choice
from weft.cores.catalog.messages import Ports
from weft.node.catalogtable import SPARE_PORTS
from weft.node.channels import VALUES_BUDGET
from weft.node.settings import settings_of
from weft.shell import ends
from weft.shell.beaconseal import Seal
from weft.shell.blocks import free_blocks
from weft.shell.catalogdoors import CatalogDoors, destinations_of
from weft.shell.ends import Heard, kind_and_address
from weft.shell.links import Links
from weft.wire.catalog import beacon as codec

HOST = "127.0.0.1"


class Runner:
    """Notes what the doors have to say."""

    def __init__(self) -> None:
        self.doors: dict[str, Any] = {}
        self.performers: dict[type, Any] = {}
        self.orders: list[Any] = []
        self.posted: list[tuple[Source, list[bytes]]] = []
        self.has_heard = asyncio.Event()

    def order(self, core: str, order: Any) -> None:
        self.orders.append(order)

    def post(self, source: Source, frames: list[bytes]) -> None:
        self.posted.append((source, frames))
        self.has_heard.set()


class Opened:
    """Doors that are open, with what they are joined to."""

    def __init__(self, place: Path, links: Links, port: int, **table: Any) -> None:
        document = {
            "node": {"name": "root", "level": "root"},
            "security": {"mode": "none", "allow_insecure": True},
            "catalog": {"port": port, **table},
        }
        place.mkdir(exist_ok=True)
        self.links, self.runner, self.port = links, Runner(), port
        self.doors = CatalogDoors(settings_of(document), self.runner, links, place)  # type: ignore[arg-type]  # only what the doors use
        self.doors.open()

    @property
    def ports(self) -> Ports:
        (order,) = self.runner.orders
        assert isinstance(order, Ports)
        return order


@asynccontextmanager
async def opened(place: Path, **table: Any) -> AsyncIterator[Opened]:
    links = Links(lambda: None)
    doors = Opened(place, links, free_blocks(1, 15_000)[0], **table)
    try:
        yield doors
    finally:
        doors.doors.close()
        links.close()


def test_a_page_may_ask_for_open_doors_when_they_are_closed(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as doors:
            assert ["catalog-beats"] == [door.name for door in doors.doors.open_doors()]
        assert [] == list(doors.doors.open_doors())

    asyncio.run(main())


async def drained(links: Links, count: int) -> list[Heard]:
    heard: list[Heard] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(heard) < count:
            heard += links.drain()[0]
            await asyncio.sleep(0)
    return heard


async def full_turn(links: Links, count: int) -> list[Heard]:
    """The first turn that hears so many: what a thread of libzmq has not brought yet comes in turns before it."""
    async with asyncio.timeout(PATIENCE_S):
        while len(heard := links.drain()[0]) < count:  # noqa: ASYNC110  # sockets tell no event here
            await asyncio.sleep(0)
    return heard


def ask(endpoint: str, kind: int) -> "zmq.Socket[bytes]":
    made: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
    made.setsockopt(zmq.LINGER, 0)
    made.connect(endpoint)
    made.send_multipart([b"u_U", b"\0\0\0\0"] if kind == zmq.REQ else [b"", b"u_U", b"\0\0\0\0"])
    return made


@pytest.mark.proves("CAT-003", "CAT-006", "CAT-061")
def test_a_peer_is_known_by_its_socket_and_address_and_one_of_the_file_system_by_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as here:
            note = (tmp_path / "catalog.endpoint").read_text("utf-8").strip()
            for endpoint, kind, expected in (
                (f"tcp://{HOST}:{here.port}", zmq.REQ, "REQ 127.0.0.1"),
                (f"tcp://{HOST}:{here.port}", zmq.DEALER, "DEALER 127.0.0.1"),
                (note, zmq.DEALER, "DEALER "),
            ):
                peer = ask(endpoint, kind)
                (heard,) = await drained(here.links, 1)
                assert ("catalog", expected) == (heard.source.channel, heard.source.kind)
                peer.close()
            assert 0o600 == (tmp_path / "catalog.sock").stat().st_mode & 0o777

    asyncio.run(main())


@pytest.mark.proves("CAT-061")
def test_a_peer_of_whom_the_library_knows_no_address_is_no_administrator() -> None:
    class Frame:
        def get(self, name: str) -> str:
            if name == "Peer-Address":
                raise zmq.ZMQError(22)
            return "DEALER"

    assert "DEALER 0.0.0.0" == kind_and_address(Frame())  # type: ignore[arg-type]  # only what is asked of it


@pytest.mark.proves("CAT-001")
def test_a_router_whose_port_is_taken_is_a_start_that_fails(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as here:
            links = Links(lambda: None)
            with pytest.raises(UserError, match=f"{here.port}") as caught:
                Opened(tmp_path / "second", links, here.port)
            assert "port-in-use" == caught.value.code
            told = re.search(r"\bport = (\d+)\b", caught.value.mend)
            assert told is not None
            second = Opened(tmp_path / "second", links, int(told[1]))
            assert {int(told[1]), int(told[1]) + 1} == {second.ports.beats, second.ports.events}
            second.doors.close()
            links.close()

    asyncio.run(main())


@pytest.mark.proves("CAT-002")
def test_sockets_besides_the_router_move_to_a_spare_port_and_say_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "first") as here:
            assert Ports(here.port, here.port + 1, here.port + 2) == here.ports
            (blocked,) = free_blocks(1, 16_000)
            with socket.socket() as events, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beats:
                events.bind((HOST, blocked + 1))
                beats.bind((HOST, blocked))
                links = Links(lambda: None)
                second = Opened(tmp_path / "second", links, blocked)
                assert {second.ports.beats, second.ports.events} <= set(SPARE_PORTS)
                second.doors.close()
                links.close()

    asyncio.run(main())


@pytest.mark.proves("BEA-025")
def test_beats_are_heard_with_where_they_come_from_and_answered_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as here:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as service:
                service.settimeout(PATIENCE_S)
                service.bind((HOST, 0))
                service.sendto(b"<3 1 thermo", (HOST, here.ports.beats))
                async with asyncio.timeout(PATIENCE_S):
                    await here.runner.has_heard.wait()
                (source, frames) = here.runner.posted[0]
                address = f"{HOST}:{service.getsockname()[1]}".encode()
                assert (Source("catalog-beats", address), [b"<3 1 thermo"]) == (source, frames)
                here.runner.doors["catalog-beats"](address, [b"u.u 1 thermo"])
                assert b"u.u 1 thermo" == service.recv(100)

    asyncio.run(main())


@pytest.mark.proves("BEA-002")
def test_a_beacon_goes_to_all_addresses_though_one_of_them_fails(tmp_path: Path) -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
            listener.settimeout(PATIENCE_S)
            listener.bind(("", 0))
            places = ("no.such.host.invalid", "127.0.0.1")
            async with opened(tmp_path, beacon_port=listener.getsockname()[1], beacon_to=places) as here:
                here.runner.doors["catalog-beacon"](b"", [b"SHALOM 1"])
                assert b"SHALOM 1" == listener.recv(100)
                assert [1] == [count for what, count in here.links.dropped.items() if what.startswith("catalog-beacon")]

    asyncio.run(main())


@pytest.mark.proves("BEA-007", part="on a closed fabric a beacon has the code of the fabric's secret")
@pytest.mark.parametrize(
    ("own", "expected"),
    [("", (True, False, False)), ("mine", (False, False, False))],
    ids=["the fabric's secret", "a key of the file's own, which the core signs with"],
)
def test_a_beacon_of_a_closed_fabric_has_the_code_of_its_secret(
    tmp_path: Path, own: str, expected: tuple[bool, bool, bool]
) -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
            listener.settimeout(PATIENCE_S)
            listener.bind(("127.0.0.1", 0))
            table = {"beacon_port": listener.getsockname()[1], "beacon_to": ["127.0.0.1"], "beacon_key": own}
            async with opened(tmp_path, **table) as here:
                here.links.seal = Seal(b"^" * 32)
                here.runner.doors["catalog-beacon"](b"", [b"SHALOM 5246 dbp=1"])
                beacon = codec.decode([listener.recv(600)])
            assert (5246, 1) == (beacon.port, beacon.dbp)
            choices = [Choice(key=key).counts(beacon) for key in ("5e" * 32, "5f" * 32, "^" * 32 + "-")]
            assert expected == tuple(choices)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", ("127.255.255.255",)), ("localhost", ("127.255.255.255",))]
)
def test_a_broker_of_this_machine_shouts_on_no_network(host: str, expected: tuple[str, ...]) -> None:
    table = settings_of({"node": {"name": "root", "level": "root"}, "catalog": {}}).catalog
    assert table is not None
    assert expected == destinations_of(table, host)
    everywhere = destinations_of(table, "10.0.0.1")
    assert ("255.255.255.255", "127.255.255.255") == everywhere[:2]


@pytest.mark.proves("LVC-001")
def test_publishers_are_listened_to_one_by_one_and_let_go_one_by_one() -> None:
    async def main() -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        publishers = [context.socket(zmq.XPUB) for _ in range(2)]
        for publisher in publishers:
            publisher.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        ports = [publisher.bind_to_random_port(f"tcp://{HOST}") for publisher in publishers]
        links = Links(lambda: None)
        for tag, port, topic in zip((b"a", b"b"), ports, (b"t", b""), strict=True):
            links.connect(Connect("catalog-values", f"{HOST}:{port}", tag, (topic,)))
        for publisher in publishers:
            publisher.recv()  # they are subscribed to
            publisher.send_multipart([b"no", b"1"])
            publisher.send_multipart([b"t", b"2"])
        assert [(b"a", b"2"), (b"b", b"1"), (b"b", b"2")] == sorted(
            (one.source.peer, one.frames[1]) for one in await drained(links, 3)
        )
        links.disconnect("catalog-values", b"a")
        assert b"\0t" == publishers[0].recv()
        publishers[1].send_multipart([b"t", b"3"])
        assert [b"b"] == [one.source.peer for one in await drained(links, 1)]
        links.close()
        context.destroy(linger=0)

    asyncio.run(main())


@pytest.mark.proves("CAT-004")
def test_an_answer_to_who_is_gone_or_takes_nothing_delays_nobody_and_is_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as here:
            assert not here.links.send("catalog", b"nobody", [b"", b"o_O"])
            lazy = ask(f"tcp://{HOST}:{here.port}", zmq.DEALER)
            (heard,) = await drained(here.links, 1)
            sent = sum(here.links.send("catalog", heard.source.peer, [b"", b"x" * 10_000]) for _ in range(40_000))
            assert 0 < sent < 40_000
            assert 40_001 - sent == here.links.dropped.total()
            lazy.close()

    asyncio.run(main())


@pytest.mark.proves("LVC-009")
def test_a_publisher_that_floods_has_its_turn_and_then_waits_while_others_are_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ends, "REST_S", 3_600)

    async def play(links: Links, publishers: "list[zmq.Socket[bytes]]") -> None:
        flood(publishers[0])
        first = await full_turn(links, VALUES_BUDGET)
        assert 64 == len(first)
        publishers[1].send_multipart([b"t", b"calm"])
        assert [(b"b", b"calm")] == [(one.source.peer, one.frames[1]) for one in await drained(links, 1)]

    published(play)


def test_a_publisher_that_flooded_is_heard_again_and_to_its_end_in_order() -> None:
    async def play(links: Links, publishers: "list[zmq.Socket[bytes]]") -> None:
        flood(publishers[0])
        heard = await drained(links, FLOOD)
        assert [b"%d" % number for number in range(FLOOD)] == [one.frames[1] for one in heard]

    published(play)


FLOOD = 900


def flood(publisher: "zmq.Socket[bytes]") -> None:
    for number in range(FLOOD):
        publisher.send_multipart([b"t", b"%d" % number])


def published(play: "Callable[[Links, list[zmq.Socket[bytes]]], Awaitable[None]]") -> None:
    """Two publishers, a and b, to whom somebody listens."""

    async def main() -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        publishers = [context.socket(zmq.XPUB) for _ in range(2)]
        for publisher in publishers:
            publisher.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        links = Links(lambda: None)
        for tag, publisher in zip((b"a", b"b"), publishers, strict=True):
            port = publisher.bind_to_random_port(f"tcp://{HOST}")
            links.connect(Connect("catalog-values", f"{HOST}:{port}", tag, (b"",)))
            publisher.recv()  # it is subscribed to
        try:
            await play(links, publishers)
        finally:
            links.close()
            context.destroy(linger=0)

    asyncio.run(main())
