"""Real sockets on loopback: drained in batches, bounded, and indifferent to garbage."""

import asyncio
import select
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import zmq

from tests.patience import PATIENCE_MS, PATIENCE_S
from tests.shell.ports import free_port
from weft.base.effects import Connect, Source
from weft.base.endpoints import LINK
from weft.base.errors import UserError
from weft.node.channels import CHANNELS, FRAMES_MAX
from weft.shell import ends, sockets
from weft.shell.ends import Heard
from weft.shell.links import Links, make_beacon_socket


def run(dialogue: Callable[[Links, Links, int], Awaitable[None]]) -> None:
    async def main() -> None:
        port = free_port()
        woken = asyncio.Event()
        parent, child = Links(woken.set), Links(woken.set)
        parent.serve("127.0.0.1", port - LINK, ["down"])
        try:
            await dialogue(parent, child, port)
        finally:
            child.close()
            parent.close()

    asyncio.run(main())


async def hear(side: Links, count: int) -> list[Heard]:
    heard: list[Heard] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(heard) < count:
            heard += side.drain()[0]
            await asyncio.sleep(0)
    return heard


def test_a_child_is_heard_and_answered_by_its_routing_id() -> None:
    async def dialogue(parent: Links, child: Links, port: int) -> None:
        child.connect(Connect("up", f"127.0.0.1:{port}"))
        child.send("up", b"", [b"hello", b"body"])
        (heard,) = await hear(parent, 1)
        assert ("down", None, [b"hello", b"body"]) == (heard.source.channel, heard.source.proved, heard.frames)
        parent.send("down", heard.source.peer, [b"welcome"])
        (answer,) = await hear(child, 1)
        assert Heard(Source("up", b""), [b"welcome"]) == answer

    run(dialogue)


@pytest.mark.proves("SIM-021")
def test_each_connect_is_a_fresh_socket_with_a_new_id() -> None:
    async def dialogue(parent: Links, child: Links, port: int) -> None:
        peers = []
        for _ in range(2):
            child.connect(Connect("up", f"127.0.0.1:{port}"))
            child.send("up", b"", [b"hello"])
            peers.append((await hear(parent, 1))[0].source.peer)
        assert peers[0] != peers[1]
        assert [16, 16] == [len(peer) for peer in peers]

    run(dialogue)


def test_one_drain_takes_a_budget_and_says_that_there_may_be_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHANNELS, "down", CHANNELS["down"]._replace(budget=3))

    async def dialogue(parent: Links, child: Links, port: int) -> None:
        child.connect(Connect("up", f"127.0.0.1:{port}"))
        for number in range(10):
            child.send("up", b"", [bytes([number])])
        sizes: list[tuple[int, bool]] = []
        async with asyncio.timeout(PATIENCE_S):
            while sum(size for size, _ in sizes) < 10:
                heard, more = parent.drain()
                sizes += [(len(heard), more)]
                await asyncio.sleep(0)
        assert {True} == {more for size, more in sizes if size == 3}
        assert max(size for size, _ in sizes) <= 3

    run(dialogue)


def test_what_is_heard_in_one_turn_fits_into_one_batch() -> None:
    """Several children that replayed their backlog at once stopped their parent: their turn was over 16 MiB."""

    async def dialogue(parent: Links, child: Links, port: int) -> None:
        child.connect(Connect("up", f"127.0.0.1:{port}"))
        largest = [b"x" * (1 << 20)] * 4
        for _ in range(12):
            child.send("up", b"", largest)
        count, more = 0, False
        async with asyncio.timeout(PATIENCE_S):
            while count < 12:
                heard, more = parent.drain()
                assert sum(len(frame) for item in heard for frame in item.frames) <= 2_097_152 + (4 << 20)
                assert bool(heard) == more
                count += len(heard)
                await asyncio.sleep(0)

    run(dialogue)


def test_what_came_while_something_was_said_is_known_though_the_descriptor_tells_no_more() -> None:
    async def dialogue(parent: Links, child: Links, port: int) -> None:
        child.connect(Connect("up", f"127.0.0.1:{port}"))
        child.send("up", b"", [b"hello"])
        (heard,) = await hear(parent, 1)
        assert not parent.has_more()
        (bound,) = parent._ends["down"].sockets.values()
        child.send("up", b"", [b"again"])
        assert [bound.FD] == select.select([bound.FD], [], [], 10)[0]
        for _ in range(2):  # the loop has no turn here, so no descriptor is looked at
            parent.send("down", heard.source.peer, [b"welcome"])
        assert parent.has_more()
        assert [[b"again"]] == [item.frames for item in parent.drain()[0]]
        assert not parent.has_more()

    run(dialogue)


def test_a_peer_that_is_gone_loses_the_message_and_is_counted() -> None:
    async def dialogue(parent: Links, child: Links, port: int) -> None:
        parent.send("down", b"\x01nobody", [b"x"])
        child.send("up", b"", [b"x"])
        assert 1 == sum(parent.dropped.values())
        assert {"up:closed": 1} == dict(child.dropped)

    run(dialogue)


