"""Who owns which key, and what each role may do (SEC-012, SEC-024 to 026).

A *binding* says which CURVE keys belong to a node UUID, and which roles it has. Bindings are values of the replicated
configuration, under `/CONFIG/<group>/key/<uuid>` or `/CONFIG/global/key/<uuid>`; a `KeyTable` is made of all that a
node knows. Both are immutable: a change makes another table, and whoever keeps the old one does not see the change.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Annotated, Final, NamedTuple, Self

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE, PeerError

KEYS_PER_NODE_MAX: Final = 2  # the old one and the new one, while a key is rotated (SEC-024)
NAMES_MAX: Final = 64
NAME_BYTES_MAX: Final = 255
BINDING_BYTES_MAX: Final = 32 << 10  # 64 globs of 255 bytes, and room for escapes
UNTIL_MAX: Final = 1 << 40  # seconds: a long time, and a sum of two of them still fits
UUID_BYTES: Final = 16
_Z85: Final = r"^[0-9A-Za-z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}$"
_LINE: Final = re.compile(r'^\s*(public-key|secret-key)\s*=\s*"([^"]{40})"\s*$', re.MULTILINE)
_PATH: Final = re.compile(r"/CONFIG/([A-Za-z0-9_][A-Za-z0-9_.-]{0,62})/key/([0-9a-f]{32})")


class Role(IntEnum):
    """What a key is for; the numbers are those of tokens (SEC-021)."""

    SENSOR = 0
    COLLECTOR = 1
    """It may serve nodes below it, be elected, and be the root; its broker may be bridged."""
    OPERATOR = 2
    SERVICE = 3
    READER = 4
    BRIDGE = 5
    """A broker that is no node of the fabric; nodes that bridge are collectors."""


ROLES: Final[dict[str, Role]] = {role.name.lower(): role for role in Role}
"""By the names that bindings and commands use."""

_S, _C, _O, _V, _R, _B = Role
VERBS: Final[dict[str, frozenset[Role]]] = {
    "join": frozenset({_S, _C}),  # ask for a place, tell its name, ask for another parent
    "link": frozenset({_S, _C}),  # send up what was measured and taken
    "data": frozenset({_S, _C}),  # samples on the port of foreign nodes
    "snapshot": frozenset({_S, _C, _O, _R}),  # read the configuration
    "serve": frozenset({_C}),  # be the parent: configuration, receipts, places
    "lead": frozenset({_C}),  # announce itself, run an election, vote in it
    "assign": frozenset({_C, _O}),  # place a node
    "stop": frozenset({_C, _O}),
    "store": frozenset({_S, _C}),  # take part in the mesh of the store
    "document": frozenset({_S, _C, _O}),  # take part in a session
    "chain": frozenset({_O, _V}),  # attach to the chains of a node from elsewhere
    "read": frozenset(Role),  # ask the catalog
    "register": frozenset({_S, _C, _O, _V}),
    "update": frozenset({_S, _C, _O, _V}),
    "log": frozenset({_S, _C, _O, _V}),
    "tap": frozenset({_O}),
    "admin": frozenset({_O}),
    "bridge": frozenset({_C, _B}),  # who may be the root may give itself either
}
"""Who may do what (SEC-025). A verb without a row is allowed to nobody; other conditions, such as the epoch of a root,
are checked by the cores.

Orders of people, pages of a node and clients of its store have no row, since no key is proved there: they are for the
node's user on its own machine, as the kernel reports it, and for whoever has the node's token.
"""


def may(roles: Iterable[Role], verb: str) -> bool:
    """Whether one of the roles has that verb (SEC-026); an unknown verb is denied.

    >>> may({Role.SENSOR}, "link"), may({Role.SENSOR}, "assign"), may({Role.OPERATOR}, "no such verb")
    (True, False, False)
    """
    return not VERBS.get(verb, frozenset()).isdisjoint(roles)


Z85 = Annotated[str, Meta(pattern=_Z85)]
Glob = Annotated[str, Meta(min_length=1, max_length=NAME_BYTES_MAX)]


class Binding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of `/CONFIG/<group>/key/<uuid>`; unknown fields are ignored, so that newer nodes may say more."""

    curve: Annotated[tuple[Z85, ...], Meta(min_length=1, max_length=KEYS_PER_NODE_MAX)]
    """Public keys in Z85: the one in force, and behind it the one that follows while the key is rotated."""
    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """Of the node, or of the person."""
    roles: Annotated[tuple[str, ...], Meta(min_length=1, max_length=len(Role))]
    """Names of `ROLES`; one that this version does not know gives no right."""
    names: Annotated[tuple[Glob, ...], Meta(max_length=NAMES_MAX)] = ()
    """Globs of what a service may register, or of what a reader may read; none: only the role is a limit."""
    host: Annotated[str, Meta(max_length=NAME_BYTES_MAX)] = ""
    """The address that it gave when it joined: so its key is known at an address that no binding names yet."""
    until: Annotated[int, Meta(ge=0, le=UNTIL_MAX)] = 0
    """Seconds since 1970 from which on the keys are not valid; 0: no end."""
    renew: bool = False
    """Whether the node has to make another key, and offer it to the root."""


