"""Strangers with plain sockets at every port of a real node of a closed fabric, before any handshake (SEC-053)."""

import contextlib
import itertools
import selectors
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import psutil
import pytest

from tests.fabric.closed import ClosedFabric
from tests.patience import PATIENCE_S
from weft.base.vectors import VersionVector

pytestmark = pytest.mark.prove("strangers at every port of a node that answers its own")

TREE: Final = {"root": "", "sensor-1": "root"}
MORE: Final = '[store]\n[chains]\ntcp = true\n[doc.session.minutes]\nschema = "plain"\n'
GREETING: Final = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)
MEGABYTE: Final = b"\x06" + (1 << 20).to_bytes(8, "big")
"""The head of a command of that size, such as HELLO is one of 200 bytes."""
ENDLESS: Final = (
    GREETING + MEGABYTE,
    b"POST /stop HTTP/1.1\r\nX: ",
    b"\x81\xa1x\xc6\xff\xff\xff\xff",  # MessagePack: a map with a value of 4 GiB
    bytes(64),
    b"\xff" * 64,
)
PIECE: Final = bytes(1 << 16)
EACH: Final = 6
DRIP_S: Final = 0.05
GROWN_BYTES_MAX: Final = 160 << 20
"""Of one address 64 connections of ZeroMQ, and as many of documents, each with a megabyte for the tenth of a second until somebody looks."""


class Stranger(NamedTuple):
    """One connection, and what it says: then zeros for ever, or a byte at a time."""

    link: socket.socket
    port: int
    opening: Iterator[bytes]
    is_slow: bool


def _listening(fabric: ClosedFabric, name: str) -> list[tuple[str, int]]:
    process = fabric.member(name).process
    assert process is not None
    found = psutil.Process(process.pid).net_connections("tcp4")
    return sorted((each.laddr.ip, each.laddr.port) for each in found if each.status == psutil.CONN_LISTEN)


def _strangers(places: list[tuple[str, int]]) -> Iterator[Stranger]:
    for place in places:
        for opening in ENDLESS * EACH:
            said = itertools.chain([opening], itertools.repeat(PIECE))
            yield Stranger(socket.create_connection(place), place[1], said, is_slow=False)
        for _ in range(EACH):
            slowly = itertools.chain((GREETING[:n][-1:] for n in range(1, 65)), itertools.repeat(b"\0"))
            yield Stranger(socket.create_connection(place), place[1], slowly, is_slow=True)


class Crowd:
    """All of them, spoken for by one thread; `ended`: by port, how many were ended by the node."""

    def __init__(self, places: list[tuple[str, int]]) -> None:
        self.selector = selectors.DefaultSelector()
        self.left: dict[socket.socket, Stranger] = {}
        for stranger in _strangers(places):
            stranger.link.setblocking(False)
            self.left[stranger.link] = stranger
            self.selector.register(stranger.link, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def speak(self) -> None:
        """Everybody once; who was hung up on goes."""
        is_slow_now = self._is_time()
        for key, events in self.selector.select(0.05):
            stranger = self.left[key.fileobj]  # type: ignore[index]  # registered as sockets
            if not self._goes_on(stranger, events, says=is_slow_now or not stranger.is_slow):
                self.selector.unregister(stranger.link)
                self.left.pop(stranger.link).link.close()

    _next_at = 0.0

    def _is_time(self) -> bool:
        now = time.monotonic()
        is_due = now >= self._next_at
        self._next_at = now + DRIP_S if is_due else self._next_at
        return is_due

    @staticmethod
    def _goes_on(stranger: Stranger, events: int, *, says: bool) -> bool:
        try:
            if events & selectors.EVENT_READ and not stranger.link.recv(1 << 16):
                return False
            if events & selectors.EVENT_WRITE and says:
                stranger.link.send(next(stranger.opening))
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def close(self) -> None:
        for link in self.left:
            link.close()
        self.selector.close()


def _most_memory(fabric: ClosedFabric, crowd: Crowd) -> int:
    """Of the root, in bytes, until the last of them is ended."""
    most, ends_at = 0, time.monotonic() + PATIENCE_S
    for turn in itertools.count():
        crowd.speak()
        if not crowd.left:
            break
        assert time.monotonic() < ends_at, {stranger.port for stranger in crowd.left.values()}
        most = max(most, fabric.status("root")["memory_bytes"]) if turn % 20 == 0 else most
    return most


@pytest.mark.proves("SEC-053", part="at every port of a real node: who never ends, or says a byte at a time, is ended")
def test_a_stranger_who_never_ends_is_ended_at_every_port_while_the_own_are_heard(tmp_path: Path) -> None:
    with ClosedFabric(tmp_path, TREE, MORE) as fabric:
        fabric.measure_on(10)
        before, places = fabric.status("root"), _listening(fabric, "root")
        assert len(places) >= 8, places
        with contextlib.closing(Crowd(places)) as crowd:
            most = _most_memory(fabric, crowd)
        assert most - before["memory_bytes"] < GROWN_BYTES_MAX
        after = fabric.status("root")
        ended = after["security"]["handshakes"]
        # Of the 216 at ports of ZeroMQ; libzmq says nothing of those whose bytes it cannot read as frames.
        assert ended["crowd"] + ended["too-much"] + ended["no-handshake"] >= 36
        assert after["http"]["refused"] > before["http"]["refused"]
        fabric.measure_on(10)
        assert not [member.name for member in fabric.fleet.members if member.deaths]
        fabric.stop()
        made, (drained, doubled) = fabric.made(), fabric.drained()
        assert (VersionVector(), 0) == (made - drained, doubled)
