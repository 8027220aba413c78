"""One connection to an MQTT broker, from connecting to its end. Imported only where a broker is configured."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from typing import Any, Final

import aiomqtt
from paho.mqtt import client as paho
from paho.mqtt.reasoncodes import ReasonCode

from weft.base.effects import Source
from weft.shell.mqtt import Outbox, Place  # tidy: loaded late, because only a configured broker needs the library
from weft.shell.mqttlogin import NO_LOGIN, Login

PATIENCE_S: Final = 5.0  # for each answer of the broker
KEEPALIVE_S: Final = 15  # a broker that is silent for so long is pinged, and disconnected after as long again
BURST: Final = 256  # messages that are sent or posted together
BURST_BYTES: Final = 4 << 20
NODELAY: Final = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages must not wait for further ones
REFUSED: Final = 128  # an answer to a subscription from here on is a refusal
Post = Callable[[Source, list[bytes]], None]

_quiet = logging.getLogger("weft.mqtt")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False
_quiet.setLevel(logging.CRITICAL)


class Inbox:
    """Receives each message before the library queues it, and posts them in bursts.

    The library reads one message per turn of the event loop, and each post may cost the node a sync. So messages are
    collected as long as each turn of the loop brings another one.
    """

    def __init__(self, sources: dict[str, Source], post: Post) -> None:
        self._sources, self._post = sources, post
        self._collected: list[tuple[Source, list[bytes]]] = []
        self._bytes = self._seen = 0

    def hear(self, message: aiomqtt.Message) -> None:
        """Collect a message; all are posted when a turn of the loop brings no further one."""
        source = self._sources.get(message.topic.value)
        if source is None:
            return
        self._collected.append((source, [message.payload]))
        self._bytes += len(message.payload)
        if len(self._collected) == 1:
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        if self._seen < len(self._collected) < BURST and self._bytes < BURST_BYTES:
            self._seen = len(self._collected)
            asyncio.get_running_loop().call_soon(self._look)
            return
        collected, self._collected, self._bytes, self._seen = self._collected, [], 0, 0
        for source, frames in collected:
            self._post(source, frames)


class Client(aiomqtt.Client):
    """The library's client, changed so that messages are received without a task, and sent without waiting for each."""

    def __init__(self, host: str, port: int, inbox: Inbox, login: Login = NO_LOGIN) -> None:
        class Direct(asyncio.Queue[aiomqtt.Message]):
            """Replaces the library's queue, whose reading costs a task per message."""

            def put_nowait(self, item: aiomqtt.Message) -> None:
                inbox.hear(item)

        super().__init__(
            host,
            port,
            logger=_quiet,
            identifier=f"weft-{os.urandom(8).hex()}",  # 3.1.1 allows 23 characters
            queue_type=Direct,
            clean_session=True,
            timeout=PATIENCE_S,
            keepalive=KEEPALIVE_S,
            socket_options=(NODELAY,),
            username=login.user or None,
            password=login.password or None,
            tls_context=login.tls,
        )
        self._disconnected.add_done_callback(_look_at)

    def hand_over(self, topic: str, payload: bytes) -> None:
        """Publish without waiting; MqttError."""
        result = self._client.publish(topic, payload).rc
        if result:
            raise aiomqtt.MqttCodeError(result, "not sent")

    def _on_socket_register_write(self, client: paho.Client, userdata: Any, sock: Any) -> None:
        """Replaces the library's method, which uses the socket's file number, and fails if it was closed meanwhile."""
        del userdata
        self._loop.call_soon_threadsafe(self._watch, client, sock)

    def _watch(self, client: paho.Client, sock: Any) -> None:
        if sock.fileno() >= 0:
            self._loop.add_writer(sock.fileno(), self._write, client)

    def _write(self, client: paho.Client) -> None:
        try:
            client.loop_write()
        except Exception as error:  # noqa: BLE001  # whatever it is, the connection is over
            if not self._disconnected.done():
                self._disconnected.set_exception(error)

    def _on_disconnect(self, *about: Any, **more: Any) -> None:
        """Ignore the end if connecting was cancelled: the library would ask a cancelled future for its result."""
        if not self._connected.cancelled():
            super()._on_disconnect(*about, **more)

    def drop(self) -> None:
        """Close a connection that was never established; the library's own way fails after a cancelled attempt."""
        self._connected = asyncio.get_running_loop().create_future()
        self._client.disconnect()
        opened = self._client.socket()
        if isinstance(opened, socket.socket):  # else the library waits until the other end closes it
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)


class Session:
    """Connects, subscribes, and carries messages both ways until the connection ends."""

    def __init__(self, place: Place, login: Login, sources: dict[str, Source], post: Post) -> None:
        self._topics = list(sources)
        self._client = Client(place.host, place.port, Inbox(sources, post), login)
        self.is_up = False
        """Whether the broker has accepted the connection and its subscriptions."""

    async def serve(self, outbox: Outbox, on_up: Callable[[], None]) -> str:
        """Carry messages until the connection ends; returns why it ended. When cancelled it sends waiting messages first."""
        try:
            async with self._client as client:
                granted = await client.subscribe([(topic, 0) for topic in self._topics])
                if any(code >= REFUSED for code in map(_number, granted)):
                    return "the broker refuses a subscription"
                self.is_up = True
                on_up()
                await self._carry(outbox)
        except (aiomqtt.MqttError, ValueError) as error:
            return str(error) or type(error).__name__
        finally:
            if not self.is_up:
                self._client.drop()
        return "the broker ended the connection"

    async def _carry(self, outbox: Outbox) -> None:
        writing = asyncio.get_running_loop().create_task(self._write(outbox))
        reading = asyncio.get_running_loop().create_task(self._read())
        try:
            done, _ = await asyncio.wait((writing, reading), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except asyncio.CancelledError:
            await self._send(outbox)  # last messages of a stopping node
            raise
        finally:
            for task in (writing, reading):
                task.cancel()
            await asyncio.gather(writing, reading, return_exceptions=True)

    async def _read(self) -> None:
        """Wait for the end of the connection; messages go to the inbox."""
        async for _ in self._client.messages:
            raise AssertionError("nothing is ever queued")

    async def _write(self, outbox: Outbox) -> None:
        while True:
            await outbox.filled.wait()
            await self._send(outbox)

    async def _send(self, outbox: Outbox) -> None:
        """Send the waiting messages burst by burst; wait only for the last one of each burst."""
        while burst := outbox.take(BURST):
            for topic, payload in burst[:-1]:
                self._client.hand_over(topic, payload)
            await self._client.publish(*burst[-1])


def _look_at(ended: "asyncio.Future[None]") -> None:
    """Mark the future's exception as seen: it is read elsewhere, and asyncio logs exceptions that nobody read."""
    if not ended.cancelled():
        ended.exception()


def _number(granted: int | ReasonCode) -> int:
    return granted if isinstance(granted, int) else granted.value