def encode_binding(binding: Binding) -> bytes:
    """The value to write."""
    return msgspec.json.encode(binding)


def decode_binding(value: bytes) -> Binding:
    """The binding in a value; PeerError `bad-binding`."""
    if len(value) > BINDING_BYTES_MAX:
        raise PeerError("bad-binding", f"{len(value)} bytes", value)
    try:
        return _decoder.decode(value)
    except UNREADABLE as error:
        raise PeerError("bad-binding", str(error), value) from None


_decoder: Final = msgspec.json.Decoder(Binding)


def binding_key(uuid: bytes, group: str = "global") -> str:
    """The configuration key of a node's binding."""
    return f"/CONFIG/{group}/key/{uuid.hex()}"


def bound_node(key: str) -> bytes | None:
    """The UUID whose binding is at a key of the configuration; None: no binding is there."""
    match = _PATH.fullmatch(key)
    return bytes.fromhex(match[2]) if match else None


class Holder(NamedTuple):
    """The owner of a key."""

    uuid: bytes
    name: str
    roles: frozenset[Role]
    names: tuple[str, ...]
    until: int
    keys: tuple[str, ...]
    host: str = ""

    def covers(self, name: str) -> bool:
        """Whether that name is among its own (SEC-025)."""
        return not self.names or any(fnmatchcase(name, glob) for glob in self.names)


class KeyTable:
    """The owners of keys. A key that two nodes claim is not valid: the table admits neither of them by it."""

    __slots__ = ("_by_key", "_by_uuid", "_first_until")

    def __init__(self, holders: Iterable[Holder] = ()) -> None:
        self._by_uuid: Final[Mapping[bytes, Holder]] = {holder.uuid: holder for holder in holders}
        by_key: dict[str, Holder | None] = {}
        for holder in self._by_uuid.values():
            for key in dict.fromkeys(holder.keys):
                by_key[key] = None if key in by_key else holder
        self._by_key: Final = {key: holder for key, holder in by_key.items() if holder is not None}
        self._first_until = min((holder.until for holder in self._by_uuid.values() if holder.until), default=0)

    @classmethod
    def of(cls, bindings: Iterable[tuple[bytes, Binding]]) -> Self:
        """The table of bindings by UUID; of one UUID the last counts."""
        return cls(
            Holder(uuid, each.name, _roles_of(each.roles), each.names, each.until, each.curve, each.host)
            for uuid, each in bindings
        )

    def find(self, key: str) -> Holder | None:
        """The owner of a key, given in Z85; None: unknown."""
        return self._by_key.get(key)

    def node(self, uuid: bytes) -> Holder | None:
        """What is known of a node."""
        return self._by_uuid.get(uuid)

    def at(self, wall_s: int) -> "KeyTable":
        """The table without keys that have expired; itself if there are none."""
        if not self._first_until or wall_s < self._first_until:
            return self
        return KeyTable(each for each in self if not each.until or wall_s < each.until)

    def __iter__(self) -> Iterator[Holder]:
        return iter(self._by_uuid.values())

    def __len__(self) -> int:
        return len(self._by_uuid)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyTable) and self._by_uuid == other._by_uuid

    __hash__ = None  # type: ignore[assignment]  # nobody keeps tables in a set


class Keys(NamedTuple):
    """A CURVE pair in Z85; its repr hides the secret, so no log, crash file or status can show it (SEC-047)."""

    public: str
    secret: str

    def __repr__(self) -> str:
        return f"Keys(public={self.public!r}, secret=...)"


def pair_of(text: str) -> Keys | None:
    """The pair in a certificate in pyzmq's form; None: there is none. Whether the halves fit is not checked."""
    found = dict(_LINE.findall(text))
    return Keys(found["public-key"], found["secret-key"]) if len(found) == 2 else None  # tidy: both halves


KNOWN_MAX: Final = 16_384  # nodes, and places: a fabric has 10,000 nodes
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class Trust(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The keys that a node knows before it has the configuration."""

    bindings: Annotated[dict[Hex, Binding], Meta(max_length=KNOWN_MAX)] = {}
    """By UUID in hex: its own, the root's, its parents'. They are valid until the configuration has bindings."""
    places: Annotated[dict[str, Hex], Meta(max_length=KNOWN_MAX)] = {}
    """UUID in hex of the node at an endpoint (`host:port`, first port of a block)."""

    def table(self) -> KeyTable:
        """The keys that it knows by this alone."""
        return KeyTable.of((bytes.fromhex(uuid), binding) for uuid, binding in self.bindings.items())


def _roles_of(names: Iterable[str]) -> frozenset[Role]:
    return frozenset(ROLES[name] for name in names if name in ROLES)
