"""The ROUTER: messages, connections, and at most one answer per message (CAT-005 to CAT-011, CAT-018 to CAT-021).

A peer that is no DEALER has no connection: it is treated as NEW each time, gets `u.u` where a DEALER gets no answer,
and never gets a message it did not ask for (CAT-006).
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.effects import Source
from weft.base.now import Now
from weft.cores.catalog.asking import Asking
from weft.cores.catalog.book import Book
from weft.cores.catalog.connections import Connections
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import Garbled
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.registry import Registry, owns
from weft.cores.catalog.states import LINK_TABLE, Heard, Link, On, State
from weft.wire.catalog import messages as wire
from weft.wire.catalog import times
from weft.wire.catalog.messages import Message

NOBODY: Final = (Link.CLOSED, Link.IGNORED)
"""States in which messages are ignored."""
OF_DEALERS: Final = (Link.BOUND, Link.CLOSED)
"""States that only a DEALER can have."""
OUTCOMES: Final = {"acknowledge": "acknowledged", "disconnect": "closed", "part": "parted", "note": "noted"}
"""The outcome of a request, for rows that fix it; elsewhere it comes with the answer (CAT-082)."""


class Response(NamedTuple):
    """The input of a row of the table; fields are empty where the input has none."""

    instance: Instance | None = None
    command: bytes = b""
    """Command of the answer."""
    body: tuple[bytes, ...] = ()
    outcome: str = "answered"


class Serving:
    """Answers requests, registers instances, and closes connections that break the rules."""

    def __init__(
        self, context: Context, book: Book, registry: Registry, connections: Connections, queries: Queries
    ) -> None:
        self.context, self.book, self.registry = context, book, registry
        self.connections, self.queries = connections, queries
        self.asking: Asking | None = None
        """Passes lookups on to other networks; None: there is no bridge."""
        queries.add("dbp.deregister", registry.deregister)

    # Hearing

    def hear(self, message: Message, source: Source, now: Now) -> None:
        """Process a message of the ROUTER; it gets at most one answer."""
        self.context.now = now
        kind, _, address = source.kind.partition(" ")
        asker = Asker(source.peer, kind, address, message.envelope, message.time, source.proved is not None)
        if self.context.tap is not None:
            self.context.tap.heard(message, asker)
        link = self._link_of(asker.peer)
        if kind != "DEALER" and link in OF_DEALERS:  # another socket with the same identity
            self._unbind(asker.peer)
            self.connections.clear(asker.peer)
            link = Link.NEW
        if link in NOBODY:
            self.context.count("dropped", link.name.lower())
            return
        if link is Link.BOUND:
            self.connections.note_time(asker)
        hearer = HEARERS.get(message.command)
        if hearer is None:  # the codec lets no other command through
            self._garbled(asker, "unknown-command")
            return
        heard, response = hearer(self, asker, message)
        self._turn(asker, heard, response, message.command)

    def garbled(self, order: Garbled, now: Now) -> None:
        """An unreadable message: counted; after too many, the peer is ignored (R14)."""
        self.context.now = now
        self._link_of(order.peer)
        self._garbled(Asker(order.peer, "", "", (), b""), order.code)

    def _garbled(self, asker: Asker, code: str) -> None:
        if self.connections.count_garbled(asker.peer, code):
            self._turn(asker, Heard.FLOODED, Response(), b"")

    def _link_of(self, peer: bytes) -> Link:
        link = self.connections.state_of(peer)
        if link is Link.IGNORED and self.connections.is_over(peer):
            self._turn(Asker(peer, "", "", (), b""), Heard.MINUTE, Response(), b"")
            return self.connections.state_of(peer)
        return link

    # Unasked

    def push(self, instance: Instance, message: Message) -> bool:
        """Send a message that was not asked for, only to the bound DEALER; False: there is none (CAT-006)."""
        peer = instance.bound
        if not peer or self.connections.state_of(peer) is not Link.BOUND:
            return False
        time = message.time or times.answer(self.connections.time_of(peer), self.context.wall)
        self.context.say(peer, Message(message.command, time, message.body))
        return True

    def failed(self, peer: bytes) -> None:
        """The last message to a peer could not be sent: nothing is pushed to it until it is heard again."""
        self._unbind(peer)

    # Commands: what each is, by the table, and what there is to say

    def _hear_request(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        if self.asking is not None and (elsewhere := self.asking.asks(message.body)) is not None:
            self.asking.ask(asker, *elsewhere)
            return Heard.ASKED, Response(self._bound(asker))
        try:
            return Heard.ASKED, Response(self._bound(asker), wire.REPLY, self.queries.answer(message.body, asker))
        except Refusal as refusal:
            return self._denied(asker, refusal)

    def _hear_registration(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        try:
            plan = self.registry.plan(_first(message), asker)
        except Refusal as refusal:
            return self._denied(asker, refusal)
        if asker.is_dealer and self.connections.state_of(asker.peer) is Link.BOUND:
            return Heard.REGISTERED, Response()  # R12: the table closes the connection, and nothing is registered
        instance = self.registry.enter(plan)
        return Heard.REGISTERED, Response(instance, wire.APPROVED, (self.registry.approval(instance),), "approved")

    def _hear_update(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        try:
            instance = self.registry.update(_first(message), asker, self._bound(asker))
        except Refusal as refusal:
            return self._denied(asker, refusal)
        return Heard.ASKED, Response(instance, wire.AWK, (), "acknowledged")

    def _hear_beat(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        instance = self._named(asker, message)
        return (Heard.STRAY, Response()) if instance is None else (Heard.BEAT, Response(instance))

    def _hear_awk(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        return Heard.AWK, Response(self._bound(asker))

    def _hear_goodbye(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        return Heard.LEFT, Response(self._named(asker, message) or self._bound(asker))

    def _hear_misplaced(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        return Heard.MISPLACED, Response()

    def _refuse_exit(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        return self._denied(asker, Refusal("not-authorised", "no peer may stop or change a broker"))

    def _refuse_peers(self, asker: Asker, message: Message) -> tuple[Heard, Response]:
        return self._denied(asker, Refusal("unsupported", "this broker has no bridges and no taps"))

    def _denied(self, asker: Asker, refusal: Refusal) -> tuple[Heard, Response]:
        """The answer with the reason of a refusal (CAT-008, CAT-080)."""
        self.connections.count_denied(asker, refusal)
        why: dict[str, Any] = {"Error": refusal.why, "code": refusal.code}
        if refusal.service:
            why["service"] = refusal.service
        if refusal.fields:
            why["fields"] = refusal.fields
        return Heard.ASKED, Response(None, wire.DENIED, (msgspec.json.encode(why),), "denied")

    # Rows of the table

    def _turn(self, asker: Asker, heard: Heard, response: Response, command: bytes) -> None:
        """Do what the table says. Without a row nothing happens, and that is counted.

        Only a DEALER's messages change its state.
        """
        before = self.connections.state_of(asker.peer) if asker.is_dealer or not command else Link.NEW
        cell = LINK_TABLE.get((before, heard))
        if cell is None:
            self.context.count("dropped", f"{heard.name.lower()} while {before.name.lower()}")
            return
        getattr(self, cell.do)(asker, response)
        if command:
            self.context.counters["requests", _label(command, OUTCOMES.get(cell.do, response.outcome))] += 1

    def approve(self, asker: Asker, response: Response) -> None:
        """It is registered, and its connection speaks for it."""
        self._heard(asker, response.instance)
        self._bind(asker, response.instance)
        self._say(asker, response.command, response.body)

    def answer(self, asker: Asker, response: Response) -> None:
        """Answer a request; a request of an instance's owner is also a sign of life (BEA-011)."""
        self._heard(asker, response.instance)
        if response.command:  # otherwise another broker is asked first
            self._say(asker, response.command, response.body)

    def acknowledge(self, asker: Asker, response: Response) -> None:
        """Answer a beat with `u.u`; from now on this connection speaks for the instance (BEA-019, CAT-021)."""
        self._heard(asker, response.instance)
        self._bind(asker, response.instance)
        self._say(asker, wire.AWK)

    def disconnect(self, asker: Asker, response: Response) -> None:
        """Send `</3`, and nothing after it; the instance is not changed."""
        self._say(asker, wire.DISCONNECT)
        self._close(asker)

    def part(self, asker: Asker, response: Response) -> None:
        """Close the connection; its instance leaves too (R11, R17)."""
        if response.instance is not None:
            self.registry.move(response.instance, On.LEFT)
        if not asker.is_dealer:
            self._say(asker, wire.AWK)
        self._close(asker)

    def note(self, asker: Asker, response: Response) -> None:
        """It answers our `<3`; that needs no answer (BEA-016, BEA-019)."""
        self._heard(asker, response.instance, "probe")

    def ignore(self, asker: Asker, response: Response) -> None:
        """Ignore it for a minute."""
        self._unbind(asker.peer)
        self.connections.ignore(asker.peer)

    def pardon(self, asker: Asker, response: Response) -> None:
        """The minute is over."""
        self.connections.clear(asker.peer)

    # What rows share

    def _say(self, asker: Asker, command: bytes, body: tuple[bytes, ...] = ()) -> None:
        if not body and not asker.is_dealer:
            body = (b"",)  # existing nodes need one (CAT-007)
        time = times.answer(asker.time, self.context.wall)
        self.context.say(asker.peer, Message(command, time, body, asker.envelope))

    def _heard(self, asker: Asker, instance: Instance | None, via: str = "tcp") -> None:
        """The owner sent a valid message, which is a sign of life."""
        if instance is None or instance.state is State.NONE or self.registry.stays_away(instance):
            return
        self.registry.watcher().heard(instance, via, self.context.now)
        if instance.state is not State.ACTIVE:
            self.registry.move(instance, On.BEAT)

    def _bound(self, asker: Asker) -> Instance | None:
        """The instance that a connection speaks for, if it is still registered and has the same owner."""
        key = self.connections.key_of(asker.peer) if asker.is_dealer else None
        instance = self.book.get(*key) if key else None
        return instance if instance is not None and owns(asker, instance) else None

    def _named(self, asker: Asker, message: Message) -> Instance | None:
        """The asker's own instance that a beat or goodbye names; without a name, the bound one.

        None: none, or several (CAT-021).
        """
        try:
            name, instance_id = (*(frame.decode() for frame in message.body[:2]), "", "")[:2]
        except UnicodeDecodeError:
            return None
        bound = self._bound(asker)
        if bound is not None and name in ("", bound.name) and instance_id in ("", bound.id):
            return None if self.registry.stays_away(bound) else bound
        return self.registry.of_beat(name, instance_id or None, None if asker.is_admin else asker.owner)

    def _bind(self, asker: Asker, instance: Instance | None) -> None:
        if asker.is_dealer and instance is not None:
            self.connections.bind(asker, instance)
            instance.bound = asker.peer

    def _unbind(self, peer: bytes) -> None:
        key = self.connections.key_of(peer)
        instance = self.book.get(*key) if key else None
        if instance is not None and instance.bound == peer:
            instance.bound = b""

    def _close(self, asker: Asker) -> None:
        if asker.is_dealer:
            self._unbind(asker.peer)
            self.connections.close(asker.peer)


@cache
def _label(command: bytes, outcome: str) -> str:
    """The label under which a request is counted; the number of labels is small."""
    return f"{command.decode('latin-1')},{outcome}"


def _first(message: Message) -> bytes:
    """The JSON of a registration or update; further frames are ignored."""
    return message.body[0] if message.body else b""


HEARERS: Final[dict[bytes, Callable[[Serving, Asker, Message], tuple[Heard, Response]]]] = {
    wire.REQUEST: Serving._hear_request,
    wire.REGISTRATION: Serving._hear_registration,
    wire.UPDATE: Serving._hear_update,
    wire.HEARTBEAT: Serving._hear_beat,
    wire.AWK: Serving._hear_awk,
    wire.DISCONNECT: Serving._hear_goodbye,
    wire.EXIT: Serving._refuse_exit,
    wire.HANDLER: Serving._refuse_exit,
    wire.BRIDGE: Serving._refuse_peers,
    wire.TAP: Serving._refuse_peers,
    **dict.fromkeys(
        (wire.REPLY, wire.APPROVED, wire.DENIED, wire.DENIED_TOO, wire.PING, wire.PONG), Serving._hear_misplaced
    ),
}
"""The method for each command."""
