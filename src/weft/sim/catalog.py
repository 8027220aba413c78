"""Programs of the catalog on machines of their own: services that register at brokers, and watchers that follow one.

A service runs the `service` core, a watcher the follower of the client library; this module has their sockets.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Effect, Send, Source, Tell
from weft.base.endpoints import endpoint_of, host_of
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND, Now
from weft.client.catalog.errors import CatalogError
from weft.client.catalog.following import Ask, Follower, Phase, Reopen, Subscribe
from weft.cores.service.core import Service
from weft.cores.service.messages import (
    BEACONS,
    BEATS,
    BROKER,
    COPIES,
    MONITOR,
    Dropped,
    Passed,
    Registered,
    ServiceSettings,
    Start,
    Stop,
    Update,
)
from weft.cores.service.states import State
from weft.sim.hosts import PORT, Host
from weft.sim.plan import CATALOG_PORT
from weft.wire.catalog import beacon, beats, commands, taps
from weft.wire.catalog.messages import PING, PONG, REPLY, REQUEST, UPDATE, Message

KINDS: Final = 3  # names of services: so few that some have several instances
OPEN: Final[dict[str, Any]] = {"caps": ["tap"], "checks": [{"tcp": "", "interval": 1.0, "timeout": 2.0}]}
"""What a service declares that may be tapped and that its broker shall check."""
ANSWER_NS: Final = 3 * SECOND  # time until a watcher assumes that no answer comes
DECODE: Final[dict[str, Callable[[list[bytes]], Any]]] = {
    BROKER: commands.decode,
    BEACONS: beacon.decode,
    BEATS: beats.decode,
    MONITOR: taps.decode,
}


CHANNEL: Final = {COPIES: MONITOR}
"""Copies go through the socket for reports."""


def name_of(host: str) -> str:
    """The name of the service on a machine; its id is the machine's name."""
    return f"kind{sum(host.encode()) % KINDS}"


