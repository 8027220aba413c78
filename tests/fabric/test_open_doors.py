"""What a node with keys says of the doors where it asks for none, beside what the kernel says of it (SEC-055)."""

import socket
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fabric.closed import ClosedFabric
from tests.patience import PATIENCE_S
from weft.shell.blocks import free_blocks

BEGINS = b"\xff" + bytes(8) + b"\x7f\x03\x00"
"""How every ZeroMQ peer greets, until it says its mechanism."""
GREETING_BYTES = 64
MACHINE, USER = "every user of this machine", "programs of this user"
READ = "every user of this machine may read; orders: this user, or the token"


def _mechanism(port: int) -> bytes:
    """What whoever listens there says that it takes."""
    heard = b""
    with socket.create_connection(("127.0.0.1", port), 5) as link:
        link.settimeout(PATIENCE_S)
        link.sendall(BEGINS)
        while len(heard) < GREETING_BYTES and (piece := link.recv(GREETING_BYTES)):
            heard += piece
    return heard[12:32].rstrip(b"\0")


def _listening(pid: int, kind: socket.SocketKind) -> set[int]:
    waits = {socket.SOCK_STREAM: psutil.CONN_LISTEN, socket.SOCK_DGRAM: psutil.CONN_NONE}[kind]
    return {
        link.laddr.port for link in psutil.Process(pid).net_connections() if (link.type, link.status) == (kind, waits)
    }


def _pid(fabric: ClosedFabric) -> int:
    process = fabric.member("root").process
    assert process is not None
    return process.pid


@pytest.mark.proves("SEC-055", part="each door that asks for no key is in the status, and no other lets a stranger in")
def test_each_door_without_a_key_is_named_and_every_other_one_asks_for_a_key(tmp_path: Path) -> None:
    others = free_blocks(2, 33_000)
    more = f"[store]\n[chains]\ntcp = true\n[catalog]\nport = {others[0]}\nbeacons = false\n[chp]\nport = {others[1]}\n"
    with ClosedFabric(tmp_path, {"root": ""}, more) as fabric:
        fabric.until(lambda: bool(fabric.status("root")), "it answers")
        doors: list[dict[str, Any]] = fabric.status("root")["security"]["doors"]
        at = {door["name"]: (int(door["at"].rpartition(":")[2]), door["lets_in"]) for door in doors}
        first, pid = fabric.ports["root"], _pid(fabric)
        assert at == {
            "catalog": (others[0], MACHINE),
            "catalog-beats": (others[0], MACHINE),
            "catalog-events": (others[0] + 1, MACHINE),
            "catalog-monitor": (others[0] + 2, MACHINE),
            "clone-serve": (others[1], MACHINE),
            "clone-publish": (others[1] + 1, MACHINE),
            "clone-take": (others[1] + 2, MACHINE),
            "store": (first + 5, USER),
            "http": (first + 6, READ),
        }
        named = {port for port, _ in at.values()}
        keyed = _listening(pid, socket.SOCK_STREAM) - named
        assert {first + place for place in (0, 1, 2, 3, 4, 7, 8, 9)} == keyed
        assert {b"CURVE"} == {_mechanism(port) for port in keyed}
        assert {b"NULL"} == {_mechanism(port) for port in named - {first + 5, first + 6}}
