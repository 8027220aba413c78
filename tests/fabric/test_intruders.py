"""Strangers at every socket of running processes: what they send is refused and counted, good traffic goes on."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from tests.fabric.fabric import Fabric, numbered_in
from tests.patience import PATIENCE_S
from tests.shell.hostile import Intruder
from weft.base.vectors import VersionVector
from weft.cli.fleet import Member
from weft.shell.blocks import free_blocks
from weft.shell.sockets import FRAME_BYTES_MAX

pytestmark = pytest.mark.prove("strangers at every socket")

TREE = {"root": "", "collector-1": "root", "sensor-1": "collector-1"}
HTTP, LINK = 6, 7
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
REQUESTS = (
    b"HEAD /status HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /status HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
    b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /status HTTP/1.1\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
    b"GET \xff\xfe HTTP/1.1\r\n\r\n",
    GREETING,
    bytes(500),
    b"",
)


class Strangers:
    """All that may come from one machine that means ill."""

    def __init__(self, seed: str) -> None:
        self.intruder = Intruder(seed)
        self.context: zmq.Context[Any] = zmq.Context()

    def dealers(self, port: int, count: int) -> None:
        """Messages of noise over ZeroMQ; now and then an oversized frame, which costs the connection."""
        dealer = self.context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.LINGER, 2_000)
        dealer.setsockopt(zmq.SNDTIMEO, 2_000)
        dealer.connect(f"tcp://127.0.0.1:{port + LINK}")
        for number in range(count):
            frames = self.intruder.noise()
            if frames and not any(b"hello" in frame for frame in frames[:1]):
                with contextlib.suppress(zmq.Again):
                    dealer.send_multipart(frames)
            if number % 97 == 96:
                dealer.send(bytes(FRAME_BYTES_MAX + 1))
        dealer.close()

    def raw(self, port: int) -> None:  # tidy: every ending of every word at every port is one attack
        """Bytes that are no ZeroMQ on the one port and no HTTP on the other; connections that end in the middle."""
        draw = self.intruder.draw
        for offset in (HTTP, LINK):
            for data in (*REQUESTS, draw.randbytes(3_000), GREETING + draw.randbytes(100), GREETING + b"\x04\xff"):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port + offset), 2) as raw:
                    raw.sendall(data)
                    if draw.random() < 0.5:  # a reset instead of an end
                        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def datagrams(self, port: int, count: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            for _ in range(count):
                sender.sendto(b"".join(self.intruder.noise())[:60_000], ("127.255.255.255", port))

    def close(self) -> None:
        self.context.term()


class EvilParent:
    """A ROUTER that answers every word of a child with noise, but never with a welcome."""

    def __init__(self, seed: str) -> None:
        self.intruder = Intruder(seed)
        self.context: zmq.Context[Any] = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.setsockopt(zmq.LINGER, 0)
        self.port = self.router.bind_to_random_port("tcp://127.0.0.1", 20_000, 30_000) - LINK

    def answer(self) -> None:
        while self.router.poll(0):
            peer = self.router.recv_multipart()[0]
            for _ in range(60):
                frames = self.intruder.noise()
                if frames and b"welcome" not in frames[0]:
                    self.router.send_multipart([peer, *frames])

    def close(self) -> None:
        self.router.close()
        self.context.term()


def alone(place: Path, port: int, limits: dict[str, Any] | None = None, **node: Any) -> list[str]:
    """The words that start a node by itself, at a port block."""
    document = {
        "node": {"state": str(place / "state"), "port": port, "beacons": False, "flush_s": 0.1, **node},
        "metric": {"cpu": {"detail": "CPU", "rate": "0.1s"}},
        "lake": {"path": str(place / "lake")},
        "limits": limits or {},
    }
    return ["-m", "weft.shell.serve", msgspec.json.encode(document).decode()]


def refused(fabric: Fabric, name: str, prefix: str) -> int:
    return sum(count for key, count in fabric.status(name).get("refused", {}).items() if key.startswith(prefix))


@pytest.mark.proves("FLT-022", "FUZ-006", "SEC-027")
def test_strangers_at_every_socket_harm_nobody_and_are_counted(tmp_path: Path, soak: bool) -> None:
    with Fabric(tmp_path, TREE) as fabric:
        fabric.measure_on(10)
        strangers = Strangers("strangers")
        for _ in range(60 if soak else 3):
            for name in ("root", "collector-1"):
                strangers.dealers(fabric.ports[name], 150)
                strangers.raw(fabric.ports[name])
            strangers.datagrams(fabric.ports["root"], 150)
            fabric.measure_on(10)
        strangers.close()
        for name in ("root", "collector-1"):
            assert refused(fabric, name, "down:") > 50
            assert refused(fabric, name, "beacon:") > 50
            status = fabric.status(name)
            assert status["http"]["refused"] > 10
            assert status["memory_bytes"] < 300 << 20
        assert not [member.name for member in fabric.fleet.members if member.deaths]
        fabric.stop()
        made, (drained, doubled) = fabric.made(), fabric.drained()
        assert (VersionVector(), 0) == (made - drained, doubled)


@pytest.mark.proves("CLI-006")
def test_a_parent_that_talks_nonsense_is_refused_and_the_child_measures_on(tmp_path: Path) -> None:
    parent = EvilParent("parent")
    with contextlib.closing(parent), Fabric(tmp_path, {}) as fabric:
        fabric.ports["sensor"] = port = free_blocks(1, 31_000)[0]
        words = alone(tmp_path, port, name="sensor", parent=f"127.0.0.1:{parent.port}")
        fabric.fleet.add(Member("sensor", words, port))

        def is_refused_often() -> bool:
            parent.answer()
            return refused(fabric, "sensor", "up:") > 20

        fabric.until(is_refused_often, "the child refuses what its parent says")
        before = fabric.taken("sensor")
        fabric.until(lambda: fabric.taken("sensor") > before + 5, "it measures on")
        carrier = fabric.status("sensor")["cores"]["carrier"]
        assert ("GREETING", 0) == (carrier["state"], carrier["safe"])
        assert not fabric.member("sensor").deaths


@contextlib.contextmanager
def endless(port: int, megabytes: int) -> Iterator[None]:
    """One message that never ends: MAXMSGSIZE bounds its frames, nothing bounds their number (SIM-020, Z10)."""
    frame = b"\x03" + struct.pack(">Q", 60_000) + bytes(60_000)
    with socket.create_connection(("127.0.0.1", port + LINK), 5) as raw:
        raw.settimeout(PATIENCE_S)
        raw.sendall(GREETING)
        raw.sendall(b"\x04" + bytes([len(READY)]) + READY)
        answer = b""
        while b"READY" not in answer:  # frames that come before it has ended the handshake end the connection
            answer += raw.recv(1_000)
        with contextlib.suppress(OSError):  # the guard may be quicker
            for _ in range(megabytes * 1_000_000 // 60_000):
                raw.sendall(frame)
        yield


@pytest.mark.proves("SEC-014")
def test_a_message_that_never_ends_ends_the_process_which_restores_itself(tmp_path: Path) -> None:
    with Fabric(tmp_path, {}) as fabric:
        fabric.ports["guarded"] = port = free_blocks(1, 31_000)[0]
        words = alone(tmp_path, port, name="guarded", level="root", limits={"memory_megabytes": 160})
        guarded = Member("guarded", words, port)
        fabric.fleet.add(guarded)
        fabric.until(lambda: fabric.taken("guarded") > 0, "it measures")
        with endless(port, 300):
            fabric.until(lambda: bool(guarded.deaths), "the guard ends it")
        fabric.until(lambda: fabric.taken("guarded") > 0, "it measures again")
        assert ["exit 75"] == guarded.deaths
        said = (tmp_path / "guarded.log").read_text("utf-8")
        assert "node.memory-exceeded" in said
        assert "start it again" in said
        fabric.fleet.stop(["guarded"], patience_s=30)
        made, (drained, doubled) = numbered_in(tmp_path / "state" / "journal"), fabric.drained()
        assert (VersionVector(), 0) == (made - drained, doubled)
