"""Runs the service core in an event loop: carries out its effects, and gives it what arrives (CAT-023)."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from random import SystemRandom
from typing import Any, Final

import zmq

from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Effect, Reply, Send, SendFailed, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.client.catalog.discovery import BeaconListener, reached, servers_of
from weft.client.catalog.errors import CatalogError, error_of
from weft.client.catalog.servicelimits import COPIES_MAX, COPIES_TOGETHER, COPY_WITHIN_S, FRAME_BYTES_MAX, LINGER_MS
from weft.client.catalog.sockets import Datagrams, Plug
from weft.client.link.keyring import PLAIN, Keyring
from weft.client.link.sockets import Bounds, Context
from weft.cores.service.core import Service as Core
from weft.cores.service.messages import (
    BEACONS,
    BEATS,
    BROKER,
    COPIES,
    MONITOR,
    Denied,
    Lost,
    Passed,
    Registered,
    ServiceSettings,
    Start,
    Stop,
    Update,
    Updated,
)
from weft.wire.catalog import beats, commands, taps
from weft.wire.catalog.messages import Beacon, Beat, Message

MONITOR_BOUNDS: Final = Bounds(FRAME_BYTES_MAX, COPIES_MAX)


class Driver:
    """One service core and its sockets to the broker. `tell` is called with each of the core's events."""

    def __init__(
        self,
        settings: ServiceSettings,
        context: Context,
        tell: Callable[[Any], None],
        keyring: Keyring | None = None,
    ) -> None:
        self.core = Core(settings, Chance(SystemRandom().getrandbits(64)))
        self._context, self._tell, self._keyring = context, tell, keyring
        self._server, self._calls = PLAIN, 0
        """The key expected at the current broker, and the number of connections so far: if several keys may be right, each
        connection tries the next one."""
        self._loop = asyncio.get_running_loop()
        self._dealer: Plug | None = None
        self._monitors: dict[bytes, Plug] = {}
        """Sockets for copies of messages, by tap."""
        self._flusher: asyncio.Handle | None = None
        """The call of `_flush`."""
        self._noted = 0
        """Copies that wait for it."""
        self._beacons: BeaconListener | None = None
        self._beats = Datagrams(self._hear_beats)
        self._timer: asyncio.TimerHandle | None = None
        self._asked: dict[int, asyncio.Future[Updated]] = {}
        self._tickets = 0
        self._is_pumping = self._is_stopping = False

    async def start(self, beacon_port: int) -> None:
        """Begin to register. With `beacon_port` 0 no beacons are received.

        Unreachable if the port cannot be opened and the settings name no seeds; with seeds beacons are not needed.
        """
        if beacon_port:
            try:
                self._beacons = await BeaconListener.open(beacon_port, self._hear_beacon)
            except CatalogError:
                if not self.core.settings.seeds:
                    raise
        self.command(Start())

    def stop(self) -> None:
        """Tell the broker that the service leaves; the message has `LINGER_MS` to leave."""
        self._is_stopping = True
        self.command(Stop())
        self._disconnect()
        for tag in list(self._monitors):
            self._close_monitor(tag)
        if self._beacons is not None:
            self._beacons.close()
        self._beats.close()
        for handle in (self._timer, self._flusher):
            if handle is not None:
                handle.cancel()

    def command(self, order: Any) -> None:
        """Give the core an order."""
        self.core.command(order, now())
        self._pump()

    def passed(self, passed: Passed, at: Now) -> bool:
        """A message has passed the service. True: a tap wants it, and gets a copy soon, together with others."""
        is_copied = self.core.taps.note(passed, at)
        if is_copied:
            self._noted += 1
            if self._noted >= COPIES_TOGETHER:
                self.flush_soon()
            elif self._flusher is None:
                self._flusher = self._loop.call_later(COPY_WITHIN_S, self._flush)
        return is_copied

    def flush_soon(self) -> None:
        """Send the noted copies at the end of this turn of the loop."""
        if self._noted:
            self._noted = 0
            if self._flusher is not None:
                self._flusher.cancel()
            self._flusher = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flusher, self._noted = None, 0
        self.core.taps.flush(now())
        self._pump()
        for monitor in self._monitors.values():
            monitor.look()

    async def update(self, changes: dict[str, Any]) -> None:
        """Change the record at the broker; CatalogError if it refuses."""
        self._tickets += 1
        asked = self._asked[self._tickets] = self._loop.create_future()
        try:
            self.command(Update(self._tickets, changes))
            await asked
        finally:
            self._asked.pop(self._tickets, None)

    # Input

    def _hear_broker(self, frames: list[bytes], tag: bytes) -> None:
        with suppress(PeerError):
            self._hear(commands.decode(frames), Source(BROKER, tag))

    def _hear_beacon(self, beacon: Beacon, ip: str) -> None:
        self._hear(beacon, Source(BEACONS, ip.encode()))

    def _hear_beats(self, data: bytes, peer: str) -> None:
        self._hear(beats.decode([data]), Source(BEATS, peer.encode()))

    def _hear(self, message: Any, source: Source) -> None:
        self.core.receive(message, source, now())
        self._pump()

    def _wake(self) -> None:
        self._timer = None
        self.core.wake(now())
        self._pump()

    # Carrying out effects

    def _pump(self) -> None:
        """Carry out the core's effects, and set the timer for its deadline."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while done := self.core.effects():
                for effect in done:
                    _PERFORMS[type(effect)](self, effect)
        finally:  # after any failure, such as no free sockets, the core is woken and tries again
            self._is_pumping = False
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = None if self._is_stopping else self.core.deadline()
        if deadline is not None:
            self._timer = self._loop.call_later(max(0.0, (deadline - time.monotonic_ns()) / 1e9), self._wake)

    def _connect(self, effect: Connect) -> None:
        if effect.channel == MONITOR:
            self._connect_monitor(effect)
            return
        self._disconnect()
        tag = effect.tag
        self._dealer = Plug(self._context, zmq.DEALER, lambda frames: self._hear_broker(frames, tag))
        servers = servers_of(self._keyring, effect.endpoint)
        if servers:
            self._server = servers[self._calls % len(servers)]
            self._calls += 1
            self._dealer.dial(reached(f"tcp://{effect.endpoint}", self._keyring, self._server))

    def _connect_monitor(self, effect: Connect) -> None:
        tag = effect.tag
        made = Plug(self._context, zmq.DEALER, lambda frames: self._hear_monitor(frames, tag), MONITOR_BOUNDS)
        self._monitors[tag] = made
        made.dial(reached(f"tcp://{effect.endpoint}", self._keyring, self._server))

    def _close_monitor(self, tag: bytes) -> None:
        made = self._monitors.pop(tag, None)
        if made is not None:
            made.close(LINGER_MS)

    def _hear_monitor(self, frames: list[bytes], tag: bytes) -> None:
        with suppress(PeerError):
            self._hear(taps.decode(frames), Source(MONITOR, tag))

    def _disconnect(self, effect: Disconnect | None = None) -> None:
        if effect is not None and effect.channel == MONITOR:
            self._close_monitor(effect.peer)
            return
        dealer, self._dealer = self._dealer, None
        if dealer is not None:
            dealer.close(LINGER_MS if self._is_stopping else 0)

    def _send(self, effect: Send) -> None:
        message = effect.message
        if effect.channel in (MONITOR, COPIES):
            monitor = self._monitors.get(effect.peer)
            if monitor is None or not monitor.put(commands.encode(message)):
                self.core.command(SendFailed(effect.channel, effect.peer), now())
            elif effect.channel == MONITOR:
                monitor.look()
        elif isinstance(message, Message) and self._dealer is not None:
            self._dealer.say(commands.encode(message))
        elif isinstance(message, Beat):
            self._beats.send(effect.peer.decode(), beats.encode(message)[0])

    def _reply(self, effect: Reply) -> None:
        asked = self._asked.get(effect.ticket)
        if asked is None or asked.done():
            return
        if isinstance(effect.answer, Denied):
            asked.set_exception(refused(effect.answer))
        else:
            asked.set_result(effect.answer)

    def _tell_event(self, effect: Tell) -> None:
        event = effect.event
        if isinstance(event, Registered) and not event.epoch and self._dealer is not None:
            tag = self.core.tag  # a legacy broker does not announce that it was restarted: its lost connection shows it
            self._dealer.on_lost(lambda: self.command(Lost(tag)))
        self._tell(event)


_PERFORMS: Final[dict[type[Effect], Callable[[Driver, Any], None]]] = {
    Connect: Driver._connect,
    Disconnect: Driver._disconnect,
    Send: Driver._send,
    Reply: Driver._reply,
    Tell: Driver._tell_event,
}


def now() -> Now:
    """The current time by both clocks."""
    return Now(time.monotonic_ns(), time.time_ns())


def refused(denied: Denied) -> CatalogError:
    """The exception for a refusal."""
    return error_of({"Error": denied.text or denied.code, "code": denied.code, "fields": list(denied.fields)})
