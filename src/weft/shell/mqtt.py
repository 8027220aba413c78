"""Connects the store to an MQTT broker (LNK-002, LNK-010): MQTT 3.1.1, clean session, QoS 0, nothing retained.

    link = MqttLink(process.runner, Place.of("127.0.0.1:1883", "weft"), Chance("seed/mqtt"))
    await link.start()  # once the node runs; UserError if a library is not installed, or a port is taken
    await link.close()  # after the store core has sent its last message

From `start` on, what the core sends on channel `store-mqtt` goes to the broker, and messages from there are posted on
that channel. The node's own messages come back too: only the core can tell them from those of another node with its
name. The core `store` gets the orders `LinkUp("mqtt")` and `LinkDown("mqtt", why)`. While the link is down, messages
are dropped and not queued, because the store finds missing changes by their numbers.

The library starts a task for each message that is read from its iterator, and waits after each message that is sent. Both
are slow. So received messages are taken before the library queues them, and of a burst only the last message is waited for.
"""

import asyncio
import contextlib
import importlib
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.endpoints import host_of, port_of
from weft.base.errors import UserError
from weft.cores.store.messages import LinkDown, LinkUp
from weft.node.storetable import EMBEDDED
from weft.shell.broker import LOOPBACK, Broker
from weft.shell.mqttlogin import NO_LOGIN, Login, Sealer
from weft.shell.runner import NodeRunner

if TYPE_CHECKING:
    from weft.shell.mqttsession import Session

CHANNEL: Final = "store-mqtt"
LINK: Final = "mqtt"
TOPICS: Final = ("update", "info", "ping", "del", "wping")
PORT: Final = 1883  # MQTT's own, if none is configured
QUEUE: Final = 10_000  # messages waiting for the broker (LNK-022)
QUEUE_BYTES: Final = 64 << 20  # the same in bytes, because one message may have a megabyte
RETRY_S: Final = (0.5, 30.0)  # LNK-002: the first pause, doubled each time up to the last
RETRY_SHARE: Final = 0.2
STEADY_S: Final = 10.0  # after a connection that lasted so long, the next pause is the first one again


class Place(NamedTuple):
    """The broker's address, and the topic prefix of the store."""

    host: str
    port: int
    root: str
    is_embedded: bool = False

    @classmethod
    def of(cls, broker: str, root: str) -> Self:
        """From `[store] broker`: `host:port`, `embedded`, `embedded:port`.

        >>> Place.of("embedded", "weft")
        Place(host='127.0.0.1', port=1883, root='weft', is_embedded=True)
        """
        inside, _, port = broker.partition(":")
        if inside == EMBEDDED:
            return cls(LOOPBACK, int(port or PORT), root, is_embedded=True)
        return cls(host_of(broker), port_of(broker), root)


class Ways(NamedTuple):
    """How messages through a broker are protected from others (LNK-030)."""

    login: Login = NO_LOGIN
    sealer: Sealer | None = None
    """Adds a MAC to each message and checks it; None: messages have none."""
    is_required: bool = True
    """Whether messages without a MAC are dropped."""


NO_WAYS: Final = Ways()


