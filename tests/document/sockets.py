"""A session on real sockets in the loop of a test: as a node has it, without journal and programs."""

import asyncio
import time
from typing import Any, Self

import zmq

from tests.patience import PATIENCE_S
from weft.base.effects import Disconnect, Perform, Persist, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.document import messages
from weft.cores.document.messages import Begin, Garbled, LinkFull, Opened, OpenSession, SessionSettings, Stop
from weft.cores.document.session import Session
from weft.shell.docdoors import BETWEEN, SessionLinks
from weft.wire.document import frames, programs
from weft.wire.document.clients import Answer, Asked
from weft.wire.document.messages import Message


class SocketNode:
    """One node of one session; `is_mute`: what it would say is only noted in `said`."""

    def __init__(self, settings: SessionSettings, *, is_mute: bool = False) -> None:
        self.session, self.settings = Session(settings), settings
        self.told: list[Any] = []
        self.answers: dict[bytes, Answer] = {}
        self.said: list[tuple[str, Message]] = []
        self.stirred = asyncio.Event()
        self._is_mute, self._is_turning = is_mute, False
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._links = SessionLinks(self._context, settings.name, self._hear)
        self._timer: asyncio.TimerHandle | None = None
        self._asked = 0

    async def __aenter__(self) -> Self:
        self.order(Begin())
        await self.until(lambda: bool(self.session.context.endpoint))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.order(Stop())
        if self._timer is not None:
            self._timer.cancel()
        self._links.close()
        await asyncio.to_thread(self._context.term)

    @property
    def endpoint(self) -> str:
        return self.session.context.endpoint

    @property
    def uuid(self) -> bytes:
        return self.session.context.uuid

    @property
    def counters(self) -> Any:
        return self.session.context.counters

    @property
    def bodies(self) -> set[bytes]:
        """All operations of the gapless prefix."""
        log = self.session.log
        return {log.body(source, n) for source, latest in log.sources() for n in range(1, latest + 1)}

    # What is done to it

    def order(self, order: Any) -> None:
        self.session.command(order, _now())
        self._turn()

    def ask(self, what: str, **args: Any) -> Any:
        """What a program is answered; the refusal's code if it is one."""
        self._asked += 1
        number = str(self._asked).encode()
        asked = programs.decode(programs.encode_request(Asked(number, what, self.settings.name, args)))
        self.session.receive(asked, Source("doc-clients", b"p"), _now())
        self._turn()
        answer = self.answers[number]
        return answer.code or answer.body

    def _hear(self, source: Source, said: list[bytes]) -> None:
        try:
            heard = frames.decode(said)
        except PeerError as error:
            self.order(Garbled("document", said[0], error.code))
            return
        sender = source.peer.partition(BETWEEN)[2]
        self.session.receive(heard, Source("document", sender, None, source.kind), _now())
        self._turn()

    def _wake(self) -> None:
        self.session.wake(_now())
        self._turn()

    def _turn(self) -> None:
        """Do what follows, until nothing does."""
        if self._is_turning:
            return
        self._is_turning = True
        while effects := self.session.effects():
            for effect in effects:
                self._do(effect)
        self._is_turning = False
        self.stirred.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.session.deadline()
        if due is not None:
            after = max(0, due - time.monotonic_ns()) / SECOND  # tidy: asyncio counts in seconds
            self._timer = asyncio.get_running_loop().call_later(after, self._wake)

    def _do(self, effect: Any) -> None:
        if isinstance(effect, Tell):
            self.told.append(effect.event)
        elif isinstance(effect, Perform):
            assert isinstance(effect.work, OpenSession)
            self.session.command(Opened(effect.work.session, self._links.open(effect.work)), _now())
        elif isinstance(effect, Disconnect):
            self._links.hang_up(effect.peer)
        elif isinstance(effect, Send) and effect.channel == "doc-clients":
            self.answers[effect.message.id] = effect.message
        elif isinstance(effect, Send):
            self._send(effect)
        else:
            assert isinstance(effect, Persist), effect

    def _send(self, effect: Send) -> None:
        endpoint = effect.peer.decode()
        self.said.append((endpoint, effect.message))
        if not self._is_mute and not self._links.send(effect.peer, frames.encode(effect.message)):
            self.session.command(LinkFull(self.settings.name, endpoint), _now())

    # What becomes of it

    async def until(self, is_so: Any) -> None:
        """Wait for it; the log of what was told if it does not come."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not is_so():
                    self.stirred.clear()
                    await self.stirred.wait()
        except TimeoutError:
            raise AssertionError(f"it did not come; told: {self.told}, said: {self.said[-20:]}") from None

    def heard_of(self, kind: type) -> list[Any]:
        """Events of one kind."""
        return [event for event in self.told if isinstance(event, kind)]


def _now() -> Now:
    return Now(time.monotonic_ns(), time.time_ns())


__all__ = ["SocketNode", "messages"]