class ServiceProgram:
    """A service: it registers, beats, answers probes, and comes back by itself."""

    def __init__(self, host: Host) -> None:
        self.host = host
        plan, fabric = host.plan, host.fabric
        settings = ServiceSettings(
            name=name_of(host.name),
            id=host.name,
            record={"ip": host.address, "port": PORT, **(OPEN if plan.is_open else {})},
            interval_ms=plan.interval_ms,
            seeds=tuple(endpoint_of(fabric.address_of(name), CATALOG_PORT) for name in plan.calls),
            net=plan.net,
        )
        self.core = Service(settings, Chance(f"{fabric.plan.seed}/service/{host.name}/{host.starts}"))
        self._tickets = 0

    def begin(self, now: Now) -> None:
        """Serve, and register."""
        self.host.serve("served")
        self.core.command(Start(), now)

    def stop(self, now: Now) -> None:
        """Say goodbye."""
        self.core.command(Stop(), now)

    def change(self, number: int, now: Now) -> None:
        """Change its own record."""
        self._tickets += 1
        self.core.command(Update(self._tickets, {"metadata": {"number": str(number)}}), now)

    def meddle(self, other: str, now: Now) -> None:
        """Try to change the record of another service, which is not allowed."""
        record = msgspec.json.encode({"name": name_of(other), "id": other, "metadata": {"number": "0"}})
        self._say(UPDATE, now, record)

    def _say(self, command: bytes, now: Now, *body: bytes) -> None:
        self.host.say(BROKER, commands.encode(Message(command, b"%d" % (now.wall // SECOND), body)))

    def hear(self, channel: str, peer: bytes, frames: list[bytes], now: Now) -> None:
        """A message of the broker, or a call; invalid messages are ignored."""
        try:
            if channel == "served":
                self._serve(peer, frames, now)
            else:
                self.core.receive(DECODE[channel](frames), Source(channel, peer), now)
        except PeerError:
            self.host.fabric.recorder.meet("a service that hears what is no message")

    def _serve(self, peer: bytes, frames: list[bytes], now: Now) -> None:
        """Answer a ping; answer a call of another network with its payload and the name of this service."""
        message = commands.decode_call(frames)
        if message.command == PING:
            reply = Message(PONG, message.time, (self.core.settings.name.encode(),), message.envelope)
        else:
            reply = Message(REPLY, message.time, (message.body[-1], self.host.name.encode()), message.envelope)
            self.host.note("info", "served", [message.body[-1].decode()])
        answer = commands.encode(reply)
        self.host.answer(peer, answer)
        if self.core.taps.is_on:
            self.core.taps.note(Passed("in", "router", "", frames, message.command.decode()), now)
            self.core.taps.note(Passed("out", "router", "", answer, message.command.decode()), now)
            self.core.taps.flush(now)

    def wake(self, now: Now) -> None:
        """Time has passed."""
        self.core.wake(now)

    def deadline(self) -> int | None:
        """When to be woken."""
        return self.core.deadline()

    def act(self) -> None:
        """Carry out the core's effects."""
        for effect in self.core.effects():
            if type(effect) in DOES:
                DOES[type(effect)](self, effect)

    def _connect(self, effect: Connect) -> None:
        self.host.connect(effect.channel, effect.endpoint, effect.tag)

    def _send(self, effect: Send) -> None:
        host, fabric = self.host, self.host.fabric
        if effect.channel != BEATS:
            host.say(CHANNEL.get(effect.channel, effect.channel), commands.encode(effect.message))
            return
        broker = fabric.broker_at(host_of(effect.peer.decode()))
        if broker is not None:
            source = f"{host.address}:{PORT}".encode()
            fabric.post(host.name, source, broker, beats.encode(effect.message), "catalog-beats")

    def _tell(self, effect: Tell) -> None:
        event = effect.event
        if isinstance(event, Registered):
            self.host.fabric.recorder.counts["registrations"] += 1
            self.host.fabric.recorder.counts["taken"] += 1
            self.host.note("event", "registered", [event.instance])
        elif isinstance(event, Dropped):
            self.host.fabric.recorder.meet(f"a service dropped: {event.why}")

    def waits(self, core: Any) -> str:
        """What it waits for from its broker."""
        if self.core.state is not State.UP:
            return f"which is {self.core.state.name}"
        known = core.book.get(self.core.settings.name, self.host.name)
        return "" if known is not None and known.is_live else "which is not listed"

    def noted(self, what: str) -> None:
        """Record a change of its process."""
        plan = self.host.plan
        brokers = list(plan.calls or (plan.net,))
        self.host.note("info", "service", [what, name_of(plan.name), plan.interval_ms * MILLISECOND, brokers])


DOES: Final[dict[type[Effect], Callable[[ServiceProgram, Any], None]]] = {
    Connect: ServiceProgram._connect,
    Disconnect: lambda program, effect: program.host.disconnect(effect.channel),
    Send: ServiceProgram._send,
    Tell: ServiceProgram._tell,
}


class WatcherProgram:
    """Follows everything at one broker, with the sockets and queries of the client library."""

    def __init__(self, host: Host) -> None:
        self.host = host
        address = host.fabric.address_of(host.plan.calls[0])
        self._events, self._router = endpoint_of(address, CATALOG_PORT + 1), endpoint_of(address, CATALOG_PORT)
        self.follower = Follower()
        self._topics: list[bytes] = []
        self._asked: tuple[int, bool] | None = None
        """Ticket of the pending query, and whether it asks for everything."""
        self._answer_at = 0

    def begin(self, now: Now) -> None:
        """Open a socket for publications."""
        self._topics.clear()
        self.follower.opened(now.mono)

    def stop(self, now: Now) -> None:
        """Stop; nobody needs to be told."""

    def hear(self, channel: str, peer: bytes, frames: list[bytes], now: Now) -> None:
        """An event, or an answer."""
        if channel == "broker-events":
            self.follower.heard(frames, now.mono)
            self._tell(None)
        elif self._asked is not None and peer == b"%d" % self._asked[0]:
            message = commands.decode(frames)
            if message.command == REPLY:
                self._answered(msgspec.json.decode(message.body[0]), now)

    def _answered(self, answer: dict[str, Any], now: Now) -> None:
        assert self._asked is not None, "an answer to it"
        (ticket, is_whole), self._asked = self._asked, None
        is_waited_for = is_whole and self.follower.phase is Phase.SNAPSHOT
        try:
            self.follower.answered(ticket, answer, now.mono)
        except CatalogError:
            self.follower.failed(ticket, now.mono)
        is_adopted = is_waited_for and self.follower.phase is not Phase.SNAPSHOT
        self._tell(answer if is_adopted else None)

    def _tell(self, adopted: dict[str, Any] | None) -> None:
        """Record its current view as facts."""
        host, follower = self.host, self.follower
        behind = 0
        if adopted is not None:
            behind = adopted["index"]
            names = sorted(f"{one['name']}/{one['instance']}" for one in adopted["records"])
            host.note("ok", "mirrored", [host.name, adopted["epoch"], behind, names])
            host.fabric.recorder.meet("a watcher that takes everything anew")
        for change in follower.changes():
            if change.index > behind:
                host.fabric.recorder.counts["catalog told"] += 1
                instance = f"{change.name}/{change.instance}"
                host.note("ok", "told", [host.name, follower.epoch, change.index, change.op, instance])

    def wake(self, now: Now) -> None:
        """Time has passed."""
        if self._asked is not None and self._answer_at <= now.mono:
            (ticket, _), self._asked = self._asked, None
            self.follower.failed(ticket, now.mono)
        due = self.follower.deadline()
        if due is not None and due <= now.mono:
            self.follower.wake(now.mono)

    def deadline(self) -> int | None:
        """When to be woken."""
        dues = [self.follower.deadline(), self._answer_at if self._asked is not None else None]
        return min((due for due in dues if due is not None), default=None)

    def act(self) -> None:
        """Carry out the follower's actions."""
        now = self.host.now
        for action in self.follower.actions():
            if isinstance(action, Subscribe):
                self._topics.append(action.topic)
            elif isinstance(action, Ask):
                self._ask(action, now)
            elif isinstance(action, Reopen):
                self.host.fabric.recorder.meet("a watcher that hears nothing")
                self.begin(now)
                self.act()
                return
        if self._topics:
            topics, self._topics = tuple(self._topics), []
            self.host.connect("broker-events", self._events, b"", topics)

    def _ask(self, action: Ask, now: Now) -> None:
        """Send a query on a separate socket, whose tag is the ticket."""
        self._asked = action.ticket, action.frames[0] == b"dbp.watch"
        self._answer_at = now.mono + ANSWER_NS
        self.host.connect(BROKER, self._router, b"%d" % action.ticket)
        self.host.say(BROKER, commands.encode(Message(REQUEST, b"%d" % (now.wall // SECOND), action.frames)))

    def waits(self, core: Any) -> str:
        """What it waits for from its broker."""
        follower, context = self.follower, core.context
        is_there = follower.is_live and (follower.epoch, follower.last) == (context.epoch, context.index)
        return "" if is_there else "which has not heard all"

    def noted(self, what: str) -> None:
        """Record a change of its process."""
        if what == "ended":
            self.host.note("ok", "unwatched", [self.host.name])
