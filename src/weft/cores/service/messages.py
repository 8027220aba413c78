"""What the service core hears and says: settings, orders, events. Its wire messages stand in `weft.wire.catalog`.

Channels: `broker` (a DEALER: `Connect(BROKER, "host:port", tag)` opens a new socket, `Disconnect(BROKER)` closes it,
`Send(BROKER, b"", Message)`, and a Message that came has `Source.peer` = tag), `beacons` (hears `Beacon`; `Source.peer` is
the ip it came from), `beats` (UDP: `Send(BEATS, b"host:port", Beat)`, hears `Beats`), `monitor` (a DEALER for each tap, by tag;
what is said on `copies` goes through the same, and `SendFailed` says that it took no more).
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.now import SECOND
from weft.cores.service import limits

BROKER: Final = "broker"
BEACONS: Final = "beacons"
BEATS: Final = "beats"
MONITOR: Final = "monitor"
COPIES: Final = "copies"


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who the service is, and where its broker may be."""

    name: str
    id: str = ""
    """Of this instance; empty: the broker makes one of its address (CAT-015)."""
    record: dict[str, Any] = {}
    """The rest of the registration: `ip`, `port`, `interfaces`, `tags`, `metadata` …; without `name`, `id`, `heartbeat`."""
    interval_ms: int = limits.INTERVAL_MS
    """I, as asked for; the broker may lengthen it (BEA-014)."""
    seeds: tuple[str, ...] = ()
    """Brokers as `host:port`, tried in turn; empty: whoever is heard by beacon (BEA-004)."""
    net: str = ""
    """Only beacons of this network count; empty: all do (BEA-005)."""
    beacon_key: str = ""
    """Any text; with it, only beacons whose mac is right count (BEA-007)."""
    beacon_ns: int = SECOND
    """How often the broker is expected to call (BEA-018)."""


# Orders


class Start(msgspec.Struct, frozen=True, gc=False):
    """Register, and be registered again whenever that is lost."""


class Update(msgspec.Struct, frozen=True):
    """Change the record: top-level keys, `None` deletes (CAT-018). Answered by a Reply: an Updated or a Denied."""

    ticket: int
    changes: dict[str, Any]


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Say goodbye, and nothing more."""


class Passed(NamedTuple):
    """A message went through a socket of the service: copied, if somebody asked for that (MON-003)."""

    way: str
    """`in`, `out`."""
    socket: str
    """`router`, `pub`."""
    peer: str
    frames: Sequence[bytes]
    word: str = ""
    """Of a call and its answer: the endpoint."""
    took_us: int | None = None
    """Of an answer: since its call came."""


class Lost(msgspec.Struct, frozen=True, gc=False):
    """The connection broke. A broker that knows runs tells by itself whether it was another one; an existing one does not."""

    tag: bytes
    """Of the connection that is meant."""


# Answers and events


class Updated(msgspec.Struct, frozen=True, gc=False):
    """The broker has the change, and whoever registers again says it, too."""


class Denied(msgspec.Struct, frozen=True, gc=False):
    """The broker refused, for the reason that `code` says (CAT-080).

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
    """The id that it knows this service by; empty: an existing broker, that says none."""
    epoch: str
    """Of the broker's run; empty, as above."""
    interval_ms: int


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """The connection is no more, and is made again: `told` (to disconnect), `silent`, `restarted` (the broker), `lost`."""

    why: str


class PathChanged(msgspec.Struct, frozen=True, gc=False):
    """Beats go over the connection too, since datagrams seem to be lost; or by datagram alone again (BEA-018)."""

    over_tcp: bool


class TapsChanged(msgspec.Struct, frozen=True, gc=False):
    """Somebody wants copies of what passes from now on, or nobody does any more (MON-002)."""

    is_on: bool
