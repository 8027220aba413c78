"""A client's connection to its node: hello, beats, loss, and reconnecting with a new socket (CLI-005, CLI-022).

apart     no connection; the next attempt follows after a pause, which doubles from 0.1 s to 1 s
greeting  a new socket is connected, and hello was sent
standing  the node has sent welcome. Each side sends a beat when it has nothing else to send, and ends the connection
          when it has heard nothing for `dead` milliseconds
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from weft.base.errors import PeerError, UserError
from weft.client.chain.limits import BACK_OFF_MAX_S, BACK_OFF_MIN_S, HELLO_S, MULTIPARTS_PER_TURN, TICK_MIN_S
from weft.client.chain.recording import HEARD, SAID, Recording
from weft.client.link.backoff import BackOff
from weft.client.link.channel import Channel
from weft.client.link.sockets import Opener
from weft.wire import clients

LOG: Final = logging.getLogger("weft.client")
BEAT: Final = clients.encode(clients.Beat())
RETRIED: Final = frozenset({"busy"})
"""Refusals after which the client tries again later."""


class Listener(Protocol):
    """What a connection calls: the client."""

    def stand(self, welcome: clients.Welcome) -> None:
        """The node has accepted the client, for the first time or again: send everything that is open."""

    def hear(self, message: clients.Answered) -> None:
        """A message of the node has come."""

    def fall(self) -> None:
        """The connection is lost; the next attempt follows by itself."""

    def give_up(self, error: UserError) -> None:
        """The node refuses this client."""

    def flush(self) -> None:
        """The turn is over: send what the handlers have produced."""

    def is_busy(self) -> bool:
        """Whether handlers should run before more is read."""


class Connection:
    """Keeps one connection open. Use it in a running loop."""

    def __init__(
        self,
        opener: Opener,
        hello: clients.Hello,
        listener: Listener,
        counts: Counter[str],
        tape: Recording | None = None,
    ) -> None:
        self.welcome: clients.Welcome | None = None
        """What the node has said of itself; None while the node has not accepted the client."""
        self._opener, self._hello, self._listener, self._counts = opener, hello, listener, counts
        self._tape = tape
        self._loop = asyncio.get_running_loop()
        self._channel: Channel | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._back_off = BackOff(BACK_OFF_MIN_S, BACK_OFF_MAX_S)
        self._heard_at = self._said_at = 0.0
        self._is_closed = False

    def open(self) -> None:
        """Connect with a new socket, and send hello."""
        try:
            self._channel = Channel(
                self._opener,
                self._hear,
                per_turn=MULTIPARTS_PER_TURN,
                on_turn=self._listener.flush,
                is_busy=self._listener.is_busy,
                on_end=self._break,
            )
        except UserError as error:
            LOG.info("%s", error.text)
            self._reconnect_later()
            return
        self._heard_at = self._loop.time()
        self.say(clients.encode(self._hello))
        self._arm(self._tick_s, self._tick)

    def close(self, why: str = "") -> None:
        """Send bye, and end."""
        if self.welcome is not None:
            self.say(clients.encode(clients.Bye(why)))
        self._is_closed = True
        self._disconnect()
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _tick_s(self) -> float:
        """Seconds between two checks for silence, at least `TICK_MIN_S` whatever the node asks for."""
        return max(self.welcome.beat / 2_000, TICK_MIN_S) if self.welcome else HELLO_S

    @property
    def is_clear(self) -> bool:
        """Whether there is a connection, and everything has been handed to its socket."""
        return self.welcome is not None and self._channel is not None and self._channel.is_clear

    def say(self, frames: list[bytes]) -> None:
        """Send now, or when the queue has room."""
        assert self._channel is not None, "nothing is sent without a connection"
        self._said_at = self._loop.time()
        if self._tape is not None:
            self._tape.write(SAID, frames)
        self._channel.say(frames)

    def work(self) -> None:
        """One turn: read what has arrived, send what that produced, let other tasks run."""
        if self._channel is not None:
            self._channel.work()

    def _hear(self, frames: list[bytes]) -> None:
        self._heard_at = self._loop.time()
        if self._tape is not None:
            self._tape.write(HEARD, frames)
        try:
            message = clients.decode_answered(frames)
        except PeerError as error:
            self._counts[error.code] += 1
            LOG.warning("a message of the node cannot be read: %s", error)
            return
        kind = type(message)
        if kind is clients.Beat:
            return
        if kind is clients.Bye:
            self._break()
        elif isinstance(message, clients.Refuse):
            self._be_refused(message)
        elif isinstance(message, clients.Welcome):
            self._stand(message)
        elif self.welcome is not None:
            self._listener.hear(message)

    def _stand(self, welcome: clients.Welcome) -> None:
        self.welcome = welcome
        self._back_off.reset()
        self._arm(self._tick_s, self._tick)
        self._listener.stand(welcome)

    def _be_refused(self, refusal: clients.Refuse) -> None:
        """A refusal after welcome means that the node has forgotten this client: greet it again."""
        if self.welcome is not None or refusal.why in RETRIED:
            self._break()
            return
        self.close()
        text = f"the node does not take {self._hello.name!r}: {refusal.why} {refusal.text}".rstrip()
        self._listener.give_up(UserError(refusal.why, text, "weft status, and the log of the node"))

    def _tick(self) -> None:
        self.work()  # read first: messages that wait in the socket show that the node is not silent
        welcome, now = self.welcome, self._loop.time()
        if self._channel is None:
            return
        if now - self._heard_at >= (welcome.dead / 1_000 if welcome else HELLO_S):
            self._break()
            return
        if welcome is not None and now - self._said_at >= welcome.beat / 1_000:
            self.say(BEAT)
        self._arm(self._tick_s, self._tick)

    def _break(self) -> None:
        if self._is_closed or self._channel is None:
            return
        self._counts["connections lost"] += self.welcome is not None
        self._disconnect()
        self._listener.fall()
        self._reconnect_later()

    def _disconnect(self) -> None:
        self.welcome = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _reconnect_later(self) -> None:
        if not self._is_closed:
            self._arm(self._back_off.next_s(), self.open)

    def _arm(self, span_s: float, do: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(span_s, do)
