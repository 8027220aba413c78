"""Assignments on the wire: encoded as properties of a control message, and decoded (TOP-012)."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.base.endpoints import is_endpoint
from weft.base.errors import PeerError
from weft.cores.topology import limits
from weft.cores.topology.atlas import is_group_name
from weft.cores.topology.memory import Place
from weft.wire.discovery import LEVEL_NAMES
from weft.wire.replication import EPOCH_MAX, Wtf

Text = Annotated[str, Meta(max_length=300)]
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class Assigned(msgspec.Struct, frozen=True, gc=False):
    """The properties of an assignment; unknown ones are ignored."""

    parent: Text
    root: Text
    level: Text
    group: Text = ""
    tier: Annotated[int, Meta(ge=1, le=limits.TIERS_MAX + 1)] = 1
    epoch: Annotated[int, Meta(ge=0, le=EPOCH_MAX)] = 0
    alternates: Annotated[tuple[Text, ...], Meta(max_length=limits.ALTERNATES_MAX)] = ()
    below: Annotated[tuple[Text, ...], Meta(max_length=limits.GROUPS_MAX)] = ()
    name: Text = ""
    acting: bool = False
    root_uuid: Annotated[str, Meta(pattern="^([0-9a-f]{32})?$")] = ""
    nodes: Annotated[dict[Text, Hex], Meta(max_length=limits.ALTERNATES_MAX + 2)] = {}
    """The nodes at these endpoints: a node with keys connects only to nodes whose key it knows (SEC-013)."""


def parse_assignment(properties: dict[str, Any]) -> tuple[Place, bytes]:
    """The place and the root's UUID (empty if absent) from decoded properties.

    PeerError `assignment` for anything that is not a valid place.
    """
    try:
        assigned = msgspec.convert(properties, Assigned)
    except msgspec.ValidationError as error:
        raise PeerError("assignment", str(error)) from None
    if assigned.level not in LEVEL_NAMES or not all(
        map(is_endpoint, (assigned.parent, assigned.root, *assigned.alternates))
    ):
        raise PeerError("assignment", f"level {assigned.level}, parent {assigned.parent}, root {assigned.root}")
    if not all(is_group_name(group) for group in (assigned.group or "all", *assigned.below)):
        raise PeerError("assignment", f"group {assigned.group}")
    place = Place(
        parent=assigned.parent,
        parent_name=assigned.name,
        root=assigned.root,
        level=assigned.level,
        group=assigned.group,
        tier=assigned.tier,
        epoch=assigned.epoch,
        alternates=assigned.alternates,
        below=assigned.below,
        is_acting=assigned.acting,
    )
    return place, bytes.fromhex(assigned.root_uuid)


def properties_of(
    place: Place,
    root: bytes,
    node_at: Callable[[str], bytes | None] = lambda _: None,
    keys_of: Callable[[Iterable[bytes]], dict[str, Any]] = lambda _: {},
) -> dict[str, Any]:
    """The properties of an assignment to `place` by the root with that UUID.

    `node_at`: returns the node at an endpoint. `keys_of`: what is said of the keys of nodes; nothing without keys.
    """
    known = {endpoint: node_at(endpoint) for endpoint in (place.parent, *place.alternates)} | {place.root: root}
    properties: dict[str, Any] = {
        "parent": place.parent,
        "root": place.root,
        "level": place.level,
        "group": place.group,
        "tier": place.tier,
        "epoch": place.epoch,
        "alternates": list(place.alternates),
        "root_uuid": root.hex(),
        "nodes": {endpoint: node.hex() for endpoint, node in known.items() if node},
    }
    properties |= keys_of(filter(None, known.values()))
    if place.level == "branch":
        properties["below"] = list(place.below)
    if place.parent_name:
        properties["name"] = place.parent_name
    if place.is_acting:
        properties["acting"] = True
    return properties


def epoch_named(wtf: Wtf) -> int:
    """The epoch in the text of a refusal; -1: the text has none.

    >>> epoch_named(Wtf(9, "epoch 3 is led by 10.0.0.1:27500")), epoch_named(Wtf(9, "too old"))
    (3, -1)
    """
    words = wtf.text.split()
    is_said = len(words) > 1 and words[0] == "epoch" and words[1].isascii() and words[1].isdigit()
    return min(int(words[1][:9]), EPOCH_MAX) if is_said else -1


def root_named(wtf: Wtf) -> str:
    """The endpoint with which the text of a refusal ends; empty: none.

    >>> root_named(Wtf(12, "the root is 10.0.0.1:27500")), root_named(Wtf(12, "not root"))
    ('10.0.0.1:27500', '')
    """
    word = wtf.text.rpartition(" ")[2]
    return word if is_endpoint(word) else ""
