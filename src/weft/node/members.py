"""The syntax of a group's members: endpoints, subnets and patterns of names (CFG-070, TOP-010).

"10.0.0.3:27500"       one node; IPv6 in brackets: "[2001:db8::7]:27500"
"10.0.0.0/24"          a subnet; also "2001:db8::/64"
"web*.lab"             host names that match a pattern, with any port
"web*.lab:27500"       the same, with this port only
"""

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from weft.base.endpoints import PORT_MAX, is_endpoint

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address
_PATTERN: Final = re.compile(r"(\[[0-9A-Fa-f:.*?]{1,60}\]|[A-Za-z0-9_.*?-]{1,253})(?::(\d{1,5}|\*))?", re.ASCII)


def is_node(pattern: str) -> bool:
    """Whether a pattern names exactly one node.

    >>> is_node("10.0.0.3:27500"), is_node("web*.lab:27500"), is_node("web9.lab")
    (True, False, False)
    """
    return is_endpoint(pattern)


def fault_of(pattern: str) -> str | None:
    """What is wrong with a pattern, as a sentence; None if nothing is.

    >>> fault_of("10.0.0.0/24"), fault_of("web*.lab:27500")
    (None, None)
    >>> fault_of("2001:db8::7")
    "'2001:db8::7' is not a host, host:port, subnet or pattern (write an IPv6 address in brackets)"
    """
    if "/" in pattern:
        return None if _network(pattern) is not None else f"{pattern!r} is not a subnet such as 10.0.0.0/24"
    match = _PATTERN.fullmatch(pattern)
    if match is None:
        hint = " (write an IPv6 address in brackets)" if pattern.count(":") > 1 else ""
        return f"{pattern!r} is not a host, host:port, subnet or pattern{hint}"
    if match[2] not in (None, "*") and not 1 <= int(match[2]) <= PORT_MAX:
        return f"{match[2]} cannot be the first port of ten: 1 to {PORT_MAX}"
    return None


def may_meet(one: str, other: str) -> bool:
    """Whether some node could match both patterns; true if that cannot be decided.

    >>> may_meet("web9.lab", "web*.lab:27500"), may_meet("db1.lab", "web*.lab"), may_meet("10.0.0.0/8", "10.1.0.0/16")
    (True, False, True)
    """
    a, b = _network(one), _network(other)
    if a is not None and b is not None:
        return a.version == b.version and bool(a.overlaps(b))
    if a is not None or b is not None:
        return _may_be_in(a or b, *_split(other if a is not None else one))
    (host, port), (host_2, port_2) = _split(one), _split(other)
    if port != port_2 and "" not in (port, port_2) and "*" not in (port, port_2):
        return False
    if _is_pattern(host) and _is_pattern(host_2):
        return True
    return fnmatchcase(host, host_2) if _is_pattern(host_2) else fnmatchcase(host_2, host)


def _may_be_in(network: Network | None, host: str, port: str) -> bool:
    """Whether a host pattern could match a node in a subnet. A word without a port may be a node's name: it could."""
    address = _address(host)
    if address is None:
        return _is_pattern(host) or not port
    return network is not None and address in network


def _is_pattern(host: str) -> bool:
    return "*" in host or "?" in host


def _split(pattern: str) -> tuple[str, str]:
    match = _PATTERN.fullmatch(pattern)
    return (str(match[1]).strip("[]").lower(), str(match[2] or "")) if match else (pattern.lower(), "")


@lru_cache(10_000)
def _network(pattern: str) -> Network | None:
    try:
        return ip_network(pattern, strict=False) if "/" in pattern else None
    except ValueError:
        return None


@lru_cache(10_000)
def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
