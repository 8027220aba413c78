"""State that the parts of the topology core share: identity, knowledge of the tree, outbox."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.endpoints import endpoint_of
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, Now
from weft.cores.kit.outbox import Outbox
from weft.cores.topology import limits
from weft.cores.topology.atlas import Atlas
from weft.cores.topology.memory import Candidates, GivenUp, Leaving, Memory, Place, Promised, Root, Starts, to_record
from weft.cores.topology.messages import PlaceAssigned, RootKnown, TopologySettings, VotePromised
from weft.wire.discovery import LEVEL_NAMES, Announcement, Control
from weft.wire.envelope import Answer, Envelope
from weft.wire.replication import EPOCH_MAX, Wtf, counter_of, epoch_of


class Context(Outbox):
    """Shared by the parts of one core. Its fields are durable here, except `parent_is` and the flags."""

    def __init__(self, settings: TopologySettings, node: bytes, era: int, chance: Chance) -> None:
        super().__init__()
        self.settings, self.node, self.era, self.chance = settings, node, era, chance
        self.endpoint = endpoint_of(settings.host, settings.base_port)
        self.atlas = Atlas()
        self.root, self.place, self.promised, self.starts = Root(), Place(), Promised(), Starts()
        self.candidates, self.given_up, self.leaving = Candidates(), GivenUp(), Leaving()
        self.keys_of: Callable[[Iterable[bytes]], dict[str, Any]] = lambda _: {}
        """What an assignment says of the keys of the nodes that it names; without keys nothing (SEC-013)."""
        self.parent_is = "heard"
        self.is_root = self.is_acting = False
        """Root: of its epoch; acting: a temporary substitute for the root (REC-014). Never both."""
        self.started_at = 0
        self.is_damaged = False
        """Part of this node's journal is lost: a root by file or journal leads only after comparing with others
        (JRN-023).
        """

    @property
    def beat_ns(self) -> int:
        """H: from the fleet's configuration, else from the file."""
        return self.atlas.heartbeat_ns or self.settings.heartbeat_ns

    @property
    def dead_ns(self) -> int:
        """D."""
        return self.beat_ns * (self.atlas.dead_after or self.settings.dead_after)

    @property
    def election_ns(self) -> int:
        """W (CFG-074)."""
        return max(limits.ELECTION_NS_MIN, self.beat_ns // 2)

    @property
    def holds(self) -> list[int]:
        """Epoch and counter of the configuration that this node has."""
        return [epoch_of(self.atlas.number), counter_of(self.atlas.number)]

    @property
    def holds_all(self) -> bool:
        """Whether a root without its disk may fetch this node's store (REC-016)."""
        return self.place.level == "branch" and self.place.tier == 1 and not self.atlas.is_partial

    @property
    def shown(self) -> dict[str, str]:
        """The digest of what this node has, for messages; empty while nothing is known (FLD-003)."""
        return {"digest": self.atlas.digest.hex()} if self.atlas.digest else {}

    @property
    def leads(self) -> bool:
        """Whether this node answers POLO messages."""
        return self.is_root or self.is_acting

    @property
    def level(self) -> str:
        """This node's present role: `root`, `collector` or `sensor`."""
        if self.leads:
            return "root"
        placed = LEVEL_NAMES[self.place.level] if self.place.parent else "sensor"
        return placed if self.settings.level == "auto" else self.settings.level

    def check_epoch(self, epoch: int) -> None:
        """PeerError `epoch-jump` for an epoch that a fleet cannot have reached (FLD-011)."""
        record = self.atlas.root.epoch if self.atlas.root is not None else 0
        highest = max(self.root.epoch, self.place.epoch, self.promised.epoch, epoch_of(self.atlas.number), record, 0)
        if epoch > highest + limits.EPOCH_STEP_MAX:
            raise PeerError("epoch-jump", f"{epoch} is more than {limits.EPOCH_STEP_MAX} above {highest}")

    def record(self) -> RootKnown | None:
        """The root of record. Of the two sources the one with the higher epoch counts; if equal, the configuration."""
        mine = RootKnown(self.root.node, self.root.epoch) if self.root.node else None
        if self.is_root or self.atlas.root is None:
            return mine
        configured = RootKnown(self.atlas.root.node, self.atlas.root.epoch)
        return mine if mine is not None and mine.epoch > configured.epoch else configured

    def is_of_record(self, node: bytes) -> bool:
        """Whether the configuration replicated here names `node` as the root."""
        return self.atlas.root is not None and self.atlas.root.node == node

    def remember(self, *memories: Memory) -> None:
        """Journal changed state; it is in force from then on. A wall."""
        fresh = [memory for memory in memories if memory != self._kept(type(memory))]
        for memory in fresh:
            setattr(self, _FIELDS[type(memory)], memory)
        if fresh:
            self.persist(map(to_record, fresh))

    def _kept(self, kind: type[Memory]) -> Memory:
        kept: Memory = getattr(self, _FIELDS[kind])
        return kept

    def doubt(self) -> None:
        """Records are lost here, perhaps a promise.

        Promise nothing for two epochs, unless a later promise is still there.
        """
        self.is_damaged = True
        known = max(self.promised.epoch, self.root.epoch, 0)
        self.promised = Promised(min(known + limits.DOUBTED_EPOCHS, EPOCH_MAX))

    def promise(self, epoch: int, node: bytes) -> None:
        """Promise the vote durably.

        Written even if it is a repetition: the first record may not be on disk yet (REC-011).
        """
        self.promised = Promised(epoch, node)
        self.candidates = self.candidates.plus(epoch, node, epoch_of(self.atlas.number))
        self.persist((to_record(self.promised), to_record(self.candidates)))
        self.tell_promises()

    def tell_promises(self) -> None:
        """Tell the promises.

        This node's confirmations count for the old root only together with those of its candidates.
        """
        self.tell(VotePromised(self.candidates.promises))

    def recall(self, memory: Memory) -> None:
        """Restore a record."""
        setattr(self, _FIELDS[type(memory)], memory)

    def memories(self) -> list[Memory]:
        """The records of a snapshot: everything that is not empty."""
        return [kept for kind in _FIELDS if (kept := self._kept(kind)) != kind()]

    def say(self, endpoint: str, command: str, properties: dict[str, Any]) -> None:
        """Send a command to the node at `endpoint`; never to this node itself."""
        if endpoint and endpoint != self.endpoint:
            self.send("call", endpoint.encode(), Control(command, self.endpoint, self.node, properties))

    def say_wtf(self, endpoint: str, wtf: Wtf) -> None:
        """Refuse an announcement of the node at `endpoint`."""
        self.send("call", endpoint.encode(), wtf)

    def answer(self, peer: bytes, envelope: Envelope, message: Control | Wtf) -> None:
        """Answer a caller."""
        self.send("control", peer, Answer(envelope, message))

    def announcement(self, key: str, content: dict[str, Any]) -> Announcement:
        """A message of this node for all subscribers."""
        return Announcement(key, self.endpoint, self.node, content)

    def uptime_ms(self, now: Now) -> int:
        return (now.mono - self.started_at) // MILLISECOND

    def tell_place(self, place: Place, topics: tuple[str, ...]) -> None:
        """Tell the other cores this node's place."""
        self.tell(
            PlaceAssigned(
                parent=place.parent,
                parent_name=place.parent_name,
                root=place.root,
                level=LEVEL_NAMES[place.level],
                group=place.group,
                tier=place.tier,
                epoch=place.epoch,
                topics=topics,
            )
        )


_FIELDS: Final[dict[type[Memory], str]] = {
    Promised: "promised",
    Root: "root",
    Place: "place",
    Starts: "starts",
    Candidates: "candidates",
    GivenUp: "given_up",
    Leaving: "leaving",
}


def topics_of(place: Place) -> tuple[str, ...]:
    """The topics that a node at this place replicates (CFG-030)."""
    if place.level == "branch" and place.tier <= 1:
        return ("/",)
    common = ("/TOPO/root", "/CONFIG/global/")
    if place.level == "leaf":
        return (*common, f"/CONFIG/{place.group}/")
    groups = place.below or (place.group,)
    return (*common, *(f"/{top}/{group}/" for group in groups for top in ("CONFIG", "TOPO")))
