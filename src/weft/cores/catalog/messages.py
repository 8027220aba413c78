"""Settings, orders, work and events of the catalog core. Its wire messages stand in `weft.wire.catalog`."""

from typing import Final, Literal

import msgspec

from weft.base.endpoints import is_loopback
from weft.cores.catalog import limits


class CheckSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A check in the broker's own file, for all services whose name matches (BEA-024)."""

    service: str
    """A name pattern, with `*` and `?`."""
    kind: str
    """`tcp`, `http`, `zmq`, `command`."""
    target: str = ""
    command: tuple[str, ...] = ()
    status: tuple[int, ...] = (200,)
    interval_ns: int
    timeout_ns: int
    fall: int = 3
    rise: int = 2


class CatalogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of the broker, and `[catalog]` of its node's file (docs/catalog.md)."""

    fabric: str = "weft"
    host: str = "127.0.0.1"
    is_closed: bool = False
    """Whether clients of other machines need a key (CAT-060)."""
    port: int = 5246
    """Port of the ROUTER."""
    net: str = ""
    strict: bool = False
    """A registration must have the seed's five fields (CAT-013)."""
    unique_names: bool = False
    rewrite: Literal["loopback", "never", "always"] = "loopback"
    liveness: int = limits.LIVENESS
    beacon_ns: int = limits.BEACON_NS
    """Nanoseconds; 0: no beacon."""
    beacon_key: str = ""
    hold: bool = True
    hold_max_ns: int = limits.HOLD_MAX_NS
    reap_ns: int = limits.REAP_NS
    """Nanoseconds; 0: never."""
    reap_critical_ns: int = 0
    pause_ns: int = limits.PAUSE_NS
    probe_allow: tuple[str, ...] = ()
    """Networks (`10.0.0.0/8`) that may be probed besides the observed address."""
    checks: tuple[CheckSettings, ...] = ()
    lvc_keep: bool = True
    lvc_persist: bool = False
    """Whether last values outlive a restart (LVC-008)."""
    lookup_scope: Literal["local", "all"] = "local"
    """Whether a plain name without an instance here may mean one of another network (CAT-036)."""
    bridge_to: tuple[str, ...] = ()
    """Brokers of other networks, `host:port` of their bridge ports."""
    exports: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """Name patterns, with `*` and `?` (BRI-004)."""
    export_topics: tuple[str, ...] = ()
    import_topics: tuple[str, ...] = ()
    transit: bool = False
    """Whether imported entries are exported again (BRI-006)."""
    instances_max: int = limits.INSTANCES_MAX
    per_name_max: int = limits.PER_NAME_MAX
    per_owner_max: int = limits.PER_OWNER_MAX
    topics_max: int = limits.TOPICS_MAX
    ring_max: int = limits.RING_MAX
    values_max: int = limits.VALUES_MAX
    values_bytes_max: int = limits.VALUES_BYTES_MAX
    logs_max: int = limits.LOGS_MAX

    # Orders

    @property
    def is_exposed(self) -> bool:
        """Whether it listens beyond this machine without requiring keys (CAT-061)."""
        return not (self.is_closed or is_loopback(self.host))


class Ports(msgspec.Struct, frozen=True, gc=False):
    """Order: the shell has bound the catalog's ports; beacons name them from now on (CAT-002)."""

    beats: int
    events: int
    monitor: int = 0
    bridge: int = 0
    """0: the broker does not listen for bridges."""


class OpenRelay(msgspec.Struct, frozen=True, gc=False):
    """Work: bind a ROUTER for calls that go over a bridge; answered by `RelayOpened` (BRI-011)."""

    tag: bytes


class CloseRelay(msgspec.Struct, frozen=True, gc=False):
    """Work: close such a ROUTER."""

    tag: bytes


class RelayOpened(msgspec.Struct, frozen=True, gc=False):
    """Order: a relay's ROUTER is bound; port 0: no port was free."""

    tag: bytes
    host: str
    port: int


