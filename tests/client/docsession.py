"""Real sessions behind the socket that programs speak to, without a node: cores in the loop of the test.

`Hall` joins several of them, so that what one enters is in the others at once, unless it is `cut`.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec
import zmq

from weft.base.effects import Effect, Perform, Persist, Send, Source
from weft.base.now import Now
from weft.base.records import Entry
from weft.cores.document import messages
from weft.cores.document.context import CLIENTS, PEERS
from weft.cores.document.messages import OpenSession, SessionSettings
from weft.cores.document.session import Session
from weft.wire.document import programs
from weft.wire.document.clients import Answer
from weft.wire.document.messages import Envelope


async def until(holds: Callable[[], bool]) -> None:
    """Until something is so; the test is bounded by `in_loop`."""
    while not holds():  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0.005)  # tidy: as above


def uuid_of(number: int) -> bytes:
    """Of the session at a place; a later start has a higher number."""
    return bytes.fromhex(f"a{number:07x}0000400080000000000000{number:02x}")


class Desk:
    """One session and the socket of its programs."""

    def __init__(self, hall: "Hall", directory: Path, number: int, schema: str, operator: str) -> None:
        self.hall, self.number, self.endpoint = hall, number, f"10.0.0.{number}:50000"
        self.state = directory / f"desk{number}"
        self.state.mkdir(exist_ok=True)
        self.place = f"ipc://{self.state / 'doc.sock'}"
        self.settings = SessionSettings(
            name="Hall 5",
            schema=schema,
            uuid=uuid_of(number),
            listen=self.endpoint,
            peers=tuple(f"10.0.0.{other}:50000" for other in range(1, number)),
            mdns=False,
            operator=operator,
        )
        self.session = Session(self.settings)
        self.records: list[Entry] = []
        """What its journal has."""

    def live(self) -> None:
        """Let programs in, and begin."""
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(self.place)
        (self.state / "doc.endpoint").write_text(self.place)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket.FD, self._read)
        loop.call_soon(self._read)
        self.session.restore(self.records, self.hall.now())
        self.order(messages.Begin())

    def die(self) -> None:
        """End without a word to peers."""
        asyncio.get_running_loop().remove_reader(self._socket.FD)
        self._socket.close(200)

    def again(self) -> None:
        """A new start, with what the journal has and a new identity."""
        self.die()
        self.session = Session(msgspec.structs.replace(self.settings, uuid=uuid_of(self.number + 16)))
        self.live()

    def order(self, order: Any) -> None:
        self.session.command(order, self.hall.now())
        self.turn()

    def hear(self, said: Envelope, host: str) -> None:
        """A peer speaks."""
        self.session.receive(said, Source(PEERS, said.sender, kind=host), self.hall.now())
        self.turn()

    def turn(self) -> None:
        """Do what the session wants done."""
        for effect in self.session.effects():
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Persist):
            self.records += [(len(self.records) + place, record) for place, record in enumerate(effect.records, 1)]
        elif isinstance(effect, Send) and effect.channel == CLIENTS:
            self._socket.send_multipart([effect.peer, *programs.encode(effect.message)])
            asyncio.get_running_loop().call_soon(self._read)
        elif isinstance(effect, Send):
            self.hall.carry(self, effect.peer.decode(), Envelope(self.session.context.uuid, effect.message))
        elif isinstance(effect, Perform):
            assert isinstance(effect.work, OpenSession)
            self.hall.later(lambda: self.order(messages.Opened("Hall 5", self.endpoint)))

    def _read(self) -> None:
        while not self._socket.closed and int(self._socket.get(zmq.EVENTS)) & zmq.POLLIN:
            peer, *frames = self._socket.recv_multipart()
            asked = programs.decode(frames)
            if asked.verb == "sessions":  # which the core of the node answers
                told = [{"session": "Hall 5", "state": "open", "schema": self.session.schema.name}]
                self._socket.send_multipart([peer, *programs.encode(Answer(asked.id, told))])
                continue
            self.session.receive(asked, Source(CLIENTS, peer), self.hall.now())
            self.turn()

    def look(self) -> None:
        """What time wants done."""
        due = self.session.deadline()
        if due is not None and due <= self.hall.now().mono:
            self.session.wake(self.hall.now())
            self.turn()


class Hall:
    """All of them; `async with` opens and closes them. Wires are quick and lossless."""

    def __init__(self, directory: Path, desks: int = 1, *, schema: str = "derby", operator: str = "Ann") -> None:
        self._ahead_ns = 0
        self.cut = False
        self.desks = [Desk(self, directory, number, schema, operator) for number in range(1, desks + 1)]
        self._ticker: asyncio.Task[None] | None = None

    def now(self) -> Now:
        """The clock of this machine, and what was passed over."""
        return Now(time.monotonic_ns() + self._ahead_ns, time.time_ns() + self._ahead_ns)  # tidy: the clock of the rig

    def pass_by(self, seconds: float) -> None:
        """So much time goes by in steps of 50 ms, at once."""
        for _ in range(int(seconds * 20)):
            self._ahead_ns += 50_000_000
            for desk in self.desks:
                desk.look()

    async def __aenter__(self) -> Self:
        for desk in self.desks:
            desk.live()
        self._ticker = asyncio.ensure_future(self._tick())
        await until(lambda: all(len(desk.session.peers.active()) == len(self.desks) - 1 for desk in self.desks))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._ticker is not None
        self._ticker.cancel()
        for desk in self.desks:
            desk.die()

    async def _tick(self) -> None:
        while True:
            for desk in self.desks:
                desk.look()
            await asyncio.sleep(0.01)  # tidy: the timer of the rig

    def later(self, do: Any) -> None:
        asyncio.get_running_loop().call_soon(do)

    def carry(self, sender: Desk, endpoint: str, said: Envelope) -> None:
        """A message on its way; after a cut everything is lost until it is mended."""
        [desk] = [desk for desk in self.desks if desk.endpoint == endpoint]

        def arrive() -> None:
            if not self.cut:
                desk.hear(said, sender.endpoint.partition(":")[0])

        self.later(arrive)
