"""Decides who may send what on a closed fabric; only this module uses the table of roles and verbs (SEC-012, SEC-026).

The shell states whose key a message came with (`Source.proved`). Before a core gets the message, `Authority.judge`
checks that a role of that node has the verb, and that the node, the name and the origins in the message are its own.
Cores know nothing of this. Without an `Authority` the fabric is open, and everybody may send everything.
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
    said = message.message if isinstance(message, Asked) else message
    return COMMANDS[said.command] if isinstance(said, Control) else "join"


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
"""The verb of a message, by its channel. On other channels, messages from nodes with a key are refused."""
UNPROVED: Final = frozenset(
    {
        "enrol",  # a joining machine proves a new key, and a token
        "beacon",  # only a hint, with a MAC of its own (BEA-007)
        "catalog-beats",  # a hint
        "clients",  # through the socket in the state directory, which only this user can open
        "doc-clients",  # as above
        "catalog",  # as above, or over loopback: a foreign protocol
        "catalog-events",
        "catalog-bridge",  # over loopback; from other machines only with a key
        "catalog-bridge-dial",
        "catalog-relay",  # calling a service needs no permission
        "catalog-call",
        "catalog-monitor",  # copies of messages of whoever is registered at that address
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


NUMBER_MAX: Final = (1 << 63) - 1  # the highest bit of a number is never set


class _Told(msgspec.Struct, frozen=True):
    """What an assignment says of the nodes that it names."""

    nodes: dict[str, Hex] = {}
    """Who stands at an endpoint."""
    keys: dict[Hex, Annotated[str, Meta(max_length=BINDING_BYTES_MAX)]] = {}
    """Bindings, as they stand in the sender's configuration."""
    number: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] = 0
    """Of that configuration."""


class Claim(NamedTuple):
    """The identity that a message claims. None or empty: it claims none."""

    uuid: bytes | None = None
    name: str = ""
    items: Sequence[hop.HopItem] = ()
    """Origins of the records that it carries."""
    registers: str = ""
    """The name of a service that it registers."""


class _Named(msgspec.Struct):
    name: Annotated[str, Meta(max_length=255)] = ""


_named: Final = msgspec.json.Decoder(_Named)


def _claim_of_registration(said: catalog.Message) -> Claim:
    if said.command not in (catalog.REGISTRATION, catalog.UPDATE) or not said.body:
        return Claim()
    try:
        return Claim(registers=_named.decode(said.body[0]).name)
    except UNREADABLE:
        return Claim()  # the core reports what is wrong with it


def _claim_of_control(said: Control) -> Claim:
    name = said.properties.get("name", "")
    is_own = said.command != "assignment"  # it names the nodes that it assigns
    return Claim(said.uuid, name if isinstance(name, str) else "") if is_own else Claim()


CLAIMS: Final[Mapping[type, Callable[[Any], Claim]]] = {
    hop.Hello: lambda said: Claim(said.id, said.name),
    hop.Hop: lambda said: Claim(items=said.m),
    Announcement: lambda said: Claim(said.uuid),
    Control: _claim_of_control,
    mesh.Hello: lambda said: Claim(name=said.node),
    catalog.Message: _claim_of_registration,
}


