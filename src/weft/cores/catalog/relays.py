"""Calls across bridges: a ROUTER here ("door") for each imported service that is looked up (BRI-011).

A client that knows nothing of bridges calls `thermo@green` at the address that a lookup gives: a ROUTER of this broker.
A call there goes over the bridge, the broker of that network calls the service once, and the answer comes back. No call
is repeated: a client that gets `unreachable` or `busy` decides for itself. One spare door is always bound ahead. A door
is closed after ten minutes without a call, and a closed door is never used for another service.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.effects import Source
from weft.base.endpoints import endpoint_of
from weft.base.now import MILLISECOND, Now
from weft.cores.catalog import limits, records
from weft.cores.catalog.book import Book
from weft.cores.catalog.bridgelinks import Link
from weft.cores.catalog.context import CALLS, RELAY, Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import CloseRelay, OpenRelay, RelayOpened
from weft.cores.catalog.registry import Registry
from weft.cores.kit.timers import earliest
from weft.wire.catalog import bridges as wire
from weft.wire.catalog import times
from weft.wire.catalog.messages import DENIED, PONG, REPLY, Envelope, Message

InstanceKey = tuple[str, str]
ANSWERS: Final = (REPLY, DENIED, PONG)


class Door(NamedTuple):
    """A ROUTER of this broker that stands for an imported service."""

    tag: bytes
    host: str
    port: int


class Asked(NamedTuple):
    """A call of a client here that is under way over a bridge."""

    peer: bytes
    message: Message
    net: str
    link: Link
    """The link it was sent over; an answer over any other link is ignored."""
    due_at: int


class Carried(NamedTuple):
    """A call of another network that is under way: at a service here, or at a network behind this one."""

    link: Link
    id: int
    due_at: int
    onward: Link | None = None
    """The link to the network behind this one; None: a service here does the call."""


class Relays:
    """All doors, and the calls under way in both directions."""

    def __init__(self, context: Context, book: Book, registry: Registry, link_to: Callable[[str], Link | None]) -> None:
        """`link_to`: returns the bridge to a network."""
        self._context, self._book, self._registry, self._link_to = context, book, registry, link_to
        self._spare: list[Door] = []
        self._doors: dict[InstanceKey, Door] = {}
        self._used_at: OrderedDict[InstanceKey, int] = OrderedDict()
        self._owners: dict[bytes, InstanceKey] = {}
        """By tag of the door."""
        self._ordered = self._tags = self._ids = 0
        self._asked: OrderedDict[int, Asked] = OrderedDict()
        self._carried: OrderedDict[int, Carried] = OrderedDict()

    def __len__(self) -> int:
        return len(self._doors)

    # Doors

    def place_of(self, key: InstanceKey) -> dict[str, Any]:
        """The keys of a record with the address of an imported instance here; empty if it has no door."""
        door = self._doors.get(key)
        if door is None:
            return {}
        place = {"ip": door.host, "port": door.port}
        return {**place, "interfaces": {"router": place}}

    def prepare(self) -> None:
        """Bind a spare door, if there are entries that may need one."""
        if not self._spare and not self._ordered and len(self._doors) < limits.RELAYS_MAX:
            self._ordered += 1
            self._tags += 1
            self._context.perform(OpenRelay(b"%d" % self._tags))

    def opened(self, order: RelayOpened, now: Now) -> None:
        """A door is bound; port 0: no port was free."""
        self._ordered -= 1
        if order.port:
            self._spare.append(Door(order.tag, order.host, order.port))

    def looked_up(self, instance: Instance) -> None:
        """An imported instance was looked up: give it a door."""
        mono = self._context.now.mono
        if instance.key in self._doors:
            self._touch(instance.key, mono)
        elif self._spare:
            door = self._spare.pop()
            self._doors[instance.key], self._owners[door.tag] = door, instance.key
            self._touch(instance.key, mono)
            instance.record = {**instance.record, **self.place_of(instance.key)}
            self._book.weigh(instance, records.cost_of(instance.record))
            self._registry.announce("update", instance)
            self.prepare()

    def _touch(self, key: InstanceKey, mono: int) -> None:
        self._used_at[key] = mono
        self._used_at.move_to_end(key)

    def _close(self, key: InstanceKey) -> None:
        door = self._doors.pop(key)
        del self._used_at[key], self._owners[door.tag]
        self._context.perform(CloseRelay(door.tag))
        instance = self._book.get(*key)
        if instance is not None:
            places = ("ip", "port", "interfaces")
            instance.record = {name: value for name, value in instance.record.items() if name not in places}
            self._registry.announce("update", instance)

    # Calls of clients here

    def hear(self, message: Message, source: Source, now: Now) -> None:
        """A client sent a call to a door."""
        tag = source.peer.partition(b"\0")[0]
        key = self._owners.get(tag)
        if message.command in ANSWERS or key is None:
            self._context.count("bridge_dropped", "no-call")
            return
        self._touch(key, now.mono)
        instance = self._book.get(*key)
        link = self._link_to(instance.net) if instance is not None and instance.is_live else None
        size = sum(map(len, message.body))
        if instance is None or link is None or not link.is_on:
            self._refuse(source.peer, message, "unreachable", f"{key[0]} cannot be reached")
        elif not link.has_credit(size) or len(self._asked) >= limits.CALLS_MAX:
            self._refuse(source.peer, message, "busy", f"too much is under way to {instance.net}")
        else:
            self._forward(source.peer, message, instance, link, now)

    def _forward(self, peer: bytes, message: Message, instance: Instance, link: Link, now: Now) -> None:
        self._ids += 1
        span = limits.CALL_NS
        self._asked[self._ids] = Asked(peer, message, instance.net, link, now.mono + span)
        call = wire.Call(
            id=self._ids,
            net=instance.net,
            name=instance.name.rpartition("@")[0],
            instance=instance.id,
            endpoint=message.command.decode("utf-8", "replace"),
            deadline_ms=span // MILLISECOND,
        )
        link.say(call, message.body)

    def _refuse(self, peer: bytes, message: Message, code: str, why: str) -> None:
        self._context.count("bridge_calls", code)
        self._answer(peer, message, DENIED, (msgspec.json.encode({"Error": why, "code": code}),))

    def _answer(self, peer: bytes, asked: Message, command: bytes, body: tuple[bytes, ...]) -> None:
        self._context.send(RELAY, peer, Message(command, asked.time, body, asked.envelope))

    def returned(self, link: Link, header: wire.Return, frames: tuple[bytes, ...]) -> None:
        """A call was answered: a client's call, or one that was only passed on."""
        asked, carried = self._asked.get(header.id), self._carried.get(header.id)
        if asked is not None and asked.link is link:
            del self._asked[header.id]
            status = header.status.encode() if header.status.encode() in ANSWERS else DENIED
            self._context.count("bridge_calls", "answered")
            self._answer(asked.peer, asked.message, status, frames)
        elif carried is not None and carried.onward is link:
            del self._carried[header.id]
            carried.link.say(wire.Return(carried.id, header.status), frames)
        else:
            self._context.count("bridge_dropped", "no-answer")

    # Calls of other networks

    def carry(
        self, link: Link, call: wire.Call, frames: tuple[bytes, ...], instance: Instance | None, now: Now
    ) -> None:
        """A call of another network: for an instance here or, with transit, for one behind another bridge."""
        if instance is None or not instance.is_live:
            self._return(link, call.id, "unreachable", f"there is no {call.name} to call")
            return
        if len(self._carried) >= limits.CALLS_MAX:
            self._return(link, call.id, "busy", f"{call.name} cannot be called now")
            return
        span = min(call.deadline_ms * MILLISECOND, limits.CALL_NS)
        self._ids += 1
        if instance.is_imported:
            further = self._link_to(instance.net)
            if further is None or not further.has_credit(sum(map(len, frames))):
                self._return(link, call.id, "busy" if further else "unreachable", f"{call.name} cannot be called now")
                return
            onward = msgspec.structs.replace(call, id=self._ids, deadline_ms=max(1, span // MILLISECOND))
            self._carried[self._ids] = Carried(link, call.id, now.mono + span, further)
            further.say(onward, frames)
            return
        address = records.calling_address(instance.record, instance.observed_ip, self._context.settings.rewrite)
        if address is None:
            self._return(link, call.id, "unreachable", f"{call.name} cannot be called now")
            return
        self._carried[self._ids] = Carried(link, call.id, now.mono + span)
        envelope: Envelope = (b"b%d" % self._ids,)
        message = Message(call.endpoint.encode(), times.write("f64le", self._context.wall), frames or (b"",), envelope)
        self._context.send(CALLS, endpoint_of(address.ip, address.port).encode(), message)

    def answered(self, message: Message, source: Source, now: Now) -> None:
        """A service here answered a call of another network."""
        number = message.envelope[0][1:] if message.envelope else b""
        carried = self._carried.get(int(number)) if number.isdigit() else None
        if carried is None or carried.onward is not None or message.command not in ANSWERS:
            self._context.count("bridge_dropped", "no-answer")
            return
        del self._carried[int(number)]
        carried.link.say(wire.Return(carried.id, message.command.decode()), message.body)

    def _return(self, link: Link, number: int, code: str, why: str) -> None:
        link.say(wire.Return(number, DENIED.decode()), (msgspec.json.encode({"Error": why, "code": code}),))

    # Ends

    def lost(self, net: str) -> None:
        """A bridge is down: calls sent over it fail, and calls received over it need no answer."""
        for number in [number for number, asked in self._asked.items() if self._link_to(asked.net) is None]:
            asked = self._asked.pop(number)
            self._refuse(asked.peer, asked.message, "unreachable", f"the bridge to {net} is down")
        for number in [number for number, carried in self._carried.items() if not carried.link.is_on]:
            del self._carried[number]

    def wake(self, now: Now) -> None:
        """Fail calls without an answer in time, and close unused doors."""
        while self._asked and (first := next(iter(self._asked.items())))[1].due_at <= now.mono:
            del self._asked[first[0]]
            self._refuse(first[1].peer, first[1].message, "unreachable", f"{first[1].net} has not answered")
        while self._carried and (carried := next(iter(self._carried.items())))[1].due_at <= now.mono:
            del self._carried[carried[0]]
        while self._used_at and (used := next(iter(self._used_at.items())))[1] + limits.RELAY_IDLE_NS <= now.mono:
            self._close(used[0])

    def deadline(self) -> int | None:
        """When the first call or door times out."""
        asked, carried = next(iter(self._asked.values()), None), next(iter(self._carried.values()), None)
        used = next(iter(self._used_at.values()), None)
        return earliest(
            None if asked is None else asked.due_at,
            None if carried is None else carried.due_at,
            None if used is None else used + limits.RELAY_IDLE_NS,
        )
