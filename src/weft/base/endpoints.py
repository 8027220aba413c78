"""Endpoints: `host:port`, where port is the first of a node's ten; IPv6 stands in brackets."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

ANNOUNCEMENTS: Final = 0
CONTROL: Final = 1
UPDATES: Final = 2
SNAPSHOTS: Final = 3
DATA: Final = 4
HTTP: Final = 6
LINK: Final = 7
CLIENTS: Final = 8
MESH: Final = 9
"""The use of each port of a block."""
PORT_MAX: Final = 65_535 - 9
_ENDPOINT: Final = re.compile(r"(\[[0-9A-Fa-f:.%a-z]{2,60}\]|[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253}))?:([0-9]{1,5})")


def is_endpoint(text: str) -> bool:
    """Whether `text` names a host and the first port of a block.

    >>> is_endpoint("10.0.0.1:27500"), is_endpoint("[2001:db8::7]:27500"), is_endpoint("a b:1"), is_endpoint(":27500")
    (True, True, False, False)
    """
    return _has_port(text, PORT_MAX)


def is_address(text: str) -> bool:
    """Whether `text` names a host and any port, with no block behind it.

    >>> is_address("10.0.0.1:65535"), is_endpoint("10.0.0.1:65535"), is_address("10.0.0.1:0")
    (True, False, False)
    """
    return _has_port(text, 65_535)


def _has_port(text: str, most: int) -> bool:
    match = _ENDPOINT.fullmatch(text)
    return match is not None and match[1] is not None and 1 <= int(match[2]) <= most


def host_of(endpoint: str) -> str:
    """The host, without brackets.

    >>> host_of("[2001:db8::7]:27500")
    '2001:db8::7'
    """
    return endpoint.rpartition(":")[0].strip("[]")


def port_of(endpoint: str) -> int:
    """The first port of the block."""
    return int(endpoint.rpartition(":")[2])


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach `host`; False for names other than `localhost`.

    >>> is_loopback("127.0.0.1"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("10.0.0.1")
    (True, True, True, False)
    """
    address = address_of(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is; None for a name. An IPv4 address inside IPv6 becomes itself.

    >>> address_of("::ffff:10.0.0.1"), address_of("sensor.example")
    (IPv4Address('10.0.0.1'), None)
    """
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def shifted(endpoint: str, by: int) -> str:
    """The endpoint of one port of the block.

    >>> shifted("10.0.0.1:27500", UPDATES)
    '10.0.0.1:27502'
    """
    host, _, port = endpoint.rpartition(":")
    return f"{host}:{int(port) + by}"


def endpoint_of(host: str, port: int) -> str:
    """Host and port as one text.

    >>> endpoint_of("::1", 27500)
    '[::1]:27500'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
