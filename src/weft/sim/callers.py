"""Programs that call services of other networks through their own broker, as clients that know nothing of bridges.

A caller looks a name up, `kind1@b`, calls the address that it gets, and waits for the answer. A call that it gave up is
never repeated: so a call that a service serves twice was repeated on the way (BRI-011).
"""

from typing import Any, Final

import msgspec

from weft.base.endpoints import endpoint_of
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND, Now
from weft.sim.catalog import name_of
from weft.sim.catalogplan import broker_of
from weft.sim.hosts import Host
from weft.sim.plan import CATALOG_PORT
from weft.wire.catalog import commands
from weft.wire.catalog.messages import REPLY, REQUEST, Message

BROKER: Final = "broker"
CALLEE: Final = "callee"
PATIENCE_NS: Final = 5 * SECOND  # after which a lookup, or a call, is given up
PAUSE_NS: Final = (200 * MILLISECOND, 2 * SECOND)  # between two calls
ENDPOINT: Final = b"read"


class CallerProgram:
    """Calls services of another network, one after another."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.broker = host.plan.calls[0]
        self._known = [
            f"{name_of(each.name)}@{net}"
            for each in host.fabric.plan.hosts
            if each.runs == "service" and (net := broker_of(each)) != self.broker
        ]
        self._due_at = 0
        self._calls = 0
        self._wanted = self._call = ""
        """The name being looked up, and the pending call."""
        self._name = ""
        """The name that the pending call is for."""

    def begin(self, now: Now) -> None:
        """Schedule the first call."""
        self._rest(now)

    def _rest(self, now: Now) -> None:
        self._wanted = self._call = ""
        self._due_at = now.mono + self.host.chance.randint(*PAUSE_NS)

    def stop(self, now: Now) -> None:
        """Stop; nobody needs to be told."""

    def hear(self, channel: str, peer: bytes, frames: list[bytes], now: Now) -> None:
        """Take the answer to a lookup or a call; one that comes too late is ignored."""
        is_looked_up = channel == BROKER
        if peer != b"%d" % self._calls or not (self._wanted if is_looked_up else self._call):
            return
        try:
            message = commands.decode(frames)
        except PeerError:
            return
        if is_looked_up:
            self._found(msgspec.json.decode(message.body[0]), now)
        else:
            self._answered(message, now)

    def _found(self, answer: dict[str, Any], now: Now) -> None:
        record = answer.get(self._wanted, {})
        if "port" not in record:  # the service is away, or no port leads to it yet
            self.host.fabric.recorder.meet("a name of another network that cannot be called")
            self._rest(now)
            return
        self._name, self._wanted, self._call = self._wanted, "", f"{self.host.name}/{self.host.starts}/{self._calls}"
        self._due_at = now.mono + PATIENCE_NS
        self.host.connect(CALLEE, endpoint_of(record["ip"], record["port"]), b"%d" % self._calls)
        self._say(CALLEE, ENDPOINT, self._call.encode(), now)

    def _answered(self, message: Message, now: Now) -> None:
        if message.command == REPLY:
            self.host.fabric.recorder.counts["calls across"] += 1
            self.host.note("ok", "called", [self._call, self._name, *(part.decode() for part in message.body)])
        else:
            self.host.fabric.recorder.meet("a call that no bridge carries")
        self._rest(now)

    def wake(self, now: Now) -> None:
        """Give up the pending call, or begin the next."""
        if now.mono < self._due_at:
            return
        if self._wanted or self._call:
            self.host.fabric.recorder.meet("a call without an answer")
            self._rest(now)
        elif self._known:
            self._calls += 1
            self._wanted = self.host.chance.choice(self._known)
            self._due_at = now.mono + PATIENCE_NS
            where = endpoint_of(self.host.fabric.address_of(self.broker), CATALOG_PORT)
            self.host.connect(BROKER, where, b"%d" % self._calls)
            self._say(BROKER, REQUEST, self._wanted.encode(), now)
        else:
            self._rest(now)

    def _say(self, channel: str, command: bytes, body: bytes, now: Now) -> None:
        self.host.say(channel, commands.encode(Message(command, b"%d" % (now.wall // SECOND), (body,))))

    def deadline(self) -> int | None:
        """When to be woken."""
        return self._due_at

    def act(self) -> None:
        """Nothing to do: messages are sent at once."""

    def waits(self, core: Any) -> str:  # noqa: ARG002  # asked of every program
        """Nothing that another party would have to wait for."""
        return ""

    def noted(self, what: str) -> None:
        """Its process has changed; no checker uses that."""