class Outbox:
    """Messages that wait for the broker, limited in number and bytes; a message beyond the limits is dropped."""

    def __init__(self, dropped: Counter[str]) -> None:
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._dropped, self._bytes = dropped, 0
        self.is_open = False
        """Whether there is a connection; without one, messages are dropped (LNK-002)."""
        self.filled = asyncio.Event()

    def put(self, topic: str, payload: bytes) -> None:
        """Add a message; never waits."""
        if not self.is_open:
            self._dropped[f"{CHANNEL}:down"] += 1
            return
        if len(self._waiting) >= QUEUE or self._bytes + len(payload) > QUEUE_BYTES:
            self._dropped[f"{CHANNEL}:queue"] += 1
            return
        self._waiting.append((topic, payload))
        self._bytes += len(payload)
        self.filled.set()

    def take(self, count: int) -> list[tuple[str, bytes]]:
        """Remove and return the oldest messages, `count` at most."""
        taken = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        self._bytes -= sum(len(payload) for _, payload in taken)
        if not self._waiting:
            self.filled.clear()
        return taken

    def clear(self) -> None:
        """Drop all messages: the connection is lost."""
        self._dropped[f"{CHANNEL}:down"] += len(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        self.is_open = False
        self.filled.clear()


class MqttLink:
    """Keeps one connection to the broker for the store of a node, and reconnects whenever it ends.

    `dropped`: counts dropped messages, by `store-mqtt:why`. It is the counter of the node's links, so that metrics show it.
    """

    def __init__(
        self,
        runner: NodeRunner,
        place: Place,
        chance: Chance,
        dropped: Counter[str] | None = None,
        ways: Ways = NO_WAYS,
    ) -> None:
        self.place, self._ways = place, ways
        self.dropped: Counter[str] = Counter() if dropped is None else dropped
        self._runner, self._chance = runner, chance
        self._outbox = Outbox(self.dropped)
        self._broker = Broker(place.port) if place.is_embedded else None
        self._topics = {name: "/".join(filter(None, (place.root, name))) for name in TOPICS}
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False

    async def start(self) -> None:
        """Start the embedded broker, if there is one, and begin to connect; does not wait for the connection. UserError."""
        make = _session_class()
        if self._broker is not None:
            await self._broker.start()
        for name, topic in self._topics.items():
            self._runner.inside[CHANNEL, name.encode()] = self._speaker(topic)
        self._task = asyncio.get_running_loop().create_task(self._keep(make))
        self._task.add_done_callback(self._look_after)

    async def close(self) -> None:
        """Send the waiting messages, disconnect, and stop the embedded broker."""
        self._is_closing = True
        if self._task is not None:
            self._task.cancel()  # which `asyncio.wait_for` of Python 3.11 may swallow
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for name in self._topics:
            self._runner.inside.pop((CHANNEL, name.encode()), None)
        if self._broker is not None:
            await self._broker.close()

    def _speaker(self, topic: str) -> Callable[[list[bytes]], None]:
        sealer = self._ways.sealer
        if sealer is None:
            return lambda frames: self._outbox.put(topic, frames[0])
        return lambda frames: self._outbox.put(topic, sealer.seal(topic, frames[0]))

    def _hear(self, source: Source, frames: list[bytes]) -> None:
        """Pass on a message from the broker if its MAC is right, or none is required; else drop and count it."""
        sealer = self._ways.sealer
        if sealer is not None:
            content = sealer.open(self._topics[source.peer.decode()], frames[0])
            if content is not None:
                frames = [content]
            elif self._ways.is_required:
                self.dropped[f"{CHANNEL}:bad-mac"] += 1
                return
        self._runner.post(source, frames)

    def _look_after(self, task: asyncio.Task[None]) -> None:
        """End the node if this task has failed, because nothing else would notice."""
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._runner.break_off(fault)

    async def _keep(self, make: "type[Session]") -> None:
        loop, failures = asyncio.get_running_loop(), 0
        sources = {topic: Source(CHANNEL, name.encode()) for name, topic in self._topics.items()}
        while True:
            session = make(self.place, self._ways.login, sources, self._hear)
            began_at = loop.time()
            why = await session.serve(self._outbox, self._up)
            if self._outbox.is_open:
                self._outbox.clear()
                self._runner.order("store", LinkDown(LINK, why))
            if self._is_closing:
                return
            failures = 0 if session.is_up and loop.time() - began_at >= STEADY_S else failures + 1
            await asyncio.sleep(wait_s(failures, self._chance))

    def _up(self) -> None:
        self._outbox.is_open = True
        self._runner.order("store", LinkUp(LINK))


def wait_s(failures: int, chance: Chance) -> float:
    """Seconds before the next attempt, after so many failures in a row (LNK-002)."""
    first, last = RETRY_S
    base = min(first * 2.0 ** min(max(failures - 1, 0), 16), last)
    return base * (1 + chance.uniform(-RETRY_SHARE, RETRY_SHARE))


def _session_class() -> "type[Session]":
    """The class of connections to a broker, imported only if one is configured; UserError `not-installed`."""
    try:
        importlib.import_module("aiomqtt")
    except ImportError as error:
        raise UserError(
            "not-installed", "[store] broker needs aiomqtt, which is not installed", "pip install weft[mqtt]"
        ) from error
    from weft.shell.mqttsession import Session

    return Session
