"""What the service core hears and says: settings, orders, events. Its wire messages stand in `weft.wire.catalog`.

Channels: `broker` (a DEALER: `Connect(BROKER, "host:port", tag)` opens a new socket, `Disconnect(BROKER)` closes it,
`Send(BROKER, b"", Message)`, and a Message that came has `Source.peer` = tag), `beacons` (hears `Beacon`; `Source.peer` is
the ip it came from), `beats` (UDP: `Send(BEATS, b"host:port", Beat)`, hears `Beats`), `monitor` (a DEALER for each tap, by tag;
what is said on `copies` goes through the same, and `SendFailed` says that it took no more).
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from weft.base.now import SECOND
from weft.cores.service import limits

BROKER: Final = "broker"
BEACONS: Final = "beacons"
BEATS: Final = "beats"
MONITOR: Final = "monitor"
COPIES: Final = "copies"


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The service's identity, and where its broker may be."""

    name: str
    id: str = ""
    """Id of this instance; empty: the broker derives one from its address (CAT-015)."""
    record: dict[str, Any] = {}
    """The rest of the registration: `ip`, `port`, `interfaces`, `tags`, `metadata` …; without `name`, `id`, `heartbeat`."""
    interval_ms: int = limits.INTERVAL_MS
    """The requested interval I, ms; the broker may lengthen it (BEA-014)."""
    seeds: tuple[str, ...] = ()
    """Brokers as `host:port`, tried in turn; empty: any found by beacon (BEA-004)."""
    net: str = ""
    """Only beacons of this network count; empty: all (BEA-005)."""
    beacon_key: str = ""
    """Any text; if set, only beacons with a valid mac count (BEA-007)."""
    beacon_ns: int = SECOND
    """How often a beacon of the broker is expected, ns (BEA-018)."""


# Orders


class Start(msgspec.Struct, frozen=True, gc=False):
    """Order: register, and register again whenever the registration is lost."""


class Update(msgspec.Struct, frozen=True):
    """Order: change the record: top-level keys, `None` deletes (CAT-018).

    Answered by a Reply: an Updated or a Denied.
    """

    ticket: int
    changes: dict[str, Any]


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: say goodbye, and send nothing more."""


class Passed(msgspec.Struct, frozen=True, gc=False):
    """Order: a message went through a socket of the service; it is copied if a tap wants it (MON-003)."""

    way: str
    """`in`, `out`."""
    socket: str
    """`router`, `pub`."""
    peer: str
    frames: Sequence[bytes]
    word: str = ""
    """For a call and its answer: the endpoint."""
    took_us: int | None = None
    """For an answer: microseconds since its call came."""


class Lost(msgspec.Struct, frozen=True, gc=False):
    """Order: the connection broke.

    A broker with epochs shows itself whether it has restarted; an existing one does not.
    """

    tag: bytes
    """Tag of the connection."""


# Answers and events


class Updated(msgspec.Struct, frozen=True, gc=False):
    """The broker has the change; later registrations include it."""


class Denied(msgspec.Struct, frozen=True, gc=False):
    """The broker refused; `code` is the reason (CAT-080).

    As an event: it refused the registration. Without `is_final` it is tried again.
    """

    code: str
    text: str
    fields: tuple[str, ...] = ()
    is_final: bool = True


class Registered(msgspec.Struct, frozen=True, gc=False):
    """The broker approved."""

    broker: str
    """`host:port`."""
    instance: str
    """The broker's id for this service; empty: an existing broker, which states none."""
    epoch: str
    """Epoch of the broker's run; empty as above."""
    interval_ms: int


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """The connection has ended, and is made again: `told` (to disconnect), `silent`, `restarted` (the broker), `lost`."""

    why: str


class PathChanged(msgspec.Struct, frozen=True, gc=False):
    """Beats also go over the connection, since datagrams seem to be lost; or again by datagram only (BEA-018)."""

    over_tcp: bool


class TapsChanged(msgspec.Struct, frozen=True, gc=False):
    """A tap wants copies of messages from now on, or no tap does any more (MON-002)."""

    is_on: bool