def test_bytes_that_are_no_zeromq_and_oversized_frames_reach_nobody_and_harm_nobody() -> None:
    async def dialogue(parent: Links, child: Links, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        intruder = zmq.Context()
        fat = intruder.socket(zmq.DEALER)
        fat.setsockopt(zmq.LINGER, 0)
        fat.connect(f"tcp://127.0.0.1:{port}")
        fat.send(b"x" * (sockets.FRAME_BYTES_MAX + 1))
        child.connect(Connect("up", f"127.0.0.1:{port}"))
        child.send("up", b"", [b"good"])
        heard = await hear(parent, 1)
        fat.close()
        intruder.term()
        assert [[b"good"]] == [item.frames for item in heard]

    run(dialogue)


def test_a_message_of_too_many_frames_is_dropped_whole() -> None:
    async def dialogue(parent: Links, child: Links, port: int) -> None:
        child.connect(Connect("up", f"127.0.0.1:{port}"))
        child.send("up", b"", [b"f"] * (FRAMES_MAX + 10))
        child.send("up", b"", [b"good"])
        heard = await hear(parent, 1)
        assert [[b"good"]] == [item.frames for item in heard]
        assert 1 == parent.dropped["down:frames"]

    run(dialogue)


def test_a_port_in_use_is_refused_with_the_mend() -> None:
    async def dialogue(parent: Links, child: Links, port: int) -> None:
        with pytest.raises(UserError) as refused:
            Links(lambda: None).serve("127.0.0.1", port - LINK, ["down"])
        assert "port-taken" == refused.value.code

    run(dialogue)


@pytest.mark.proves("SEC-010", part="limits of every socket of the table")
def test_every_socket_is_made_with_the_limits_of_the_table() -> None:
    context: zmq.Context[Any] = zmq.Context()
    for row in CHANNELS.values():
        if row.socket:
            heard = 60 if row.is_bound else row.queue  # 64 MiB of the largest frames
            limits = {**sockets.OPTIONS, zmq.SNDHWM: row.queue, zmq.RCVHWM: heard}
            with sockets.make_socket(context, ends.shape_of(row)) as made:
                assert limits == {option: made.getsockopt(option) for option in limits}
    context.term()


@pytest.mark.proves("CLI-002")
def test_the_router_for_programs_says_who_is_not_there_and_gives_no_id_away() -> None:
    context: zmq.Context[Any] = zmq.Context()
    shape = ends.shape_of(CHANNELS["clients"])
    assert ("ROUTER", True, False) == (shape.kind, shape.is_bound, shape.is_handed_over)
    with sockets.make_socket(context, shape) as router, context.socket(zmq.DEALER) as first:
        options = (zmq.LINGER, zmq.MAXMSGSIZE, zmq.SNDHWM, zmq.RCVHWM)
        assert [0, (1 << 20) + (64 << 10), CHANNELS["clients"].queue, 60] == [
            router.getsockopt(each) for each in options
        ]
        port = router.bind_to_random_port("tcp://127.0.0.1")
        router.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        with pytest.raises(zmq.ZMQError) as caught:
            router.send_multipart([b"nobody", b"x"])
        assert zmq.EHOSTUNREACH == caught.value.errno
        with context.socket(zmq.DEALER) as second:
            for dealer in (first, second):
                dealer.setsockopt(zmq.LINGER, 0)
                dealer.setsockopt(zmq.ROUTING_ID, b"\x01same")
            first.connect(f"tcp://127.0.0.1:{port}")
            first.send(b"first")
            assert [b"\x01same", b"first"] == router.recv_multipart()
            with second.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED) as watch:
                second.connect(f"tcp://127.0.0.1:{port}")
                second.send(b"second")
                assert watch.poll(PATIENCE_MS)
                second.disable_monitor()
            router.send_multipart([b"\x01same", b"for the first"])
            first.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
            assert b"for the first" == first.recv()
            first.send(b"again")
            assert [b"\x01same", b"again"] == router.recv_multipart()
    context.term()


@pytest.mark.proves("FLD-010")
def test_a_node_on_loopback_hears_no_datagram_that_is_not_for_loopback() -> None:
    """The system itself drops what comes from a network: such a datagram is never addressed to 127.255.255.255."""

    async def main() -> None:
        port = free_port(socket.SOCK_DGRAM)
        bound, side = make_beacon_socket(port, is_local=True), Links(lambda: None)
        assert ("127.255.255.255", port) == bound.getsockname()
        bound.close()
        side.listen(port, is_local=True)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sender.sendto(b"to another address", ("127.0.0.1", port))
            sender.sendto(b"to all of this machine", ("127.255.255.255", port))
        (heard,) = await hear(side, 1)
        assert [b"to all of this machine"] == heard.frames
        side.close()

    asyncio.run(main())


def test_a_beacon_is_heard_by_every_listener_of_the_machine() -> None:
    async def main() -> None:
        port = free_port(socket.SOCK_DGRAM)
        sides = [Links(lambda: None) for _ in range(3)]
        for side in sides:
            side.listen(port, is_local=side is not sides[2])
        sides[0].send("beacon", b"", [b"WEFTN1"])
        for side in sides:
            (heard,) = await hear(side, 1)
            assert ("beacon", [b"WEFTN1"]) == (heard.source.channel, heard.frames)
            assert heard.source.peer.startswith(b"127.")
            side.close()

    asyncio.run(main())


def test_a_reset_connection_is_no_error() -> None:
    async def dialogue(parent: Links, child: Links, port: int) -> None:
        raw = socket.create_connection(("127.0.0.1", port))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.sendall(b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f")
        raw.close()
        child.connect(Connect("up", f"127.0.0.1:{port}"))
        child.send("up", b"", [b"good"])
        assert [[b"good"]] == [item.frames for item in await hear(parent, 1)]

    run(dialogue)
