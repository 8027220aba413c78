"""Where this node stands: its parent, its neighbours on the segment, and that its name is its own.

It sends a beacon every few seconds, remembers whom it hears, and tells the parent's endpoint as soon as that is
known. A beacon is only a hint: who a neighbour really is, is proved on the link itself.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from weft.base.effects import Effect, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.topology import limits
from weft.cores.topology.messages import (
    Beacon,
    NameTaken,
    NodeSeen,
    NodeVanished,
    ParentAssigned,
    ParentMoved,
    Stop,
    TopologySettings,
)
from weft.cores.topology.states import TABLE, On, State

LINK_PORT: Final = 7
"""The node link of a port block (specs/00, section 3)."""


class Neighbour(NamedTuple):
    beacon: Beacon
    host: str
    heard_at: int


class Topology:
    """The topology core. `host` of a neighbour is the source address of its datagram, as bytes of text."""

    name = "topology"

    def __init__(self, settings: TopologySettings, node: bytes, era: int) -> None:
        self.settings, self.node, self.era = settings, node, era
        self.neighbours: dict[str, Neighbour] = {}
        self.state = State.SETTLED if not settings.parent else State.SEEKING
        self.parent_endpoint = ""
        self._effects: list[Effect] = []
        self._beacon_at: int | None = None
        self._started = False
        self._beacons_sent = 0

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Nothing is kept: the tree is in the node's file, the neighbours in the air."""

    def condense(self) -> Iterable[CoreRecord]:
        return ()

    def _start(self, now: Now) -> None:
        """Take up a parent that is given by its address, and begin to call."""
        self._started = True
        if ":" in self.settings.parent:
            host, _, port = self.settings.parent.rpartition(":")
            self._assign(ParentAssigned, f"{host}:{int(port) + LINK_PORT}")
            self.state = State.SETTLED
        self._beacon_at = now.mono if self.settings.beacons else None

    def receive(self, message: Any, source: Source, now: Now) -> None:
        if not isinstance(message, Beacon):
            raise PeerError("unknown-op", type(message).__name__)
        if message.fleet != self.settings.fleet:
            raise PeerError("other-fleet", message.fleet)
        if message.node == self.node and message.era == self.era:
            return  # our own voice
        self._turn(self._kind(message), Neighbour(message, source.peer.decode(), now.mono), now)

    def command(self, order: Any, now: Now) -> None:
        if isinstance(order, Stop):
            self._turn(On.STOPPED, None, now)

    def wake(self, now: Now) -> None:
        if not self._started:
            self._start(now)
        if self._beacon_at is None or now.mono < self._beacon_at:
            return
        self._call(self.settings.base_port)
        self._beacons_sent += 1
        young = self._beacons_sent < limits.BEACONS_YOUNG
        self._beacon_at = now.mono + (limits.BEACON_YOUNG_NS if young else limits.BEACON_NS)
        for name in [n for n, known in self.neighbours.items() if known.heard_at + limits.KNOWN_NS < now.mono]:
            self._lose(name)

    def deadline(self) -> int | None:
        return self._beacon_at if self._started else 0

    def effects(self) -> list[Effect]:
        done, self._effects = self._effects, []
        return done

    def _kind(self, beacon: Beacon) -> On:
        if beacon.name == self.settings.name:
            if beacon.port == 0:
                return On.LEFT
            mine = (self.era, self.node)
            return On.TWIN_OLDER if (beacon.era, beacon.node) < mine else On.TWIN_NEWER
        if beacon.port == 0:
            return On.LEFT
        return On.PARENT_HEARD if beacon.name == self.settings.parent else On.OTHER_HEARD

    def _turn(self, on: On, heard: Neighbour | None, now: Now) -> None:
        cell = TABLE.get((self.state, on))
        if cell is None:
            return
        self.state = cell.then
        getattr(self, cell.do)(heard, now)

    def settle(self, heard: Neighbour, now: Now) -> None:
        """The parent has been found."""
        self.note(heard, now)
        self._assign(ParentAssigned, f"{heard.host}:{heard.beacon.port + LINK_PORT}")

    def follow(self, heard: Neighbour, now: Now) -> None:
        """The parent speaks again; from elsewhere only if nobody older has its name."""
        known = self.neighbours.get(heard.beacon.name)
        if known and known.beacon.node != heard.beacon.node and known.beacon.era < heard.beacon.era:
            return  # a second node of the parent's name: the newer one will be told to end
        self.note(heard, now)
        endpoint = f"{heard.host}:{heard.beacon.port + LINK_PORT}"
        if endpoint != self.parent_endpoint:
            self._assign(ParentMoved, endpoint)

    def note(self, heard: Neighbour, now: Now) -> None:
        """Remember who is out there."""
        beacon = heard.beacon
        if beacon.name not in self.neighbours:
            if len(self.neighbours) >= limits.KNOWN_MAX:
                return
            self._effects.append(Tell(NodeSeen(beacon.name, beacon.level)))
        self.neighbours[beacon.name] = heard

    def forget(self, heard: Neighbour, now: Now) -> None:
        """A node says goodbye: only the one that was known can."""
        known = self.neighbours.get(heard.beacon.name)
        if known and (known.beacon.node, known.beacon.era) == (heard.beacon.node, heard.beacon.era):
            self._lose(heard.beacon.name)

    def give_way(self, heard: Neighbour, now: Now) -> None:
        """An older node has our name: this one ends, loudly."""
        self._beacon_at = None
        self._effects.append(Tell(NameTaken(self.settings.name, heard.beacon.node)))

    def speak_up(self, heard: Neighbour, now: Now) -> None:
        """A newer node has our name: it must hear us at once."""
        self._call(self.settings.base_port)

    def leave(self, heard: None, now: Now) -> None:
        """Say goodbye, so that nobody waits for four beacons."""
        self._beacon_at = None
        self._call(0)

    def _assign(self, event: type[ParentAssigned] | type[ParentMoved], endpoint: str) -> None:
        self.parent_endpoint = endpoint
        self._effects.append(Tell(event(endpoint, self.settings.parent)))

    def _lose(self, name: str) -> None:
        gone = self.neighbours.pop(name)
        self._effects.append(Tell(NodeVanished(name, gone.beacon.level)))

    def _call(self, port: int) -> None:
        if self.settings.beacons:
            mine = self.settings
            self._effects.append(
                Send("beacon", b"", Beacon(mine.fleet, mine.name, self.node, mine.level, port, self.era))
            )
