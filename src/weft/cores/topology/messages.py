"""What the topology core hears and says."""

import msgspec

from weft.wire.beacon import Beacon

__all__ = [
    "Beacon",
    "NameTaken",
    "NodeSeen",
    "NodeVanished",
    "ParentAssigned",
    "ParentMoved",
    "Stop",
    "TopologySettings",
]


class TopologySettings(msgspec.Struct, frozen=True, kw_only=True):
    """This node's place, as its own file says it."""

    fleet: str
    name: str
    level: str
    """`root`, `collector` or `sensor`."""
    parent: str = ""
    """A node's name, found by its beacon; or `host:port` of its port block; empty: none (the root)."""
    base_port: int
    beacons: bool = True


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: say goodbye."""


class ParentAssigned(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent is at this endpoint (`host:port` of its node link)."""

    endpoint: str
    name: str


class ParentMoved(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent of that name is now found at another endpoint."""

    endpoint: str
    name: str


class NameTaken(msgspec.Struct, frozen=True, gc=False):
    """Event: an older live node of this fleet has our name; this node, the newer one, has to end (specs/00, 1)."""

    name: str
    node: bytes
    """The UUID of the one who had the name before."""


class NodeSeen(msgspec.Struct, frozen=True, gc=False):
    """Event: a node of this fleet is heard that was not known."""

    name: str
    level: str


class NodeVanished(msgspec.Struct, frozen=True, gc=False):
    """Event: a known node left, or has not been heard for four beacons."""

    name: str
    level: str