class RunCheck(msgspec.Struct, frozen=True, gc=False):
    """Work: test whether a service works; answered by `CheckDone`, at the latest when the timeout is over."""

    id: int
    kind: str
    target: str
    """`host:port`, or a URL."""
    timeout_ns: int
    status: tuple[int, ...] = ()
    """HTTP status codes that count as success."""
    command: tuple[str, ...] = ()


class CheckDone(msgspec.Struct, frozen=True, gc=False):
    """Order: a check has ended: `passing`, `warning`, `critical`."""

    id: int
    outcome: str


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """Order: an unreadable message came; it counts against its peer (CAT-080)."""

    channel: str
    peer: bytes
    code: str


class HoldBack(msgspec.Struct, frozen=True, gc=False):
    """Order: the journal has no room, or has room again.

    Without room, nothing that must be journaled is accepted (JRN-030).
    """

    is_full: bool


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: the node stops: send no more beacons."""


# Events: indexed changes are records of stream `catalog`; these go to the stream of events (CAT-083)


class CatalogOpened(msgspec.Struct, frozen=True, gc=False):
    """The broker serves under this epoch; `instances` were restored."""

    epoch: str
    port: int
    restored: int


class RequestDenied(msgspec.Struct, frozen=True, gc=False):
    """A registration, update or order was refused; `code` is the reason."""

    peer: str
    code: str
    name: str
    count: int
    """Refusals of that peer since its last event."""


class PeerMalformed(msgspec.Struct, frozen=True, gc=False):
    """A peer sent a malformed message; told at most once in ten seconds per peer."""

    peer: str
    code: str
    count: int


class PeerIgnored(msgspec.Struct, frozen=True, gc=False):
    """A peer sent too many malformed messages: it is ignored for a minute."""

    peer: str
    seconds: int


class Paused(msgspec.Struct, frozen=True, gc=False):
    """The broker stood still; all deadlines were moved by that time (BEA-022)."""

    late_ns: int


class EvictionsHeld(msgspec.Struct, frozen=True, gc=False):
    """So many instances are silent at once that the fault may be here: no instance is evicted for now (BEA-023).

    Or that is over.
    """

    is_held: bool
    suspects: int
    live: int


class PathChanged(msgspec.Struct, frozen=True, gc=False):
    """An instance's beats are lost by UDP and come by TCP, or come by UDP again (BEA-018)."""

    name: str
    instance: str
    via: str


class CatalogExposed(msgspec.Struct, frozen=True, gc=False):
    """The catalog listens beyond this machine without requiring keys (CAT-061)."""

    host: str


class LogsLost(msgspec.Struct, frozen=True, gc=False):
    """Log records of an instance are missing, and it could not send them again (LOG-006)."""

    name: str
    instance: str
    first: int
    last: int


class TapStarted(msgspec.Struct, frozen=True, gc=False):
    """A client asked for copies of a service's messages; copying has begun (MON-001)."""

    tap: str
    service: str
    instances: int
    by: str
    """Address of the client."""


class TapEnded(msgspec.Struct, frozen=True, gc=False):
    """A tap is over; `seen` is the sum of the other counts (MON-004)."""

    tap: str
    service: str
    why: str
    """`stopped`, `time`, `silent`, `registered anew` …"""
    seen: int
    copied: int
    dropped: int
    sampled: int


class BridgeUp(msgspec.Struct, frozen=True, gc=False):
    """A bridge to another network is up: both sides have the other's exports (BRI-003)."""

    net: str
    imported: int
    exported: int


class BridgeDown(msgspec.Struct, frozen=True, gc=False):
    """A bridge is down: its entries are unreachable, unless another bridge has them."""

    net: str
    why: str


class BridgeRefused(msgspec.Struct, frozen=True, gc=False):
    """A bridge was refused: `same-net`, `unsupported`, `limit`."""

    other: str
    code: str


JOURNALED: Final = (
    *(CatalogOpened, RequestDenied, PeerMalformed, PeerIgnored, Paused, EvictionsHeld, PathChanged, CatalogExposed),
    *(LogsLost, TapStarted, TapEnded, BridgeUp, BridgeDown, BridgeRefused),
)
"""Events that are journaled in the stream of events."""
