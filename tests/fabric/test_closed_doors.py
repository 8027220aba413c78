"""Every socket of every level of a closed fabric, and four intruders at each of them (SEC-010, SEC-012, SEC-027)."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from tests.fabric.closed import Hall
from weft.shell.keys import Keys
from weft.shell.sockets import connect_with
from weft.wire import clients, data, discovery, hop, replication
from weft.wire.discovery import Announcement, Control
from weft.wire.document import frames as dialogue
from weft.wire.document.messages import Chat, Helo
from weft.wire.store import mesh

pytestmark = pytest.mark.prove("a fleet for each door")

TREE = {"root": "", "collector-1": "root", "sensor-1": "collector-1"}
SERVED = {
    zmq.LINGER: 0,
    zmq.MAXMSGSIZE: 1_114_112,
    zmq.HANDSHAKE_IVL: 5_000,
    zmq.HEARTBEAT_IVL: 0,
    zmq.TCP_MAXRT: 30_000,
    zmq.BACKLOG: 512,
    zmq.MECHANISM: zmq.CURVE,
    zmq.CURVE_SERVER: 1,
}
DOORS = {
    "root": "announced clients control data document down mesh publish serve",
    "collector-1": "announced clients control data document down mesh publish serve",
    "sensor-1": "announced clients control document down mesh publish serve",
}
EVIL = b"e" * 16
AT = "127.0.0.1:29999"
WORDS: dict[str, list[list[bytes]]] = {
    "announced": [
        discovery.encode_announcement(
            Announcement("/MARCO", AT, EVIL, {"fleet": "weft", "epoch": epoch, "count": 1, "protocol": 1})
        )
        for epoch in (4, 4_000_000)
    ],
    "control": [
        discovery.encode_call(Control("stop", AT, EVIL, {})),
        discovery.encode_call(Control("polo", AT, EVIL, {"fleet": "weft", "name": "evil", "protocol": 1})),
    ],
    "down": [
        hop.seal(hop.Hello(v=1, role="node", name=name, id=EVIL, era=era, first=1, next=1))
        for name, era in (("evil", 1), ("sensor-1", 1 << 62))
    ],
    "serve": [replication.seal_ask(replication.ICanHaz("/"))],
    "mesh": [
        mesh.encode(mesh.Hello(fabric="weft", node=name, boot=boot, endpoint=AT))
        for name, boot in (("evil", 1), ("root", 1 << 62))
    ],
    "clients": [clients.encode(clients.Hello(v=1, role="client", name="evil", id=EVIL))],
    "data": [data.encode(data.DataHugz(source=AT))],
    "document": [dialogue.encode(Helo(AT)), dialogue.encode(Chat("evil"))],
    "publish": [],
}
"""What an intruder says at a door: well made, where a made one could do something."""


@pytest.mark.proves("SEC-010")
def test_every_bound_socket_of_a_closed_node_has_keys_and_limits(tmp_path: Path) -> None:
    async def main() -> None:
        async with Hall(tmp_path, TREE, {}) as hall:
            for name in hall.up:
                assert DOORS[name].split() == sorted(hall.doors(name))
                assert [] == list(_wrong_options(hall, name))

    asyncio.run(main())


def _wrong_options(hall: Hall, name: str) -> Iterator[tuple[str, int, Any]]:
    """Of every bound socket that has a port: what is not as it should be."""
    process = hall.up[name]
    ends = [end for end in process.links.ends.values() if end.places and end.name not in LOCAL]
    bound = [(end.name, made) for end in ends for made in end.sockets.values()]
    for channel, made in (*bound, *(("document", made) for made in process.doc_doors.routers())):
        size = {zmq.MAXMSGSIZE: 4_194_304} if channel == "document" else {}
        domain = {zmq.ZAP_DOMAIN: b"weft-publish" if channel == "publish" else b"weft"}
        for option, expected in {**SERVED, **size, **domain}.items():
            if made.getsockopt(option) != expected:
                yield channel, option, made.getsockopt(option)


LOCAL = {"doc-clients"}
"""Bound in the state directory only, with its modes."""


class Intruder:
    """Speaks to doors from another context, with the keys that it has, if any."""

    def __init__(self, keys: Keys | None) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.keys = keys
        self.heard: list[list[bytes]] = []
        self._open: list[zmq.Socket[bytes]] = []

    def knock(self, endpoint: str, kind: str, words: list[list[bytes]], server: str) -> None:
        made = self.context.socket(getattr(zmq, kind))
        made.setsockopt(zmq.LINGER, 0)
        if self.keys is not None:
            connect_with(made, self.keys, server)
        if kind == "DEALER":
            made.setsockopt(zmq.ROUTING_ID, EVIL)
        if kind == "SUB":
            made.setsockopt(zmq.SUBSCRIBE, b"")
        made.connect(endpoint)
        self._open.append(made)
        self.words = words

    def speak(self) -> None:
        """Say it again to whoever listens, and hear what comes."""
        for made in self._open:
            if made.type != zmq.SUB:
                self._say(made)
            while made.type != zmq.PUB and made.poll(0):
                self.heard.append(made.recv_multipart())

    def _say(self, made: "zmq.Socket[bytes]") -> None:
        with contextlib.suppress(zmq.Again):  # nobody listens
            for frames in self.words:
                made.send_multipart(frames, zmq.NOBLOCK)

    def leave(self) -> None:
        for made in self._open:
            made.close(0)
        self._open.clear()

    def close(self) -> None:
        self.leave()
        self.context.term()


async def _knock_everywhere(hall: Hall, intruder: Intruder, outcome: str) -> None:
    """At each door of each node: it is counted there, no core remembers anything of it, and nothing is answered."""
    for name in hall.up:
        server = hall.fabric.nodes[name].keys.public
        for channel, (endpoint, kind) in hall.doors(name).items():
            before, count = hall.state(name), _counted(hall, name, outcome)

            def is_counted(name: str = name, count: int = count) -> bool:
                intruder.speak()
                return _counted(hall, name, outcome) > count

            intruder.knock(endpoint, kind, WORDS[channel], server)
            await hall.until(is_counted, f"{outcome} at {channel} of {name}")
            intruder.leave()
            assert before == hall.state(name), (name, channel)
            assert [] == intruder.heard, (name, channel)


def _counted(hall: Hall, name: str, outcome: str) -> int:
    process = hall.up[name]
    gates = [process.links.gatekeeper, process.doc_doors.gatekeeper]
    return sum(gate.decided[outcome] for gate in gates if gate is not None)


@pytest.mark.proves("SEC-027")
@pytest.mark.parametrize("outcome", ["no-handshake", "unknown-key"])
def test_who_has_no_key_that_is_known_gets_nothing_at_any_door(tmp_path: Path, outcome: str) -> None:
    async def main() -> None:
        stranger = Keys(*(each.decode() for each in zmq.curve_keypair()))
        async with Hall(tmp_path, TREE, {}) as hall:
            intruder = Intruder(stranger if outcome == "unknown-key" else None)
            try:
                await _knock_everywhere(hall, intruder, outcome)
            finally:
                intruder.close()

    asyncio.run(main())


def _remembered(hall: Hall, name: str) -> dict[str, Any]:
    """What cores remember, but for those that carry the event of a refusal up the road."""
    return {core: kept for core, kept in hall.state(name).items() if core not in ("carrier", "drain")}


def _hears(intruder: Intruder) -> bool:
    intruder.speak()
    return bool(intruder.heard)


REFUSALS = (b"WTF", b"\x84\xa2op\xa6refuse", b"\x83\xa2op\xa6refuse")


def _is_refusal(frames: list[bytes]) -> bool:
    return any(frame.startswith(REFUSALS) for frame in frames)


@pytest.mark.proves("SEC-027", "SEC-026", "CFG-081")
def test_a_key_of_another_role_hears_refusals_and_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with Hall(tmp_path, TREE, {"bridge": "bridge"}) as hall:
            intruder = Intruder(hall.fabric.guests["bridge"].keys)
            for name in hall.up:
                for channel in hall.doors(name):
                    await _be_refused(hall, intruder, name, channel)
            intruder.close()

    asyncio.run(main())


async def _be_refused(hall: Hall, intruder: Intruder, name: str, channel: str) -> None:
    """By its role, at one door: counted, answered where the protocol has an answer, and nothing else."""
    before = _remembered(hall, name)

    def is_counted() -> bool:
        intruder.speak()
        if channel == "publish":
            return _counted(hall, name, "role") > 0
        return hall.up[name].node.refused[channel, "denied"] > 0

    intruder.knock(*hall.doors(name)[channel], WORDS[channel], hall.fabric.nodes[name].keys.public)
    await hall.until(is_counted, f"a refusal at {channel} of {name}")
    if channel in ANSWERED:
        await hall.until(lambda: _hears(intruder), f"an answer of {channel} of {name}")
    intruder.leave()
    assert before == _remembered(hall, name), (name, channel)
    assert [] == [frames for frames in intruder.heard if not _is_refusal(frames)], (name, channel)
    intruder.heard.clear()


ANSWERED = ("control", "serve", "down", "clients")
"""Doors whose protocol has a refusal."""


class Tap:
    """Passes bytes on to a port, and keeps what its client said."""

    def __init__(self, port: int) -> None:
        self.said = bytearray()
        self._port = port
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"tcp://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, there = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, there]
        await asyncio.gather(self._pass(reader, there, self.said), self._pass(back, writer, bytearray()))

    async def _pass(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, kept: bytearray) -> None:
        while data := await source.read(4_096):
            kept += data
            to.write(data)
        to.close()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()


@pytest.mark.proves("SEC-027")
def test_bytes_that_were_recorded_yesterday_open_no_door(tmp_path: Path) -> None:
    async def main() -> None:
        async with Hall(tmp_path, TREE, {"spare": "sensor"}) as hall:
            doors = [(name, channel, door) for name in hall.up for channel, door in hall.doors(name).items()]
            with contextlib.closing(Intruder(hall.fabric.guests["spare"].keys)) as guest:
                for name, channel, (endpoint, kind) in doors:
                    port = int(endpoint.rpartition(":")[2])
                    tap = Tap(port)
                    let_in = _counted(hall, name, "ok")
                    guest.knock(await tap.open(), kind, WORDS[channel], hall.fabric.nodes[name].keys.public)

                    def is_in(name: str = name, let_in: int = let_in) -> bool:
                        guest.speak()
                        return _counted(hall, name, "ok") > let_in

                    await hall.until(is_in, f"the guest at {channel} of {name}")
                    guest.leave()
                    await tap.close()
                    await _replay(hall, name, port, bytes(tap.said))

    asyncio.run(main())


async def _replay(hall: Hall, name: str, port: int, said: bytes) -> None:
    """Greeting, then HELLO, then INITIATE and what followed, as a client would send them."""
    before, count = _remembered(hall, name), _counted(hall, name, "no-handshake")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    answered = b""
    while data := await reader.read(4_096):
        answered += data
    writer.close()
    await hall.until(lambda: _counted(hall, name, "no-handshake") > count, f"recorded bytes at {port} of {name}")
    assert before == _remembered(hall, name)
    assert len(answered) <= 64 + 170 + 12, "a greeting, WELCOME and ERROR: whoever is let in gets READY, too"
    assert b"\x05READY" not in answered