class Authority:
    """The known nodes, their addresses, and what each may send. `trust` comes from enrolment.

    Once the configuration has bindings, only nodes with a binding count. Of two bindings of one node the one that ends
    later is in force: after a long absence a node joins again, and then its stored configuration is older than the
    binding it got on joining.

    A node that was away may know no key of today of any parent that it could have, and only a parent would tell it. So an
    assignment of a collector says the bindings of the nodes that it names; they count until the node's own
    configuration is as new as the one that they are from (SEC-013).
    """

    def __init__(self, trust: Trust) -> None:
        self.table = trust.table()
        self._told = {bytes.fromhex(uuid): binding for uuid, binding in trust.bindings.items()}
        self.places: dict[str, bytes] = {endpoint: bytes.fromhex(uuid) for endpoint, uuid in trust.places.items()}
        """Who stands at an endpoint, as far as it was said; a lie leads to a handshake that fails, and to nobody else."""
        self._bindings: dict[bytes, Binding] = {}
        self._has_bindings = False
        self._number = 0
        self._assigned: dict[bytes, Binding] = {}
        self._assigned_number = 0
        self.has_changed: Callable[[], None] = lambda: None
        """Called when an assignment has changed the table."""
        self._atlas = Atlas()

    def learn(self, pairs: tuple[tuple[str, bytes | None], ...], number: int = 0) -> None:
        """Apply changes of the configuration, whose number is that now: bindings, and addresses of nodes.

        An unreadable binding counts as none: its node then has no key.
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

    def _make_table(self) -> None:
        known = self._bindings if self._has_bindings else self._told
        self.table = KeyTable.of(
            ({uuid: self._later(uuid, each) for uuid, each in known.items()} | self._assigned).items()
        )

    def _later(self, uuid: bytes, binding: Binding) -> Binding:
        told = self._told.get(uuid)
        return told if told is not None and binding.until and told.until > binding.until else binding

    def _bind(self, uuid: bytes, value: bytes | None) -> None:
        self._bindings.pop(uuid, None)
        if value:
            try:
                self._bindings[uuid] = decode_binding(value)
            except PeerError:
                return

    def note(self, endpoint: str, uuid: bytes) -> None:
        """Remember an endpoint at which a node says it can be reached."""
        if self.places.get(endpoint) != uuid and is_endpoint(endpoint):
            self.places.pop(endpoint, None)
            if len(self.places) >= KNOWN_MAX:
                del self.places[next(iter(self.places))]
            self.places[endpoint] = uuid

    def nodes_at(self, place: str) -> tuple[bytes, ...]:
        """The nodes that may be at an endpoint.

        For a host alone, or an unknown endpoint: those that may be on that machine.
        """
        if place in self.places:
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
        said = message.message if isinstance(message, Asked) else message
        if isinstance(said, Beacon) and said.port:
            self.note(endpoint_of(source.peer.decode("ascii", "replace"), said.port), said.node)
        elif isinstance(said, Announcement | Control):
            self._note_places(source, said)

    def _note_places(self, source: Source, said: Announcement | Control) -> None:
        if not isinstance(said, Control) or said.command != "assignment":
            self.note(said.endpoint, said.uuid)
            return
        try:
            told = msgspec.convert(said.properties, _Told)
        except msgspec.ValidationError:
            return  # the core refuses it
        for endpoint, uuid in told.nodes.items():
            self.note(endpoint, bytes.fromhex(uuid))
        if told.number > self._number and source.proved is not None and self.may(source.proved, "serve"):
            self._take_keys(told)

    def _take_keys(self, told: _Told) -> None:
        """Believe the bindings of an assignment, in place of all that another one has said; a bad one is left out."""
        found: dict[bytes, Binding] = {}
        for uuid, text in told.keys.items():
            with contextlib.suppress(PeerError):
                found[bytes.fromhex(uuid)] = decode_binding(text.encode())
        self._assigned, self._assigned_number, before = found, told.number, self.table
        self._make_table()
        if self.table != before:
            self.has_changed()

    def told_of(self, nodes: Iterable[bytes]) -> dict[str, Any]:
        """What an assignment says of the keys of these nodes: their bindings, and the number of the configuration."""
        known = self._bindings if self._has_bindings else self._told
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
        said = message.message if isinstance(message, Asked) else message
        claim_of = CLAIMS.get(type(said))
        if claim_of is not None:
            _check(claim_of(said), holder)


def _check(claim: Claim, holder: Holder) -> None:
    """Raise PeerError `not-yours` for a message in the name of another node."""
    if claim.uuid not in (None, holder.uuid):
        raise PeerError(NOT_YOURS, f"{holder.name} speaks as {claim.uuid.hex() if claim.uuid else ''}")
    if claim.name not in ("", holder.name):
        raise PeerError(NOT_YOURS, f"{holder.name} calls itself {claim.name}")
    if Role.COLLECTOR not in holder.roles and not all(_is_own(item, holder.uuid) for item in claim.items):
        raise PeerError(NOT_YOURS, f"{holder.name} brings records of others")
    if claim.registers and not holder.covers(claim.registers):
        raise PeerError(NOT_YOURS, f"{claim.registers!r} is no name of {holder.name}")


def _is_own(item: hop.HopItem, uuid: bytes) -> bool:
    """Whether a node without children made the record: no other node transmitted it, and its origin is that node.

    For streams with identities of their own (store, catalog, documents) only the transmitting node counts.
    """
    origin = item.mid[0]
    is_other = isinstance(origin, bytes) and origin != uuid and item.type in OF_NODES
    return item.via[:1] == (uuid,) and not is_other
