"""State that all parts of the catalog core share: identity, the index of changes, and the outbox.

All records of a turn stand in one Persist ahead of all effects of the turn: no approval, acknowledgement or event
leaves before its change is durable (CAT-050).
"""

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from weft.base.budget import Budget
from weft.base.chance import Chance
from weft.base.now import Now
from weft.base.records import EraRecord, Stream, StreamRecord
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.memory import record_of
from weft.cores.catalog.messages import CatalogSettings
from weft.cores.kit.outbox import Outbox
from weft.wire.catalog.messages import Envelope, Message, Publication

ROUTER, EVENTS, BEATS, BEACON, PROBE, VALUES, MONITOR, BRIDGE, DIAL, RELAY, CALLS = (
    "catalog",
    "catalog-events",
    "catalog-beats",
    "catalog-beacon",
    "catalog-probe",
    "catalog-values",
    "catalog-monitor",
    "catalog-bridge",
    "catalog-bridge-dial",
    "catalog-relay",
    "catalog-call",
)
"""Channels: see `weft.node.catalogchannels`."""


MICROSECONDS = 1_000_000.0
"""Microseconds per second. The wire carries Unix seconds as a double, which resolves 0.24 us in this century."""


class Asker(NamedTuple):
    """The sender of a message on the ROUTER."""

    peer: bytes
    kind: str
    """Type of its socket: `DEALER`, `REQ`, …; empty: not stated."""
    address: str
    """Its observed IP; empty for a peer that comes through this machine's file system."""
    envelope: Envelope
    time: bytes
    """The time frame that it sent."""
    is_proved: bool = False
    """Whether its key is known; then its role was checked before the message came here (CAT-060)."""

    @property
    def is_admin(self) -> bool:
        """Whether it may give administrator's orders: only peers on the socket in the state directory (CAT-061)."""
        return not self.address

    @property
    def is_dealer(self) -> bool:
        """Whether it has a connection, and may get messages it did not ask for (CAT-006)."""
        return self.kind == "DEALER" and not self.envelope

    @property
    def owner(self) -> str:
        """The owner under which its instances are registered."""
        return self.address or "127.0.0.1"


class OwnMessages(Protocol):
    """Copies the broker's own messages: `taps.Taps`."""

    def heard(self, message: Message, asker: Asker) -> None:
        """A message that came to the ROUTER."""

    def answered(self, peer: bytes, message: Message) -> None:
        """A message that leaves the ROUTER."""

    def published(self, publication: Publication) -> None:
        """A publication for subscribers."""


class Crosses(Protocol):
    """What crosses bridges: `sharing.Lists`."""

    def exports_name(self, name: str, /) -> bool:
        """Whether services of this name are offered to other networks."""

    def imports_name(self, name: str, /) -> bool:
        """Whether services of this name are taken from other networks.

        Then all exported entries are here, and no broker need be asked.
        """

    def exports_topic(self, topic: bytes, /) -> bool:
        """Whether publications under this topic are offered to other networks."""

    def imports_topic(self, topic: bytes, /) -> bool:
        """Whether publications under this topic are taken from other networks."""


class Nothing:
    """Nothing crosses: for a broker without bridges."""

    def exports_name(self, name: str, /) -> bool:
        return False

    def imports_name(self, name: str, /) -> bool:
        return False

    def exports_topic(self, topic: bytes, /) -> bool:
        return False

    def imports_topic(self, topic: bytes, /) -> bool:
        return False


class Doors(Protocol):
    """Addresses here for calls of imported services: `relays.Relays`."""

    def place_of(self, key: tuple[str, str]) -> dict[str, Any]:
        """The keys of a record that name the address of an imported instance."""

    def looked_up(self, instance: Instance) -> None:
        """An imported instance was looked up, so a client may call it."""


class Context(Outbox):
    """Shared by reference; only parts of the core change it."""

    def __init__(self, settings: CatalogSettings, node: bytes, era: int, chance: Chance) -> None:
        super().__init__()
        self.settings, self.node, self.era, self.chance = settings, node, era, chance
        self.budget = Budget()
        self.epoch = hashlib.sha256(node + era.to_bytes(8, "big")).hexdigest()[:16]
        """Epoch of this run of the broker; no two runs share one (CAT-051)."""
        self.index = 0
        """Index of the last change in this epoch."""
        self.is_full = False
        """The journal has no room: no registration or update is accepted (JRN-030)."""
        self.beats_port = self.events_port = self.monitor_port = 0
        self.bridge_port = 0
        self.bridging: Crosses = Nothing()
        """What may cross bridges (BRI-004)."""
        self.relays: Doors | None = None
        """Where services of other networks can be called; None: nowhere."""
        self.tap: OwnMessages | None = None
        """Copies what this broker receives and sends (MON-007); usually None."""
        self.now = Now(0, 0)
        self.counters: Counter[tuple[str, str]] = Counter()
        """Counts by metric and label: `("requests", "u_U")`, `("dropped", "closed")` (CAT-082)."""
        self.listeners: list[Callable[[Change], None]] = []
        """Called for every indexed change, in order, in the turn of the change."""
        self.lasts: dict[int, int] = {}
        """By stream: the last number given in this start."""
        self.befores: dict[int, tuple[int, int]] = {}
        """By stream: era and last number of the preceding start."""

    @property
    def wall(self) -> float:
        """Unix seconds, for display only (CAT-012)."""
        return self.now.wall // 1_000 / MICROSECONDS

    def announce(self, op: str, instance: Instance, reason: str = "") -> Change:
        """Give an instance's change the next index: make it durable, and call the listeners.

        The instance must already have its new state.
        """
        self.index += 1
        instance.index = self.index
        change = Change(self.index, op, instance, self.wall, reason)
        self.keep_numbered(record_of(change, self.node, self.era, self.epoch, self.now.wall))
        self.count("changes", op)
        for listener in self.listeners:
            listener(change)
        return change

    def keep_numbered(self, record: StreamRecord) -> None:
        """Make a stream record durable with this turn.

        The first one of a start is preceded by the link to the preceding start.
        """
        stream = record.stream
        if stream not in self.lasts and stream in self.befores:
            self.keep(EraRecord(stream, self.node, self.era, *self.befores[stream]))
        self.lasts[stream] = record.sequence
        self.keep(record)

    def next_number(self, stream: Stream) -> int:
        """The next number of this start in a stream."""
        return self.lasts.get(stream, 0) + 1

    def note_before(self, stream: int, era: int, last: int) -> None:
        """Note that an earlier start gave this number."""
        if era != self.era:
            self.befores[stream] = max(self.befores.get(stream, (0, 0)), (era, last))

    def say(self, peer: bytes, message: Message) -> None:
        """Send a message on the ROUTER."""
        self.send(ROUTER, peer, message)
        if self.tap is not None:
            self.tap.answered(peer, message)

    def publish(self, publication: Publication) -> None:
        """Publish on the XPUB of events."""
        self.send(EVENTS, b"", publication)
        if self.tap is not None:
            self.tap.published(publication)

    def count(self, metric: str, label: str = "", by: int = 1) -> None:
        self.counters[metric, label] += by
