"""Strangers at every door of the store: clients' port, mesh, broker and beacon; nothing ends, all is counted, nothing changes."""

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from tests.fabric.fabric import FLEET
from tests.fabric.test_chains import run, until
from tests.fabric.test_store import Brokered, Stores
from tests.patience import PATIENCE_S
from tests.shell.hostile import Intruder
from weft.store import Client

pytestmark = pytest.mark.prove("strangers at every socket")

TREE = {"root": "", "sensor-1": "root", "sensor-2": "root"}
CLIENTS, MESH = 5, 9
TOPICS = ("update", "info", "ping", "del", "wping")
ENTRIES = 50


class Both(Brokered):
    """The mesh, and a broker besides."""

    def store_of(self, name: str) -> str:
        return super().store_of(name).replace("mesh = false\n", "")


class Strangers:
    """Whoever reaches a port, and means ill."""

    def __init__(self, seed: str) -> None:
        self.intruder = Intruder(seed)
        self.context: zmq.Context[Any] = zmq.Context()

    def words(self) -> list[bytes]:
        """MessagePack that says something, and something else."""
        draw = self.intruder.draw
        node, huge = f"x{draw.randrange(5)}", draw.choice((0, -1, 1 << 62, 1 << 64 - 1, "five", None, 2.5))
        maps: list[dict[str, Any]] = [
            {
                "node": node,
                "tick": huge,
                "prev": None,
                "path": draw.choice(("own", [{}], None, 7)),
                "value": 1,
                "tock": 3,
            },
            {
                "node": node,
                "tick": 3,
                "prev": {"node": node, "tick": 3},
                "path": ["own", 1],
                "tock": huge,
                "value": [[]] * 9,
            },
            {"node": node, "tick": 1, "ticks": {"root": "many"}, "tock": huge},
            {"node": node, "tick": 1, "tock": 1 << 62, "missing": {"root": [[5, 2], [-1, 4]]}},
            {"node": node, "tick": 1, "tock": 2, "deleted": {"root": [[0, 1 << 70]]}},
            {"seq": huge, "action": draw.choice(("set_value", "no such thing", 5)), "path": [[1]], "value": 1},
            {"seq": 1, "action": "get_tree", "path": "own", "nchain": huge, "min_depth": "deep"},
            {"_p0": [node, huge, -1, b"x"]},
        ]
        found = []
        for each in maps:
            with contextlib.suppress(msgspec.EncodeError, OverflowError):
                found.append(msgspec.msgpack.encode(each))
        return [*found, *(word[: draw.randrange(len(word))] for word in found), draw.randbytes(300), b"", b"\xc1"]

    def clients(self, port: int) -> None:
        """At the client port: words of others, words that end, bytes."""
        for word in self.words():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port + CLIENTS), 2) as raw:
                raw.sendall(word)
                if self.intruder.draw.random() < 0.5:
                    raw.settimeout(0.05)
                    raw.recv(1_000)

    def mesh(self, port: int) -> None:
        """At the mesh: noise, words before any hello, and after one that says a wrong fabric, or lies about itself."""
        dealer = self.context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.LINGER, 2_000)
        dealer.setsockopt(zmq.SNDTIMEO, 2_000)
        dealer.connect(f"tcp://127.0.0.1:{port + MESH}")
        hello = {
            "v": 1,
            "fabric": FLEET,
            "node": "stranger",
            "boot": 1,
            "endpoint": "nowhere",
            "peers": ["::", "a:b:c"],
        }
        hellos = [b"", b"\x80", msgspec.msgpack.encode(hello | {"fabric": "other"}), msgspec.msgpack.encode(hello)]
        for first in hellos:
            dealer.send_multipart([b"hello", first])
            for word in self.words():
                for kind in (b"update", b"info", b"ping", b"bye-bye", b"hello"):
                    dealer.send_multipart([kind, word])
            noise = self.intruder.noise()
            if noise:
                dealer.send_multipart(noise)
        dealer.close()

    def datagrams(self, port: int) -> None:
        """At the beacon."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            for word in [*self.words(), b"WEFT1 a b 1 2 3", b"".join(self.intruder.noise())[:60_000]]:
                sender.sendto(word, ("127.255.255.255", port))

    async def topics(self, port: int, root: str) -> None:
        """At the broker."""
        import aiomqtt  # only whom a broker is there for has it

        async with aiomqtt.Client("127.0.0.1", port) as client:
            for word in self.words():
                for topic in TOPICS:
                    await client.publish(f"{root}/{topic}", word)


def counted(fabric: Stores, name: str) -> int:
    """What a node says that it has refused."""
    status = fabric.status(name)
    return int(sum(status["cores"]["store"]["malformed"].values())) + int(sum(status.get("refused", {}).values()))


async def trees_of(place: Path) -> list[dict[Any, Any]]:
    """What each node holds, tombstones too, but for what the store keeps of its own nodes."""

    async def tree(name: str) -> dict[Any, Any]:
        async with Client(place / name) as client:
            entries = [entry async for entry in client.tree((), deleted=True)]
        return {entry.path: (entry.value, entry.chain) for entry in entries if entry.path[:1] != (None,)}

    return [await tree(name) for name in TREE]


async def play(fabric: Both) -> None:
    """Write, let the strangers come, and write on."""
    strangers, place = Strangers("store strangers"), fabric.place
    async with fabric.client("sensor-1") as client:
        for number in range(ENTRIES):
            await client.set(("own", number), number)
        before = (await trees_of(place))[1]
        for name in ("root", "sensor-2"):
            await asyncio.to_thread(strangers.clients, fabric.ports[name])
            await asyncio.to_thread(strangers.mesh, fabric.ports[name])
        await asyncio.to_thread(strangers.datagrams, fabric.ports["root"])
        await strangers.topics(fabric.port, "weft")
        written = await client.set("own.last", "after all")
    await asyncio.to_thread(strangers.context.term)
    await until(lambda: all(counted(fabric, name) > 50 for name in ("root", "sensor-2")), "it is counted")
    expected = [before | {("own", "last"): ("after all", written.chain)}] * len(TREE)
    async with asyncio.timeout(PATIENCE_S):
        while (found := await trees_of(place)) != expected:
            assert all(tree.keys() <= expected[0].keys() for tree in found)
            await asyncio.sleep(0.1)  # tidy: other processes tell nobody; bounded above


@pytest.mark.proves("COD-007", "CLN-002", "LNK-021", "LNK-022")
def test_garbage_at_every_door_of_the_store_is_counted_and_changes_nothing(tmp_path: Path) -> None:
    with Both(tmp_path, TREE) as fabric:
        fabric.until(fabric.are_joined, "all have joined")
        run(play(fabric))
        assert not [member.name for member in fabric.fleet.members if member.deaths]
        # Who speaks the fabric's name may claim changes of its own: they are asked for, and never come.
        assert [] == [node for name in TREE for node in fabric.of(name)["missing"] if node in TREE]
