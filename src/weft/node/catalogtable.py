"""`[catalog]` of a node's file: whether the node is a broker of services, and its addresses (docs/catalog.md)."""

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from weft.base.endpoints import is_address
from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import span_ns

PORT: Final = 5_246
PORT_MAX: Final = 65_535
BEACON_PORT: Final = 5_245
SPARE_PORTS: Final = range(5_250, 5_300)
"""Ports to try if a socket's own port is taken (CAT-002)."""
SPANS_NS: Final = {
    "beacon": (200 * MILLISECOND, 60 * SECOND),
    "hold_max": (SECOND, 3_600 * SECOND),
    "reap": (60 * SECOND, 10**9 * SECOND),
    "pause": (100 * MILLISECOND, 60 * SECOND),
}
NET_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
NET_CHARACTERS_MAX: Final = 32  # BEA-001

Count = Annotated[int, Meta(ge=1, le=10_000_000)]


class CheckTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[catalog.check.NAME]`: how the broker tries some services: by one of `tcp`, `http`, `zmq`, `command` (BEA-024)."""

    service: str
    """Name of the services, with `*` and `?`."""
    tcp: str | None = None
    """`host:port`; empty: the address of the service."""
    http: str | None = None
    """A URL, or a path at the address of the service."""
    zmq: str | None = None
    """`host:port` that is pinged; empty: the address of the service."""
    command: tuple[str, ...] = ()
    """Program and arguments; exit status 0 is passing, 1 warning, all else critical."""
    status: tuple[Annotated[int, Meta(ge=100, le=599)], ...] = (200,)
    interval: float | str = 10.0
    timeout: float | str = 5.0
    fall: Annotated[int, Meta(ge=1, le=100)] = 3
    """Failed tries in a row after which the service is critical."""
    rise: Annotated[int, Meta(ge=1, le=100)] = 2
    """Good tries in a row after which it is passing again."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which of the four kinds are set."""
        kinds = tuple(kind for kind in ("tcp", "http", "zmq") if getattr(self, kind) is not None)
        return (*kinds, "command") if self.command else kinds


class BridgeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"imports": "import"}):
    """`[catalog.bridge]`: connections to other networks, and which services they share (BRI-004)."""

    listen: bool = True
    """Whether other brokers may connect, on the port three above the catalog's, or a spare one."""
    to: tuple[str, ...] = ()
    """`host:port` of the bridge ports of other brokers."""
    export: tuple[str, ...] = ()
    """Names of services that other networks see, with `*` and `?`."""
    imports: tuple[str, ...] = ()
    export_topics: tuple[str, ...] = ()
    import_topics: tuple[str, ...] = ()
    transit: bool = False
    """Whether entries imported from one network are exported to others."""


class CatalogTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[catalog]`: with this table, even an empty one, the node is a broker."""

    host: str = ""
    """Host to listen at; empty: that of `[node]`."""
    port: Annotated[int, Meta(ge=1, le=PORT_MAX)] = PORT
    """Port for requests, and by UDP for beats; events are published on the next port."""
    net: str = ""
    """Name of the broker's network, sent in the beacon."""
    strict: bool = False
    unique_names: bool = False
    rewrite: Literal["loopback", "never", "always"] = "loopback"
    liveness: Annotated[int, Meta(ge=3, le=10)] = 3
    """Intervals of silence after which an instance counts as gone."""
    beacons: bool = True
    beacon: float | str = 1.0
    """Seconds between two beacons."""
    beacon_port: Annotated[int, Meta(ge=1, le=PORT_MAX)] = BEACON_PORT
    beacon_to: tuple[str, ...] = ()
    """Addresses for beacons; empty: every network that a broadcast of this machine reaches."""
    beacon_key: str = ""
    """Key that signs beacons; clients with this key accept no other beacons (BEA-007)."""
    mdns: bool = False
    """Whether the broker is also announced by mDNS: `_dbp._tcp`, with the fields of the beacon as text (BEA-006)."""
    hold: bool = True
    hold_max: float | str = 60.0
    reap: float | str = 600.0
    pause: float | str = 0.5
    probe_allow: tuple[str, ...] = ()
    lvc_keep: bool = True
    lvc_persist: bool = False
    """Whether last values survive a restart of the broker; a restored one is stale until its topic is published again."""
    lookup_scope: Literal["local", "all"] = "local"
    """`all`: a plain name that is unknown here is looked up in other networks."""
    bridge: BridgeTable | None = None
    check: dict[str, CheckTable] = {}
    instances: Count = 100_000
    per_name: Count = 1_000
    per_owner: Count = 20_000
    values: Count = 100_000
    values_megabytes: Annotated[int, Meta(ge=1, le=1 << 20)] = 256
    logs: Count = 10_000


def faults_of(table: CatalogTable) -> Iterator[str]:
    """Errors in the table, one line each (CFG-071)."""
    for what, (least, most) in SPANS_NS.items():
        if not least <= (span_ns(getattr(table, what)) or 0) <= most:
            yield f"E04 catalog.{what} {getattr(table, what)!r}: {least / SECOND:g} s to {most / SECOND:g} s"
    if not (set(table.net) <= NET_CHARACTERS and len(table.net) <= NET_CHARACTERS_MAX):
        yield f"E15 catalog.net {table.net!r}: lower-case letters, digits and `-`, {NET_CHARACTERS_MAX} at most"
    for name, check in table.check.items():
        yield from _faults_of_check(name, check)
    if table.bridge is not None and not table.net:
        yield "E03 catalog.net: a bridge needs a name for this network"
    for place in table.bridge.to if table.bridge is not None else ():
        if not is_address(place):
            yield f"E05 catalog.bridge.to {place!r}: host:port of another broker's bridge"
    for network in table.probe_allow:
        try:
            ip_network(network)
        except ValueError:
            yield f"E04 catalog.probe_allow {network!r}: a network, such as 10.0.0.0/8"


def _faults_of_check(name: str, check: CheckTable) -> Iterator[str]:
    if len(check.kinds) != 1:
        yield f"E04 catalog.check.{name}: exactly one of tcp, http, zmq and command"
    if not SECOND <= (span_ns(check.interval) or 0) <= 86_400 * SECOND:
        yield f"E04 catalog.check.{name}.interval {check.interval!r}: 1 s to a day"
    if not 0 < (span_ns(check.timeout) or 0) <= 30 * SECOND:
        yield f"E04 catalog.check.{name}.timeout {check.timeout!r}: up to 30 s"
