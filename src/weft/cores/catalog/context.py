"""What all parts of the catalog core share: who we are, the index of changes, and what we want done.

All records of a turn stand in one Persist in front of everything that the turn says: no approval, no acknowledgement and
no event leaves before its change is durable (CAT-050).
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
"""Of a second: the wire has Unix seconds as a float, which holds no more of them anyhow."""


class Asker(NamedTuple):
    """Who said a message on the ROUTER."""

    peer: bytes
    kind: str
    """Of its socket: `DEALER`, `REQ`, …; empty: not said."""
    address: str
    """Its observed ip; empty for who is on this machine's own file system."""
    envelope: Envelope
    time: bytes
    """The time frame that it sent."""
    is_proved: bool = False
    """Whether its key is known: then its role was judged before it was heard (CAT-060)."""

    @property
    def is_admin(self) -> bool:
        """Whether it may order what others may not: only through the socket in the state directory (CAT-061)."""
        return not self.address

    @property
    def is_dealer(self) -> bool:
        """Whether it has a connection, and may be told things unasked (CAT-006)."""
        return self.kind == "DEALER" and not self.envelope

    @property
    def owner(self) -> str:
        """Whose instances are its own."""
        return self.address or "127.0.0.1"


class OwnMessages(Protocol):
    """Who copies the broker's own messages: `taps.Taps`."""

    def heard(self, message: Message, asker: Asker) -> None:
        """One that came to the ROUTER."""

    def said(self, peer: bytes, message: Message) -> None:
        """One that leaves it."""

    def published(self, publication: Publication) -> None:
        """One for whoever has subscribed."""


class Crosses(Protocol):
    """What goes over bridges: `sharing.Lists`."""

    def exports_name(self, name: str, /) -> bool:
        """Whether others are told of a service of this name."""

    def imports_name(self, name: str, /) -> bool:
        """Whether those of others are taken: then all that they export is here, and nobody need be asked."""

    def exports_topic(self, topic: bytes, /) -> bool:
        """Whether others may have what is published under it."""

    def imports_topic(self, topic: bytes, /) -> bool:
        """Whether it is taken from others."""


class Nothing:
    """Nothing crosses."""

    def exports_name(self, name: str, /) -> bool:
        return False

    def imports_name(self, name: str, /) -> bool:
        return False

    def exports_topic(self, topic: bytes, /) -> bool:
        return False

    def imports_topic(self, topic: bytes, /) -> bool:
        return False


class Doors(Protocol):
    """Where imported services are called: `relays.Relays`."""

    def place_of(self, key: tuple[str, str]) -> dict[str, Any]:
        """The keys of a record that say it."""

    def looked_up(self, instance: Instance) -> None:
        """Somebody wants to call it."""


class Context(Outbox):
    """Shared by reference; the parts of the core change it, nobody else does."""

    def __init__(self, settings: CatalogSettings, node: bytes, era: int, chance: Chance) -> None:
        super().__init__()
        self.settings, self.node, self.era, self.chance = settings, node, era, chance
        self.budget = Budget()
        self.epoch = hashlib.sha256(node + era.to_bytes(8, "big")).hexdigest()[:16]
        """Of this run of the broker: no two runs share it (CAT-051)."""
        self.index = 0
        """Of the last change of this epoch."""
        self.is_full = False
        """The journal has no room: nothing is registered or updated (JRN-030)."""
        self.beats_port = self.events_port = self.monitor_port = 0
        self.bridge_port = 0
        self.bridging: Crosses = Nothing()
        """What goes over bridges (BRI-004)."""
        self.relays: Doors | None = None
        """Where services of other networks are called from here; None: there are none."""
        self.tap: OwnMessages | None = None
        """Whoever copies what this broker hears and says (MON-007); usually nobody."""
        self.now = Now(0, 0)
        self.counters: Counter[tuple[str, str]] = Counter()
        """What has happened, by metric and label: `("requests", "u_U")`, `("dropped", "closed")` (CAT-082)."""
        self.listeners: list[Callable[[Change], None]] = []
        """Hear every indexed change, in order, within its turn."""
        self.lasts: dict[int, int] = {}
        """By stream: the last number that this start gave."""
        self.befores: dict[int, tuple[int, int]] = {}
        """By stream: era and last number of the start before this one."""

    @property
    def wall(self) -> float:
        """Unix seconds; for showing only (CAT-012)."""
        return self.now.wall // 1_000 / MICROSECONDS

    def announce(self, op: str, instance: Instance, reason: str = "") -> Change:
        """The next indexed change of an instance that is as it should be by now: kept, and heard by who listens."""
        self.index += 1
        instance.index = self.index
        change = Change(self.index, op, instance, self.wall, reason)
        self.keep_numbered(record_of(change, self.node, self.era, self.epoch, self.now.wall))
        self.count("changes", op)
        for listener in self.listeners:
            listener(change)
        return change

    def keep_numbered(self, record: StreamRecord) -> None:
        """Make a record of a stream durable with this turn; the first of a start is behind the link to the start before."""
        stream = record.stream
        if stream not in self.lasts and stream in self.befores:
            self.keep(EraRecord(stream, self.node, self.era, *self.befores[stream]))
        self.lasts[stream] = record.sequence
        self.keep(record)

    def next_number(self, stream: Stream) -> int:
        """The next number of this start in a stream."""
        return self.lasts.get(stream, 0) + 1

    def note_before(self, stream: int, era: int, last: int) -> None:
        """A start before this one had given this number."""
        if era != self.era:
            self.befores[stream] = max(self.befores.get(stream, (0, 0)), (era, last))

    def say(self, peer: bytes, message: Message) -> None:
        """Say a message on the ROUTER."""
        self.send(ROUTER, peer, message)
        if self.tap is not None:
            self.tap.said(peer, message)

    def publish(self, publication: Publication) -> None:
        """Say something on the XPUB of events."""
        self.send(EVENTS, b"", publication)
        if self.tap is not None:
            self.tap.published(publication)

    def count(self, metric: str, label: str = "", by: int = 1) -> None:
        self.counters[metric, label] += by
