"""Checks across the groups of a fleet: parents, machines that are named twice, entries without effect."""

from collections.abc import Iterable, Iterator
from typing import Final

from weft.base.endpoints import host_of, is_endpoint, port_of
from weft.base.settings import nearest
from weft.node.fleetparts import Fleet, Group
from weft.node.members import fault_of, is_node, may_meet

BLOCK: Final = 10  # ports of a node
DEPTH_MAX: Final = 6  # nested groups: with the root and the sensors eight tiers (TOP-013)
PAIRS_MAX: Final = 100_000  # pairs of patterns that are compared for a warning: this takes some 0.3 s


def between_groups(fleet: Fleet, metrics: Iterable[str]) -> list[str]:
    """All mistakes that only the whole fleet shows. `metrics`: the shared ones, which some group should use (W01)."""
    mistakes: list[str] = []
    for group in fleet.groups.values():
        mistakes += [*wrong_members(group), *_empty(group), *_parent(group, fleet.groups), *_idle(group)]
    mistakes += _places(fleet)
    used = {name for group in fleet.groups.values() for name in group.metrics}
    mistakes += [f"W01 metric.{name}: no group measures it" for name in sorted(metrics) if name not in used]
    return mistakes


def wrong_members(group: Group) -> Iterator[str]:
    """Member patterns that can match no node (E05)."""
    where = f"group.{group.name}"
    for key, patterns in (("members", group.members), ("exclude", group.exclude)):
        for index, pattern in enumerate(patterns):
            if (fault := fault_of(pattern)) is not None:
                yield f"E05 {where}.{key}[{index}]: {fault}"
    for index, endpoint in enumerate(group.collectors):
        if not is_endpoint(endpoint):
            yield f"E05 {where}.collectors[{index}]: {endpoint!r} is not host:port (write an IPv6 address in brackets)"


def _empty(group: Group) -> Iterator[str]:
    where = f"group.{group.name}"
    if not (group.members or group.collectors or group.labels):
        yield f"E10 {where}: no machine belongs to it: members, collectors or labels are needed"
    if not group.metrics:
        yield f"W02 {where}: measures nothing: metrics are missing"


def _parent(group: Group, groups: dict[str, Group]) -> Iterator[str]:
    where = f"group.{group.name}.parent"
    if group.parent and group.parent not in groups:
        yield f"E08 {where}: there is no group {group.parent!r}{nearest(group.parent, groups)}"
        return
    line = [group.name]
    while (parent := groups[line[-1]].parent) and parent in groups:
        if parent in line:
            if parent == group.name:
                yield f"E09 {where}: forms a circle: {' in '.join([*line, parent])}"
            return
        line.append(parent)
    if len(line) > DEPTH_MAX:
        yield f"E09 {where}: {len(line)} groups deep, {DEPTH_MAX} at most"


def _idle(group: Group) -> Iterator[str]:
    """Patterns that can match no machine, as far as the file alone shows (W03)."""
    if len(group.exclude) * len(group.members) > PAIRS_MAX:
        return
    for index, pattern in enumerate(group.exclude):
        if (
            group.members
            and fault_of(pattern) is None
            and not any(may_meet(pattern, member) for member in group.members)
        ):
            yield f"W03 group.{group.name}.exclude[{index}]: {pattern!r} matches no member, so it excludes nothing"
    for index, pattern in enumerate(group.members):
        if is_node(pattern) and any(may_meet(pattern, other) for other in group.exclude):
            yield f"W03 group.{group.name}.members[{index}]: {pattern!r} is excluded below, so it matches nothing"


def _places(fleet: Fleet) -> Iterator[str]:
    """Nodes that are in several groups, or whose ten ports overlap."""
    seen: dict[str, dict[int, str]] = {}
    for place, endpoint in _named(fleet):
        ports = seen.setdefault(host_of(endpoint).lower(), {})
        yield from _place(endpoint, place, ports)
        ports.setdefault(port_of(endpoint), place)


def _named(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Every node that a group names by its endpoint, with its place in the file."""
    for group in fleet.groups.values():
        for key, endpoints in (("collectors", group.collectors), ("members", group.members)):
            places = [(f"group.{group.name}.{key}[{index}]", text) for index, text in enumerate(endpoints)]
            yield from [(place, endpoint) for place, endpoint in places if is_endpoint(endpoint)]


def _place(endpoint: str, place: str, ports: dict[int, str]) -> Iterator[str]:
    port = port_of(endpoint)
    for other in range(port - BLOCK + 1, port + BLOCK):
        if other != port and other in ports:
            yield f"E06 {place}: {endpoint!r} is less than {BLOCK} ports away from {other} of {ports[other]}"
    if port in ports and _group_of(ports[port]) != _group_of(place):
        yield f"E14 {place}: {endpoint!r} is in {ports[port]}, too: a node belongs to one group"


def _group_of(place: str) -> str:
    return place.rpartition(".")[0]
