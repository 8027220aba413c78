"""Decides who may send what on a closed fabric; only this module uses the table of roles and verbs (SEC-012, SEC-026).

The shell says whose key a message came with (`Source.proved`). Before a core gets the message, `Authority.judge` checks
that a role of that node has the verb, and that the node, the name and the origins in the message are its own. Cores know
nothing of this. Without an `Authority` the fabric is open: everybody may send everything.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from weft.base.effects import Source
from weft.base.endpoints import endpoint_of, host_of, is_endpoint
from weft.base.errors import UNREADABLE, PeerError
from weft.base.keys import (
    BINDING_BYTES_MAX,
    KNOWN_MAX,
    Binding,
    Hex,
    Holder,
    KeyTable,
    Role,
    Trust,
    bound_node,
    decode_binding,
    encode_binding,
    may,
)
from weft.cores.configuration.store import Store
from weft.cores.topology.atlas import Atlas
from weft.node.channels import CHANNELS
from weft.wire import hop
from weft.wire.beacon import Beacon
from weft.wire.catalog import messages as catalog
from weft.wire.discovery import GRANTED, REFUSED, Announcement, Control
from weft.wire.envelope import Asked
from weft.wire.store import mesh

DENIED, NOT_YOURS, NO_KEY = "denied", "not-yours", "no-key"
"""Codes of refusals: no role has the verb; the message speaks for another node; it came without a key."""

COMMANDS: Final[Mapping[str, str]] = {
    "polo": "join",
    "sos": "join",
    "whois": "join",
    "iam": "join",
    "keepcalm": "join",
    "assignment": "assign",
    "stop": "stop",
    "yo": "lead",
    GRANTED: "lead",
    REFUSED: "lead",
}
"""The verb needed for each command of control."""
QUERIES: Final[Mapping[bytes, str]] = {b"dbp.logs": "log", b"dbp.tap": "tap", b"dbp.deregister": "admin"}
"""The verbs of catalog queries that need more than the right to read (CAT-060)."""


def _of_control(message: Any) -> str:
    inner = message.message if isinstance(message, Asked) else message
    return COMMANDS[inner.command] if isinstance(inner, Control) else "join"


def _of_catalog(message: catalog.Message) -> str:
    if message.command == catalog.REQUEST:
        return next((QUERIES[name] for name in message.body if name in QUERIES), "read")
    return CATALOG_VERBS.get(message.command, "read")


CATALOG_VERBS: Final[Mapping[bytes, str]] = {
    catalog.REGISTRATION: "register",
    catalog.UPDATE: "update",
    catalog.BRIDGE: "bridge",
    catalog.TAP: "tap",
}


def _is(verb: str) -> Callable[[Any], str]:
    return lambda _: verb


def _of_annex(channel: str) -> Callable[[Any], str] | None:
    """The verb of an annex's channel; None if there is no such channel."""
    row = CHANNELS.get(channel)
    return _is(row.verb) if row is not None and row.verb else None


VERB_OF: Final[Mapping[str, Callable[[Any], str]]] = {
    "up": _is("serve"),
    "down": _is("link"),
    "announced": _is("lead"),
    "call": _of_control,
    "control": _of_control,
    "updates": _is("serve"),
    "ask": _is("serve"),
    "serve": _is("snapshot"),
    "data": _is("data"),
    "mesh": _is("store"),
    "mesh-call": _is("store"),
    "catalog": _of_catalog,
    "catalog-monitor": _is("register"),
    "catalog-bridge": _is("bridge"),
    "catalog-bridge-dial": _is("bridge"),
    "clients": _is("chain"),
    "document": _is("document"),
}
"""The function that gives the verb of a message, by channel. On other channels messages with a key are refused."""
UNPROVED: Final = frozenset(
    {
        "enrol",  # a joining machine proves a new key, and a token
        "beacon",  # only a hint where a node may be; it has a MAC of its own (BEA-007)
        "catalog-beats",  # only a hint that an instance is alive
        "clients",  # through the socket in the state directory, which only this user can open
        "doc-clients",  # as above
        "catalog",  # as above, or over loopback: a foreign protocol
        "catalog-events",
        "catalog-bridge",  # over loopback; from other machines only with a key
        "catalog-bridge-dial",
        "catalog-relay",  # calling a service needs no permission
        "catalog-call",
        "catalog-monitor",  # copies of messages, made by the service that is registered at that address
        "catalog-values",  # what services on loopback publish
        "catalog-probe",
        "clone-serve",  # a foreign protocol, on loopback only
        "clone-take",
        "clone-ask",
        "clone-follow",
        "store-clients",  # judged when the connection is accepted
        "store-join",
        "store-mqtt",
    }
)
"""Channels on which messages without a key are accepted, and why."""


OF_NODES: Final = frozenset({"weft.metric", "weft.event", "weft.log", "weft.message"})
"""Record types whose origin is one start of a node."""


NUMBER_MAX: Final = (1 << 63) - 1  # the largest configuration number: 63 bits


