"""Beacons: finding neighbours, names, and parents named in a file.

A node sends a beacon every few seconds, remembers the nodes it hears, and reports the endpoint of a static parent as
soon as it is known. A beacon is only a hint where to connect (FLD-010). It never stops this node, and never moves it
away from a parent that answers; a node on loopback does not even receive beacons of other machines.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from weft.base.effects import Source
from weft.base.endpoints import LINK, endpoint_of, host_of, is_loopback, shifted
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.cores.topology import limits
from weft.cores.topology.context import Context, topics_of
from weft.cores.topology.memory import Place
from weft.cores.topology.messages import (
    Beacon,
    Control,
    NameTaken,
    NodeSeen,
    NodeVanished,
    ParentAssigned,
    ParentMoved,
    StoreSeen,
    TwinSuspected,
)
from weft.cores.topology.states import TABLE, On, State

STATIC_GROUP: Final = "all"
"""The group of a node whose file gives its place: the root does not know it, so it gets what all groups have."""


class Neighbour(NamedTuple):
    beacon: Beacon
    host: str
    heard_at: int

    @property
    def endpoint(self) -> str:
        """Endpoint of its block of ports."""
        return endpoint_of(self.host, self.beacon.port)


class Beaconing:
    """`on_neighbour` is called with every beacon that is not a goodbye."""

    def __init__(self, context: Context, on_neighbour: Callable[[Neighbour, Now], None]) -> None:
        self.context = context
        self.settings = context.settings
        self.neighbours: dict[str, Neighbour] = {}
        self.state = State.SETTLED if not self.settings.parent else State.SEEKING
        self.parent_endpoint = ""
        self.beacon_at: int | None = None
        self.is_linked = False
        """Whether the parent has welcomed this node and answers."""
        self._on_neighbour = on_neighbour
        self._sent = 0
        self._knocked_at: int | None = None
        self._twins: dict[str, int] = {}
        """Nodes that were asked whether they have our name, and when."""
        self._suspected_at: int | None = None

    def start(self, now: Now) -> None:
        """Use a parent given by its address, and start to send beacons."""
        if ":" in self.settings.parent:
            self._assign(ParentAssigned, self.settings.parent, "")
            self.state = State.SETTLED
        self.beacon_at = now.mono if self.settings.beacons else None

    def hear(self, message: Beacon, host: str, now: Now) -> None:
        """A beacon came; PeerError `other-machine`, `other-fleet`."""
        if is_loopback(self.settings.host) and not is_loopback(host):
            raise PeerError("other-machine", host)
        if message.fleet != self.settings.fleet:
            raise PeerError("other-fleet", message.fleet)
        if message.node == self.context.node and message.era == self.context.era:
            return  # our own beacon
        self._turn(self._kind(message), Neighbour(message, host, now.mono), now)

    def stop(self, now: Now) -> None:
        """Say goodbye."""
        self._turn(On.STOPPED, None, now)

    def deadline(self) -> int | None:
        return self.beacon_at

    def wake(self, now: Now) -> None:
        """Send a beacon if one is due, and forget silent nodes."""
        if self.beacon_at is None or now.mono < self.beacon_at:
            return
        self._call(self.settings.base_port)
        self._sent += 1
        young = self._sent < limits.BEACONS_YOUNG
        self.beacon_at = now.mono + (limits.BEACON_YOUNG_NS if young else limits.BEACON_NS)
        for name in [n for n, known in self.neighbours.items() if known.heard_at + limits.KNOWN_NS < now.mono]:
            self._lose(name)

    def _kind(self, beacon: Beacon) -> On:
        if beacon.name == self.settings.name:
            if beacon.port == 0:
                return On.LEFT
            mine = (self.context.era, self.context.node)
            return On.TWIN_OLDER if (beacon.era, beacon.node) < mine else On.TWIN_NEWER
        if beacon.port == 0:
            return On.LEFT
        return On.PARENT_HEARD if beacon.name == self.settings.parent else On.OTHER_HEARD

    def _turn(self, on: On, heard: Neighbour | bytes | None, now: Now) -> None:
        cell = TABLE.get((self.state, on))
        if cell is None:
            return
        self.state = cell.then
        getattr(self, cell.do)(heard, now)

    def settle(self, heard: Neighbour, now: Now) -> None:
        """A node with the parent's name was found: connect to it."""
        self._knocked_at = now.mono
        self.note(heard, now)
        self._assign(ParentAssigned, heard.endpoint, heard.beacon.level)

    def follow(self, heard: Neighbour, now: Now) -> None:
        """A beacon with the parent's name came.

        Connect elsewhere only while the parent does not answer, to one endpoint after the other.
        """
        self.note(heard, now)
        is_knocking = self._knocked_at is not None and now.mono < self._knocked_at + limits.KNOCK_NS
        if self.is_linked or is_knocking or shifted(heard.endpoint, LINK) == self.parent_endpoint:
            return
        self._knocked_at = now.mono
        self._assign(ParentMoved, heard.endpoint, heard.beacon.level)

    def note(self, heard: Neighbour, now: Now) -> None:
        """Remember a neighbour."""
        beacon = heard.beacon
        if beacon.name not in self.neighbours:
            if len(self.neighbours) >= limits.KNOWN_MAX:
                return
            self.context.tell(NodeSeen(beacon.name, beacon.level))
        known = self.neighbours.get(beacon.name)
        if beacon.has_store and (known is None or known.endpoint != heard.endpoint):
            self.context.tell(StoreSeen(heard.endpoint))
        self.neighbours[beacon.name] = heard
        self._on_neighbour(heard, now)

    def forget(self, heard: Neighbour, now: Now) -> None:
        """A node says goodbye; accepted only from the node that was known under that name."""
        known = self.neighbours.get(heard.beacon.name)
        if known and (known.beacon.node, known.beacon.era) == (heard.beacon.node, heard.beacon.era):
            self._lose(heard.beacon.name)

    def ask_twin(self, heard: Neighbour, now: Now) -> None:
        """A datagram claims that an older node has our name: ask that node if its answer can prove it.

        Otherwise only warn.
        """
        if not self._can_prove(heard.host):
            if self._suspected_at is None or now.mono >= self._suspected_at + limits.SUSPECTED_NS:
                self._suspected_at = now.mono
                self.context.tell(TwinSuspected(self.settings.name, heard.endpoint))
            return
        asked_at = self._twins.get(heard.endpoint)
        if asked_at is not None and now.mono < asked_at + limits.WHOIS_NS:
            return
        if asked_at is None and len(self._twins) >= limits.SUSPECTS_MAX:
            del self._twins[next(iter(self._twins))]
        self._twins[heard.endpoint] = now.mono
        self.context.say(heard.endpoint, "whois", {"fleet": self.settings.fleet})

    def hear_twin(self, iam: Control, source: Source, now: Now) -> None:
        """The answer to `whois`; PeerError `unasked`, `not-yours`."""
        peer = source.peer.decode("ascii", "replace")
        if self._twins.pop(peer, None) is None:
            raise PeerError("unasked", peer)
        if source.proved not in (None, iam.uuid):
            raise PeerError("not-yours", peer)
        properties = iam.properties
        era = properties.get("era")
        is_same = (properties.get("fleet"), properties.get("name")) == (self.settings.fleet, self.settings.name)
        is_proved = source.proved is not None or self._can_prove(host_of(peer))
        if is_same and is_proved and isinstance(era, int) and (era, iam.uuid) < (self.context.era, self.context.node):
            self._turn(On.TWIN_PROVED, iam.uuid, now)

    def who(self) -> Control:
        """The answer to `whois`."""
        mine, context = self.settings, self.context
        return Control(
            "iam", context.endpoint, context.node, {"fleet": mine.fleet, "name": mine.name, "era": context.era}
        )

    def _can_prove(self, host: str) -> bool:
        """Whether the answer proves who sent it: the node asks on its own machine, and only that machine can reach it."""
        return is_loopback(self.settings.host) and is_loopback(host)

    def give_way(self, twin: bytes, now: Now) -> None:
        """An older node has our name: stop this node, with an event."""
        self.beacon_at = None
        self.context.tell(NameTaken(self.settings.name, twin))

    def speak_up(self, heard: Neighbour, now: Now) -> None:
        """A newer node has our name: send a beacon at once, so that it learns of us."""
        self._call(self.settings.base_port)

    def leave(self, heard: None, now: Now) -> None:
        """Say goodbye, so that no node has to wait for four missing beacons."""
        self.beacon_at = None
        self._call(0)

    def _assign(self, event: type[ParentAssigned] | type[ParentMoved], endpoint: str, level: str) -> None:
        self.parent_endpoint = shifted(endpoint, LINK)
        self.context.tell(event(self.parent_endpoint, self.settings.parent))
        self._tell_place(endpoint, level)

    def _tell_place(self, endpoint: str, level: str) -> None:
        """Report the place given in the file (CFG-030): below a root, unless a beacon shows otherwise."""
        is_branch = self.settings.level == "collector"
        place = Place(
            parent=endpoint,
            parent_name="" if ":" in self.settings.parent else self.settings.parent,
            root=endpoint if level == "root" else "",
            level="branch" if is_branch else "leaf",
            group=STATIC_GROUP,
            tier=1 if level in ("root", "") else 2,
        )
        self.context.tell_place(place, ("/",) if is_branch else topics_of(place))

    def _lose(self, name: str) -> None:
        gone = self.neighbours.pop(name)
        self.context.tell(NodeVanished(name, gone.beacon.level))

    def _call(self, port: int) -> None:
        if self.settings.beacons:
            mine, context = self.settings, self.context
            beacon = Beacon(mine.fleet, mine.name, context.node, context.level, port, context.era, mine.has_store)
            context.send("beacon", b"", beacon)
