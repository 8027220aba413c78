"""Which group a node belongs to: by exact endpoint, longest subnet, pattern, or label (TOP-010).

    "10.0.0.7:27500"   this very node               "web*.lab"      any host of that form
    "10.0.0.0/24"      every host of that network   "web*:27500"    the same, on that port only

A group's `labels` match every node that has all of them. `exclude` has the form of `members`.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

from msgspec.structs import replace

from weft.base.endpoints import host_of, is_endpoint
from weft.cores.topology.atlas import Group

EXACT, SUBNET, PATTERN, LABEL = 4, 3, 2, 1
"""Ways to match, the strongest first."""
WILD: Final = "*?["


class Guest(NamedTuple):
    """A node as described in its POLO."""

    node: bytes
    endpoint: str
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    level: str = "auto"
    """The level in its file: `auto`, `sensor` (never a collector), `collector` (always one), `root` (was one)."""
    incarnation: int = 0
    started_at: int = 0
    """When it started, by our monotonic clock, ns; its uptime is in no record (TOP-016)."""


def is_pattern(text: str) -> bool:
    """Whether a member is a pattern or network, and not one endpoint.

    >>> is_pattern("web*:27500"), is_pattern("10.0.0.0/8"), is_pattern("web1"), is_pattern("web1:27500")
    (True, True, True, False)
    """
    return not is_endpoint(text) or any(sign in text.rpartition(":")[0].strip("[]") for sign in WILD)


@lru_cache(maxsize=4096)
def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _is_in(host: str, network: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(host) in network
    except ValueError:
        return False


def strength(member: str, endpoint: str, name: str = "") -> tuple[int, int]:
    """How well one line of `members` matches this node: kind of match and length; (0, 0): not at all.

    >>> strength("10.0.0.0/24", "10.0.0.7:27500"), strength("10.0.0.0/24", "10.0.1.7:27500")
    ((3, 24), (0, 0))
    >>> strength("web*.lab", "web1.lab:27500"), strength("web*:27510", "web1:27500"), strength("web1:1", "web1:1")
    ((2, 7), (0, 0), (4, 6))
    """
    host = host_of(endpoint)
    if (network := _network(member)) is not None:
        return (SUBNET, network.prefixlen) if _is_in(host, network) else (0, 0)
    if member == endpoint:
        return EXACT, len(member)
    bare = member.removeprefix("[").removesuffix("]")
    subjects = (endpoint,) if _has_port(member) else (host, f"[{host}]", name)
    if any(subject and fnmatchcase(subject, form) for subject in subjects for form in (member, bare)):
        return PATTERN, sum(sign not in WILD for sign in member)
    return 0, 0


def _has_port(member: str) -> bool:
    head, colon, port = member.rpartition(":")
    return bool(colon) and (port.isdigit() or port == "*") and (":" not in head or head.endswith("]"))


def best(members: Iterable[str], guest: Guest) -> tuple[int, int]:
    """The best match of several lines."""
    return max((strength(member, guest.endpoint, guest.name) for member in members), default=(0, 0))


def wanted(group: Group, guest: Guest) -> tuple[int, int]:
    """How well a group matches a node; (0, 0): not at all, or it is excluded."""
    if best(group.exclude, guest) > (0, 0):
        return 0, 0
    found = best((*group.collectors, *group.members), guest)
    carried = dict(guest.labels)
    if found == (0, 0) and group.labels and all(carried.get(name) == text for name, text in group.labels.items()):
        return LABEL, len(group.labels)
    return found


class Directory:
    """Finds the group of a node, by an index: a fleet may name each of its nodes (CFG-095)."""

    def __init__(self, groups: dict[str, Group]) -> None:
        self._exact: dict[str, dict[str, None]] = {}
        self._patterns: dict[str, Group] = {}
        self._groups = groups
        for name, group in sorted(groups.items()):
            patterns = []
            for member in (*group.collectors, *group.members):
                if is_pattern(member):
                    patterns.append(member)
                else:
                    self._exact.setdefault(member, {})[name] = None
            if patterns or group.labels:
                self._patterns[name] = replace(group, members=tuple(patterns), collectors=())

    def find(self, guest: Guest) -> str | None:
        """The group that matches a node best; between equal matches, the first by name; None: no group matches."""
        strongest, found = (0, 0), None
        for name in self._exact.get(guest.endpoint, ()):
            if best(self._groups[name].exclude, guest) == (0, 0):
                return name
        for name, group in self._patterns.items():
            if (much := wanted(group, guest)) > strongest:
                strongest, found = much, name
        return found