class _Named(msgspec.Struct, frozen=True):
    """What an assignment says of the nodes that it names."""

    nodes: dict[str, Hex] = {}
    """The UUID of the node at each endpoint."""
    keys: dict[Hex, Annotated[str, Meta(max_length=BINDING_BYTES_MAX)]] = {}
    """Bindings by UUID, as they are in the sender's configuration."""
    number: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] = 0
    """The number of that configuration."""


class Claim(NamedTuple):
    """The identity that a message claims for its sender. None or empty: it claims none."""

    uuid: bytes | None = None
    name: str = ""
    items: Sequence[hop.HopItem] = ()
    """Origins of the records that it carries."""
    registers: str = ""
    """The name of a service that it registers."""


class _Registration(msgspec.Struct):
    name: Annotated[str, Meta(max_length=255)] = ""


_registration: Final = msgspec.json.Decoder(_Registration)


def _claim_of_registration(message: catalog.Message) -> Claim:
    if message.command not in (catalog.REGISTRATION, catalog.UPDATE) or not message.body:
        return Claim()
    try:
        return Claim(registers=_registration.decode(message.body[0]).name)
    except UNREADABLE:
        return Claim()  # the core reports what is wrong with it


def _claim_of_control(message: Control) -> Claim:
    name = message.properties.get("name", "")
    is_about_sender = message.command != "assignment"  # an assignment names other nodes
    return Claim(message.uuid, name if isinstance(name, str) else "") if is_about_sender else Claim()


CLAIMS: Final[Mapping[type, Callable[[Any], Claim]]] = {
    hop.Hello: lambda message: Claim(message.id, message.name),
    hop.Hop: lambda message: Claim(items=message.m),
    Announcement: lambda message: Claim(message.uuid),
    Control: _claim_of_control,
    mesh.Hello: lambda message: Claim(name=message.node),
    catalog.Message: _claim_of_registration,
}


