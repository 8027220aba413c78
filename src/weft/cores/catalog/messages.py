"""What the catalog core hears and says: settings, orders, events. Its wire messages stand in `weft.wire.catalog`."""

from typing import Final, Literal

import msgspec

from weft.base.endpoints import is_loopback
from weft.cores.catalog import limits


class CheckSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A check of the broker's own file: of all services whose name fits (BEA-024)."""

    service: str
    """A name, with `*` and `?`."""
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
    """Who the broker is, and `[catalog]` of its node's file (docs/catalog.md)."""

    fabric: str = "weft"
    host: str = "127.0.0.1"
    is_closed: bool = False
    """Whether whoever comes from elsewhere needs a key (CAT-060)."""
    port: int = 5246
    """Of the ROUTER."""
    net: str = ""
    strict: bool = False
    """A registration must have the seed's five fields (CAT-013)."""
    unique_names: bool = False
    rewrite: Literal["loopback", "never", "always"] = "loopback"
    liveness: int = limits.LIVENESS
    beacon_ns: int = limits.BEACON_NS
    """0: no beacon."""
    beacon_key: str = ""
    hold: bool = True
    hold_max_ns: int = limits.HOLD_MAX_NS
    reap_ns: int = limits.REAP_NS
    """0: never."""
    reap_critical_ns: int = 0
    pause_ns: int = limits.PAUSE_NS
    probe_allow: tuple[str, ...] = ()
    """Networks (`10.0.0.0/8`) that may be probed besides the observed address."""
    checks: tuple[CheckSettings, ...] = ()
    lvc_keep: bool = True
    lookup_scope: Literal["local", "all"] = "local"
    """Whether a plain name that nobody has here means one of another network (CAT-036)."""
    bridge_to: tuple[str, ...] = ()
    """Brokers of other networks, `host:port` of their bridge ports."""
    exports: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """Names, with `*` and `?` (BRI-004)."""
    export_topics: tuple[str, ...] = ()
    import_topics: tuple[str, ...] = ()
    transit: bool = False
    """Whether what is imported is exported again (BRI-006)."""
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
        """Whether it listens beyond this machine, and asks nobody who they are (CAT-061)."""
        return not (self.is_closed or is_loopback(self.host))


class Ports(msgspec.Struct, frozen=True, gc=False):
    """The shell has bound what belongs to the catalog: these are in the beacon from now on (CAT-002)."""

    beats: int
    events: int
    monitor: int = 0
    bridge: int = 0
    """0: no bridge is waited for."""


class OpenRelay(msgspec.Struct, frozen=True, gc=False):
    """Work: bind a door for calls that go over a bridge; `RelayOpened` says where (BRI-011)."""

    tag: bytes


class CloseRelay(msgspec.Struct, frozen=True, gc=False):
    """Work: close a door."""

    tag: bytes


class RelayOpened(msgspec.Struct, frozen=True, gc=False):
    """A door is bound; port 0: there was none left."""

    tag: bytes
    host: str
    port: int


class RunCheck(msgspec.Struct, frozen=True, gc=False):
    """Work: look whether a service works; `CheckDone` says what came of it, at the latest after its time."""

    id: int
    kind: str
    target: str
    """`host:port`, or a URL."""
    timeout_ns: int
    status: tuple[int, ...] = ()
    """Of HTTP: those that are good."""
    command: tuple[str, ...] = ()


class CheckDone(msgspec.Struct, frozen=True, gc=False):
    """A check has ended: `passing`, `warning`, `critical`."""

    id: int
    outcome: str


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """A message came that is none (CAT-080): counted against its peer."""

    channel: str
    peer: bytes
    code: str


class HoldBack(msgspec.Struct, frozen=True, gc=False):
    """The journal has no room, or has again: nothing that must be kept is taken meanwhile (JRN-030)."""

    is_full: bool


class Stop(msgspec.Struct, frozen=True, gc=False):
    """The node ends: the beacon is silent from now on."""


# Events: indexed changes are records of stream `catalog`; these go to the stream of events (CAT-083)


class CatalogOpened(msgspec.Struct, frozen=True, gc=False):
    """The broker serves: under this epoch, with so many instances from before."""

    epoch: str
    port: int
    restored: int


class RequestDenied(msgspec.Struct, frozen=True, gc=False):
    """A registration, an update or an order was refused, for the reason that `code` says."""

    peer: str
    code: str
    name: str
    count: int
    """Refusals of that peer since the event before."""


class PeerMalformed(msgspec.Struct, frozen=True, gc=False):
    """A peer said what is no message; told at most once in ten seconds each."""

    peer: str
    code: str
    count: int


class PeerIgnored(msgspec.Struct, frozen=True, gc=False):
    """A peer said too much that is no message: for a minute it is not heard."""

    peer: str
    seconds: int


class Paused(msgspec.Struct, frozen=True, gc=False):
    """The broker stood still; all deadlines were moved by that (BEA-022)."""

    late_ns: int


class EvictionsHeld(msgspec.Struct, frozen=True, gc=False):
    """So much is silent at once that the fault may be here: nobody is called dead for now (BEA-023); or that is over."""

    is_held: bool
    suspects: int
    live: int


class PathChanged(msgspec.Struct, frozen=True, gc=False):
    """Beats of an instance are lost by UDP and come by TCP, or come by UDP again (BEA-018)."""

    name: str
    instance: str
    via: str


class CatalogExposed(msgspec.Struct, frozen=True, gc=False):
    """The catalog listens beyond this machine, and asks nobody who they are (CAT-061)."""

    host: str


class LogsLost(msgspec.Struct, frozen=True, gc=False):
    """Log records of an instance are missing, and it could not say them again (LOG-006)."""

    name: str
    instance: str
    first: int
    last: int


class TapStarted(msgspec.Struct, frozen=True, gc=False):
    """Messages of a service are copied from now on, since somebody asked for it (MON-001)."""

    tap: str
    service: str
    instances: int
    by: str
    """Address of who asked."""


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
    """A bridge to another network is up: both have what the other exports (BRI-003)."""

    net: str
    imported: int
    exported: int


class BridgeDown(msgspec.Struct, frozen=True, gc=False):
    """A bridge is down: what came by it is unreachable, unless there is another way."""

    net: str
    why: str


class BridgeRefused(msgspec.Struct, frozen=True, gc=False):
    """No bridge came about: `same-net`, `unsupported`, `limit`."""

    other: str
    code: str


JOURNALED: Final = (
    *(CatalogOpened, RequestDenied, PeerMalformed, PeerIgnored, Paused, EvictionsHeld, PathChanged, CatalogExposed),
    *(LogsLost, TapStarted, TapEnded, BridgeUp, BridgeDown, BridgeRefused),
)
"""Events that are written into the stream of events."""
