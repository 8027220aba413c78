"""The tree and its groups, decoded from the replicated store (CFG-020).

    /TOPO/root                   the root of record
    /TOPO/<group>/node/<uuid>    a node's place; each record concerns one node only (CFG-020)
    /CONFIG/<group>/<setting>    members, exclude, labels, collectors, parent, fanout, prefer
    /CONFIG/global/<setting>     heartbeat, dead_after

A value that cannot be decoded counts as absent: the error is the root's that wrote it, and no node stops for it.
"""

from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from weft.base.endpoints import is_endpoint
from weft.base.errors import UNREADABLE
from weft.base.settings import is_plain_name, span_ns
from weft.cores.topology import limits

ROOT_KEY: Final = "/TOPO/root"
RESERVED: Final = ("global", "root")
Text = Annotated[str, Meta(max_length=300)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=limits.PATTERNS_MAX)]


class RootRecord(msgspec.Struct, frozen=True, gc=False):
    """Value of `/TOPO/root`."""

    endpoint: Text
    uuid: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    epoch: Annotated[int, Meta(ge=0)]
    name: Text = ""

    @property
    def node(self) -> bytes:
        return bytes.fromhex(self.uuid)


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """Value of `/TOPO/<group>/node/<uuid>`."""

    endpoint: Text
    level: str
    """`branch` or `leaf`."""
    tier: Annotated[int, Meta(ge=1)]
    parent: Text
    incarnation: int = 0
    name: Text = ""


class Located(msgspec.Struct, frozen=True, gc=False):
    """A node record with the node and group that it belongs to."""

    node: bytes
    group: str
    record: NodeRecord


class Group(msgspec.Struct, frozen=True):
    """The configuration of one group."""

    members: Texts = ()
    exclude: Texts = ()
    collectors: Texts = ()
    labels: dict[str, str] = {}
    parent: Text = ""
    fanout: Annotated[int, Meta(ge=1, le=limits.FANOUT_MAX)] = limits.FANOUT
    prefer: bool = False
    """Whether a returning collector gets its old place again (REC-006)."""


_FIELDS: Final[dict[str, Any]] = {field.name: field.type for field in msgspec.structs.fields(Group)}
_decode_root: Final = msgspec.json.Decoder(RootRecord).decode
_decode_node: Final = msgspec.json.Decoder(NodeRecord).decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def is_group_name(text: str) -> bool:
    """Whether `text` can name a group (CFG-020).

    >>> is_group_name("web"), is_group_name("global"), is_group_name("a/b")
    (True, False, False)
    """
    return is_plain_name(text) and text not in RESERVED


def node_key(group: str, node: bytes) -> str:
    """The key of a node's record."""
    return f"/TOPO/{group}/node/{node.hex()}"


def value_of(record: NodeRecord | RootRecord) -> bytes:
    """A record's value in the store: canonical JSON (CFG-002)."""
    return _encode(record)


class Changes(NamedTuple):
    """The effect of changed pairs: groups with changed settings, nodes with changed records."""

    groups: list[str]
    nodes: list[bytes]


class Atlas:
    """The known tree; `apply` keeps it up to date."""

    def __init__(self) -> None:
        self.root: RootRecord | None = None
        self.nodes: dict[bytes, Located] = {}
        self.groups: dict[str, Group] = {}
        self.heartbeat_ns: int | None = None
        self.dead_after: int | None = None
        self.number = 0
        """Highest number applied: what this node has (REC-010)."""
        self.digest = b""
        """Digest of all pairs at that number (FLD-003)."""
        self.is_partial = False
        """Whether this node has only a part of the configuration: as root it would lose the rest for the whole fleet
        (REC-012).
        """
        self.is_diverged = False
        """Whether the parent has other pairs at that number: then this node may not vote."""
        self._settings: dict[str, dict[str, Any]] = {}
        self._changed = Changes([], [])

    def hold(self, number: int, digest: bytes, *, is_partial: bool = False) -> None:
        """Note the number and digest of the store."""
        self.number, self.digest, self.is_diverged, self.is_partial = number, digest, False, is_partial

    def apply(self, pairs: tuple[tuple[str, bytes | None], ...], number: int) -> Changes:
        """Apply the present values of pairs; None: deleted."""
        self.number = number
        self._changed = Changes([], [])
        for key, value in pairs:
            parts = key.split("/")
            if key == ROOT_KEY:
                self.root = _decoded(_decode_root, value)
            elif len(parts) == 5 and parts[1] == "TOPO" and parts[3] == "node" and len(parts[4]) == 32:
                self._apply_node(parts[2], parts[4], value)
            elif len(parts) == 4 and parts[1:3] == ["CONFIG", "global"]:
                self._apply_global(parts[3], value)
            elif len(parts) == 4 and parts[1] == "CONFIG" and parts[3] in _FIELDS and is_group_name(parts[2]):
                self._apply_setting(parts[2], parts[3], value)
        groups, nodes = self._changed
        return Changes(list(dict.fromkeys(groups)), list(dict.fromkeys(nodes)))

    def _apply_node(self, group: str, text: str, value: bytes | None) -> None:
        try:
            node = bytes.fromhex(text)
        except ValueError:
            return
        self._changed.nodes.append(node)
        record = _decoded(_decode_node, value)
        known = self.nodes.get(node)
        if record is not None and is_endpoint(record.endpoint):
            self.nodes[node] = Located(node, group, record)
        elif known is not None and known.group == group:
            del self.nodes[node]

    def _apply_global(self, name: str, value: bytes | None) -> None:
        if name == "heartbeat":
            self.heartbeat_ns = span_ns(_plain(value, int | float | str)) or None
        elif name == "dead_after":
            count = _plain(value, int)
            self.dead_after = count if isinstance(count, int) and count > 1 else None

    def _apply_setting(self, group: str, name: str, value: bytes | None) -> None:
        settings = self._settings.setdefault(group, {})
        read = _plain(value, _FIELDS[name])
        if read is None:
            settings.pop(name, None)
        else:
            settings[name] = read
        if not settings:
            self._settings.pop(group)
            self.groups.pop(group, None)
        elif group in self.groups or len(self.groups) < limits.GROUPS_MAX:
            self.groups[group] = Group(**settings)
        self._changed.groups.append(group)

    def depth(self, group: str) -> int:
        """The tier of a group's collectors: 1 without a parent.

        TIERS_MAX + 1 if groups are nested too deep or in a circle.
        """
        depth = 1
        while (known := self.groups.get(group)) is not None and known.parent and depth <= limits.TIERS_MAX:
            group, depth = known.parent, depth + 1
        return depth

    def below(self, group: str) -> tuple[str, ...]:
        """The group and all groups below it through `parent`, in order."""
        found = [group]
        for name in found:
            found += sorted(g for g, known in self.groups.items() if known.parent == name and g not in found)
        return tuple(found)

    def voters(self) -> dict[bytes, str]:
        """First-level collectors with their endpoints, without the root of record (REC-010)."""
        return {
            node: known.record.endpoint
            for node, known in sorted(self.nodes.items())
            if known.record.level == "branch" and known.record.tier == 1
        }


def _decoded(decode: Any, value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return decode(value)
    except UNREADABLE:
        return None


def _plain(value: bytes | None, kind: Any) -> Any:
    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=kind)
    except UNREADABLE:
        return None