class Authority:
    """The known nodes, their addresses, and what each may send. `trust`: what enrolment told at the start.

    Once the configuration has bindings, only nodes with a binding count. Of two bindings of one node the one that ends
    later is in force: a node that joins again after a long absence has an old configuration, and a newer binding from
    joining.

    While a node was away, all its possible parents may have changed their keys. It would learn the new keys from a parent,
    but can no longer reach one. So a collector's assignment carries the bindings of the nodes that it names. They count
    until the node's own configuration is as new as the one from which they were taken (SEC-013).
    """

    def __init__(self, trust: Trust) -> None:
        self.table = trust.table()
        self._trusted = {bytes.fromhex(uuid): binding for uuid, binding in trust.bindings.items()}
        """Bindings from joining, before the configuration has any."""
        self.places: dict[str, bytes] = {endpoint: bytes.fromhex(uuid) for endpoint, uuid in trust.places.items()}
        """The node at each endpoint, as others said. A false entry does no harm: the handshake with its key fails."""
        self._bindings: dict[bytes, Binding] = {}
        self._has_bindings = False
        self._number = 0
        self._assigned: dict[bytes, Binding] = {}
        """Bindings from the last assignment, and, next, the number of the configuration they are from."""
        self._assigned_number = 0
        self.has_changed: Callable[[], None] = lambda: None
        """Called when an assignment has changed the table."""
        self._atlas = Atlas()

    def learn(self, pairs: tuple[tuple[str, bytes | None], ...], number: int = 0) -> None:
        """Apply changes of the configuration, now at `number`: bindings, and addresses of nodes.

        An unreadable binding counts as none, so its node has no key.
        """
        self._number = number
        is_changed = bool(self._assigned) and number >= self._assigned_number
        if is_changed:
            self._assigned.clear()
        for key, value in pairs:
            uuid = bound_node(key)
            if uuid is not None:
                is_changed = self._has_bindings = True
                self._bind(uuid, value)
        if is_changed:
            self._make_table()
        self._atlas.apply(pairs, 0)
        if self._atlas.root is not None:
            self.note(self._atlas.root.endpoint, self._atlas.root.node)

    def recall(self, store: Store) -> None:
        """Know the keys of the node's own configuration before a port is bound; cores learn them when there is a parent."""
        pairs = ((pair.key, pair.value) for pair in store.view(""))
        self.learn(tuple(pair for pair in pairs if bound_node(pair[0]) is not None), store.number)

    def _make_table(self) -> None:
        known = self._bindings if self._has_bindings else self._trusted
        self.table = KeyTable.of(
            ({uuid: self._later(uuid, each) for uuid, each in known.items()} | self._assigned).items()
        )

    def _later(self, uuid: bytes, binding: Binding) -> Binding:
        trusted = self._trusted.get(uuid)
        return trusted if trusted is not None and binding.until and trusted.until > binding.until else binding

    def _bind(self, uuid: bytes, value: bytes | None) -> None:
        """A key that is revoked is forgotten, also where joining told of it."""
        self._bindings.pop(uuid, None)
        if not value:
            self._trusted.pop(uuid, None)
            return
        with contextlib.suppress(PeerError):
            self._bindings[uuid] = decode_binding(value)

    def note(self, endpoint: str, uuid: bytes) -> None:
        """Remember an endpoint at which a node says it can be reached."""
        if self.places.get(endpoint) != uuid and is_endpoint(endpoint):
            self.places.pop(endpoint, None)
            if len(self.places) >= KNOWN_MAX:
                del self.places[next(iter(self.places))]
            self.places[endpoint] = uuid

    def nodes_at(self, place: str) -> tuple[bytes, ...]:
        """The nodes that may be at an endpoint.

        For a host alone, an unknown endpoint, or one whose node has no key any more: those that may be on that machine.
        """
        if place in self.places and self.table.node(self.places[place]) is not None:
            return (self.places[place],)
        host = host_of(place) if is_endpoint(place) else place
        placed = [uuid for endpoint, uuid in self.places.items() if host_of(endpoint) == host]
        return tuple(dict.fromkeys([*placed, *(each.uuid for each in self.table if each.host == host)]))

    def may(self, node: bytes, verb: str) -> bool:
        """Whether a node's key gives it that verb. Cores ask this before they give a node a role."""
        holder = self.table.node(node)
        return holder is not None and may(holder.roles, verb)

    def hear(self, source: Source, message: Any) -> None:
        """Note the endpoint that a message states for a node; PeerError if its sender may not state it."""
        self.judge(source, message)
        inner = message.message if isinstance(message, Asked) else message
        if isinstance(inner, Beacon) and inner.port:
            self.note(endpoint_of(source.peer.decode("ascii", "replace"), inner.port), inner.node)
        elif isinstance(inner, Announcement | Control):
            self._note_places(source, inner)

    def _note_places(self, source: Source, message: Announcement | Control) -> None:
        if not isinstance(message, Control) or message.command != "assignment":
            self.note(message.endpoint, message.uuid)
            return
        try:
            named = msgspec.convert(message.properties, _Named)
        except msgspec.ValidationError:
            return  # the core refuses it
        for endpoint, uuid in named.nodes.items():
            self.note(endpoint, bytes.fromhex(uuid))
        if named.number > self._number and source.proved is not None and self.may(source.proved, "serve"):
            self._take_keys(named)

    def _take_keys(self, named: _Named) -> None:
        """Use the bindings of an assignment, in place of those of an earlier one; an unreadable one is left out."""
        found: dict[bytes, Binding] = {}
        for uuid, text in named.keys.items():
            with contextlib.suppress(PeerError):
                found[bytes.fromhex(uuid)] = decode_binding(text.encode())
        self._assigned, self._assigned_number, before = found, named.number, self.table
        self._make_table()
        if self.table != before:
            self.has_changed()

    def told_of(self, nodes: Iterable[bytes]) -> dict[str, Any]:
        """What an assignment of this node says of these nodes' keys: bindings, and the number of the configuration."""
        known = self._bindings if self._has_bindings else self._trusted
        return {
            "keys": {uuid.hex(): encode_binding(known[uuid]).decode() for uuid in nodes if uuid in known},
            "number": self._number,
        }

    def judge(self, source: Source, message: Any) -> None:
        """Raise PeerError if the sender may not send this message: `no-key`, `denied`, `not-yours`."""
        if source.proved is None:
            if source.channel not in UNPROVED:
                raise PeerError(NO_KEY, source.channel)
            return
        holder = self.table.node(source.proved)
        verb_of = VERB_OF.get(source.channel) or _of_annex(source.channel)
        if holder is None or verb_of is None:
            raise PeerError(DENIED, f"{source.proved.hex()} on {source.channel}")
        verb = verb_of(message)
        if not may(holder.roles, verb):
            raise PeerError(DENIED, f"{holder.name} may not {verb}")
        inner = message.message if isinstance(message, Asked) else message
        claim_of = CLAIMS.get(type(inner))
        if claim_of is not None:
            _check(claim_of(inner), holder)


def _check(claim: Claim, holder: Holder) -> None:
    """Raise PeerError `not-yours` for a message in the name of another node."""
    if claim.uuid not in (None, holder.uuid):
        raise PeerError(NOT_YOURS, f"{holder.name} speaks as {claim.uuid.hex() if claim.uuid else ''}")
    if claim.name not in ("", holder.name):
        raise PeerError(NOT_YOURS, f"{holder.name} calls itself {claim.name}")
    if Role.COLLECTOR not in holder.roles and not all(_is_own(item, holder.uuid) for item in claim.items):
        raise PeerError(NOT_YOURS, f"{holder.name} brings records of others")
    if claim.registers and not holder.covers(claim.registers):
        raise PeerError(NOT_YOURS, f"{holder.name} may not register {claim.registers!r}")


def _is_own(item: hop.HopItem, uuid: bytes) -> bool:
    """Whether a node made this record itself: it is the record's origin, and the first to transmit it.

    Records of the store, the catalog and documents have origins that are no nodes: there only the transmitter counts.
    """
    origin = item.mid[0]
    is_other = isinstance(origin, bytes) and origin != uuid and item.type in OF_NODES
    return item.via[:1] == (uuid,) and not is_other
