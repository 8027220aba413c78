"""Asks an instance whether it is alive (BEA-016, BEA-017).

An instance with a connection is sent `<3` on it, and its `u.u` comes back the same way. Any other is called at its
service address, and any answer is a sign of life. The broker never calls an address that an instance only claims.
"""

import heapq
from collections import OrderedDict
from ipaddress import ip_address, ip_network
from typing import Final

from weft.cores.catalog import limits
from weft.cores.catalog.context import PROBE, Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.records import calling_address
from weft.wire.catalog import times
from weft.wire.catalog.messages import PING, PONG, Message

LOOPBACK: Final = "127.0.0.1"


class Ping:
    """A call that is under way."""

    __slots__ = ("asked_at", "endpoint", "instance", "is_over")

    def __init__(self, instance: Instance, endpoint: bytes, asked_at: int) -> None:
        self.instance, self.endpoint, self.asked_at = instance, endpoint, asked_at
        self.is_over = False


class Probing:
    """Calls to addresses, bounded in number. Instants are of the clock of `liveness.Liveness`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._allowed = [ip_network(network, strict=False) for network in context.settings.probe_allow]
        self._pings: dict[Instance, Ping] = {}
        self._at: dict[bytes, list[Ping]] = {}
        self._waiting: OrderedDict[Instance, None] = OrderedDict()
        """Many after a restart. The first of a plain dict is found only behind all that were taken."""
        self._timeouts: list[tuple[int, int, Ping]] = []
        self._serial = 0
        self._turn_at = -limits.PROBES_TURN_NS
        self._turn_calls = 0

    def __len__(self) -> int:
        """Number of calls under way."""
        return len(self._pings)

    def ask(self, instance: Instance, clock: int) -> None:
        """Call an instance at its service address; later, if too many calls are under way."""
        if instance in self._pings:
            return
        if self._may_call(clock):
            self._call(instance, clock)
        elif instance not in self._waiting:
            self._context.count("probes", "stretched")
            self._waiting[instance] = None

    def forget(self, instance: Instance) -> None:
        """Ignore its answer."""
        self._waiting.pop(instance, None)
        if (ping := self._pings.get(instance)) is not None:
            self._end(ping)

    def hear(self, message: Message, peer: bytes) -> list[Ping]:
        """An answer came from a called address. Returns the calls that it answers.

        A pong that names another service does not count: that service has the port by now.
        """
        name = message.body[0] if message.command == PONG and message.body else b""
        answered = [ping for ping in self._at.get(peer, ()) if not name or name == ping.instance.name.encode()]
        for ping in answered:
            self._end(ping)
        self._context.count("probes", "answered" if answered else "stray")
        return answered

    def wake(self, clock: int) -> None:
        """Drop calls without an answer in time, and make those that wait for room."""
        timeouts = self._timeouts
        while timeouts and timeouts[0][0] <= clock:
            ping = heapq.heappop(timeouts)[2]
            if not ping.is_over:
                self._context.count("probes", "silent")
                self._end(ping)
                if ping.endpoint not in self._at:  # messages left in its queue would all be sent when it returns
                    self._context.disconnect(PROBE, ping.endpoint)
        while self._waiting and self._may_call(clock):
            instance, _ = self._waiting.popitem(last=False)
            self._call(instance, clock)

    @property
    def due_at(self) -> int | None:
        """When the first call times out, or a waiting one may be made."""
        due_at = self._timeouts[0][0] if self._timeouts else None
        if not self._waiting or len(self._pings) >= limits.PROBES_MAX:
            return due_at
        turn_at = self._turn_at + limits.PROBES_TURN_NS
        return turn_at if due_at is None else min(due_at, turn_at)

    def _may_call(self, clock: int) -> bool:
        """Whether one more call may be made: bounded at once, and bounded per turn (CAT-081)."""
        if clock - self._turn_at >= limits.PROBES_TURN_NS:
            self._turn_at, self._turn_calls = clock, 0
        return len(self._pings) < limits.PROBES_MAX and self._turn_calls < limits.PROBES_TURN

    def _call(self, instance: Instance, clock: int) -> None:
        endpoint = self._endpoint(instance)
        if endpoint is None:
            self._context.count("probes", "not-allowed")
            return
        self._turn_calls += 1
        ping = self._pings[instance] = Ping(instance, endpoint, clock)
        self._at.setdefault(endpoint, []).append(ping)
        self._serial += 1
        until = clock + min(instance.interval_ns // 2, limits.PROBE_NS)
        heapq.heappush(self._timeouts, (until, self._serial, ping))
        self._context.count("probes", "sent")
        message = Message(PING, times.write("f32le", self._context.wall), (b"",))
        self._context.send(PROBE, endpoint, message)

    def _end(self, ping: Ping) -> None:
        ping.is_over = True
        del self._pings[ping.instance]
        left = self._at[ping.endpoint]
        left.remove(ping)
        if not left:
            del self._at[ping.endpoint]

    def _endpoint(self, instance: Instance) -> bytes | None:
        """Its service address, if that is where it was observed or where probing is allowed; None: no such address."""
        observed = instance.observed_ip or LOOPBACK
        address = calling_address(instance.record, observed, self._context.settings.rewrite)
        if address is None or not (address.ip == observed or self._is_allowed(address.ip)):
            return None
        host = f"[{address.ip}]" if ":" in address.ip else address.ip
        return f"{host}:{address.port}".encode()

    def _is_allowed(self, ip: str) -> bool:
        if not self._allowed:
            return False
        try:
            address = ip_address(ip)
        except ValueError:  # a host name: only its resolver knows where that leads
            return False
        return any(address in network for network in self._allowed)
