"""Where a node of a session listens: `a.b.c.d:port` or `[ipv6]:port`, numeric only (PEE-004, PEE-005).

Each address has one spelling, so two endpoints are the same place exactly if their texts are equal.
"""

import re
from typing import Final

from weft.base.endpoints import address_of
from weft.base.errors import PeerError

PORT_MAX: Final = 65_535
ENDPOINT_CHARACTERS_MAX: Final = 128  # tcp://[45 of them]:65535 has 60
_WRITTEN: Final = re.compile(
    r"(?:tcp://)?(?:\[(?P<six>[0-9A-Fa-f]*:[0-9A-Fa-f:.]+)\]|(?P<four>[0-9.]+))(?::| +)(?P<port>[1-9][0-9]{0,4})"
)


def parse(text: str) -> str:
    """The one way to write this endpoint; PeerError `bad-endpoint` for a host name, or a missing or invalid port.

    `tcp://` in front and a blank for the last colon are accepted; an IPv4 address inside IPv6 becomes plain IPv4.

    >>> parse("tcp://192.168.1.20 50001")
    '192.168.1.20:50001'
    >>> parse("[FE80:0::1]:50001")
    '[fe80::1]:50001'
    """
    written = _WRITTEN.fullmatch(text) if len(text) <= ENDPOINT_CHARACTERS_MAX else None
    if written is None or int(written["port"]) > PORT_MAX:
        raise PeerError("bad-endpoint", "not a.b.c.d:port or [ipv6]:port", text.encode("utf-8", "replace"))
    try:
        return join(written["six"] or written["four"], int(written["port"]))
    except ValueError as error:
        raise PeerError("bad-endpoint", str(error), text.encode()) from None


def join(host: str, port: int) -> str:
    """The endpoint of a numeric host and a port; ValueError for a host that is no address."""
    address = address_of(host.strip("[]"))
    if address is None:
        raise ValueError(f"{host} is no address")
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def split(endpoint: str) -> tuple[str, int]:
    """Host, without brackets, and port of what `parse` or `join` gave.

    >>> split("[fe80::1]:50001")
    ('fe80::1', 50001)
    """
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]"), int(port)


def is_any(host: str) -> bool:
    """Whether it is the wildcard, which nobody can call; False for what is no address (PEE-012)."""
    address = address_of(host.strip("[]"))
    return address is not None and address.is_unspecified
