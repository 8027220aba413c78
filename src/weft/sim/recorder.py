"""Records what happens: facts for the checkers, pieces for the trace, lines for the story.

It reads them from the bytes that travel and the batches that become durable, and does not ask the cores. It changes
nothing, so a run is the same with and without it (SIM-012).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.effects import Connect, Disconnect, Perform, Tell
from weft.base.errors import PeerError
from weft.base.mail import INBOX, OUTBOX
from weft.base.records import EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.checks import Fact, Suite
from weft.cores.carrier import messages as carrier
from weft.node.node import Ended, Node, NodeEffect, Transmit
from weft.sim.disk import Claim, Damage
from weft.sim.lake import Segment
from weft.sim.plan import Action
from weft.sim.sometimes import PREFIX, of_counters, of_event
from weft.wire import hop
from weft.wire.carried import MAIL_STREAMS, to_record

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine

RECORD: Final = "record"
LOSS: Final = "loss"
LINK: Final = "link"
MESSAGE: Final = "message"
"""Records that a root has made of mail: numbered by the sender, which never journaled them under that number."""
_mark = Struct(">QHB").pack
SHARED: Final = (Stream.DOCUMENTS, Stream.STORE)
"""Streams whose origin is no start of a node: whoever keeps a record first has made it."""
HEARD, SAID, WROTE, SYNCED, CRASHED, STARTED, PUBLISHED = range(7)
Listener = Callable[[int, str, str, Any], None]
"""Takes the story: instant, node, event, value."""


class Recorder:
    """Records what the machines of one fabric do."""

    def __init__(self, fabric: "Fabric", suite: Suite, *, keep: bool) -> None:
        self.fabric, self.world, self.suite = fabric, fabric.world, suite
        self.history: list[Fact] = []
        self.listener: Listener | None = None
        self.counts: Counter[str] = Counter()
        self._keep = keep
        self._given: dict[tuple[str, int], int] = {}
        """The last number of each origin and stream that was durable where it was made."""
        self._writers: dict[str, str] = {}
        """The root that wrote in each epoch."""

    def note(self, node: str, process: int, kind: str, what: str, value: Any) -> None:
        """One fact: to the checkers at once, to the history if it is kept."""
        fact = Fact(self.world.at, node, process, kind, what, value)
        if self._keep:
            self.history.append(fact)
        self.suite.feed(fact)

    def meet(self, situation: str) -> None:
        """Count a situation that has to be met sometimes (SIM-010)."""
        self.counts[PREFIX + situation] += 1

    def count(self, node: Node) -> None:
        """Count the situations that the carrier of a node has met, by its counters, before it ends."""
        core: Any = node.cores.get("carrier")
        for name in of_counters(core.counters) if core is not None else ():
            self.meet(name)

    def _tell(self, machine: "Machine", what: str, value: Any) -> None:
        if self.listener is not None:
            self.listener(self.world.at, machine.name, what, value)

    # The process.

    def started(self, machine: "Machine") -> None:
        """A process begins, with this on its disk."""
        plan = machine.plan
        self.counts["starts"] += 1
        self.world.trace(_mark(self.world.at, machine.number, STARTED))
        dead_ns = self.fabric.plan.dead_ms * 1_000_000
        self.note(machine.name, machine.era, "info", "start", [machine.level, plan.parent, dead_ns])
        if machine.disk.snapshot_upto:
            self.meet("a snapshot restored")
        if machine.starts > 1:
            self.meet(f"a {machine.level} that starts again")
        if plan.parent and self.fabric.machines[plan.parent].node is None:
            self.meet("a start while the parent is away")
        if machine.starts > 1:
            self.note(machine.name, machine.era, "info", "restored", self._holds(machine))
        self._tell(machine, "started", machine)

    def _holds(self, machine: "Machine") -> list[Any]:
        claims = [claim for claim in machine.disk.claims if claim is not None]
        return [[list(claim[1:]) for claim in _of(kind, claims)] for kind in (RECORD, LOSS)]

    def crashed(self, machine: "Machine", disk: str, survived: Sequence[Claim]) -> None:
        """A process ends; `survived` reached the disk without anyone hearing of it."""
        self.counts["crashes"] += 1
        self.world.trace(_mark(self.world.at, machine.number, CRASHED) + disk.encode())
        self.note(machine.name, machine.era, "info", "crash", [disk])
        self._tell(machine, "crashed", disk)
        parent = machine.plan.parent
        if parent and self.fabric.machines[parent].node is None:
            self.meet("an end while the parent is away")
        if survived:
            self.meet("a batch that survived its crash unheard")
        self._durable(machine, survived)

    def went_back(self, machine: "Machine", how: str) -> None:
        """A disk is empty, or an old one."""
        for book in self.fabric.books:
            book.went_back(machine)
        self.meet("a disk lost" if how == "lost" else "a disk from the past")
        if how == "lost" and machine.level == "collector":
            self.meet("a collector's disk lost")
        self.note(machine.name, machine.era, "info", "disk", [how, *self._holds(machine)])

    def harmed(self, machine: "Machine", how: str, damages: Sequence[Damage]) -> None:
        """A journal was damaged between two runs: nobody has to find the lost records again.

        The numbers that footers list for these have to be announced as lost, unless another node still has them.
        """
        self.meet(f"a journal {how}")
        if machine.level != "sensor":
            self.meet(f"a {machine.level}'s journal harmed")
        self.fabric.storebook.harmed(machine, damages)
        self.fabric.documentbook.harmed(machine)
        spans = [span for damage in damages for span in damage.listed if span.stream not in MAIL_STREAMS]
        lost = [LostRecord(one.stream, one.origin, one.era, one.first, one.last, "") for one in spans]
        listed = [claim for each in lost if (claim := machine.claim_of(each)) is not None]
        gone = [claim for damage in damages for claim in damage.gone]
        parts = [[list(claim[1:]) for claim in part] for part in (_of(RECORD, gone), _of(LOSS, gone), listed)]
        self.note(machine.name, machine.era, "info", "harmed", [how, machine.disk.is_refused, *parts])
        self.note(machine.name, machine.era, "info", "disk", ["harmed", *self._holds(machine)])

    def copied(self, machine: "Machine", twin: "Machine") -> None:
        """A second machine has a copy of its disk: note what that holds now, since the note of the last start may be out of date."""
        self.meet("a copied disk")
        records, losses = self._holds(machine)
        self.note(machine.name, machine.era, "info", "disk", ["copied", records, losses])
        for record in records:
            self.note(twin.name, twin.era, "durable", "held", record)
        for loss in losses:
            self.note(twin.name, twin.era, "durable", "lost", [*loss, ""])

    def paused(self, machine: "Machine", *, is_paused: bool) -> None:
        """A process is paused or resumed."""
        self.note(machine.name, machine.era, "info", "paused" if is_paused else "resumed", None)
        self._tell(machine, "paused" if is_paused else "resumed", None)

    def ended(self, machine: "Machine", event: Any) -> None:
        """A node has ended by itself."""
        self.note(machine.name, machine.era, "event", "ended", [type(event).__name__])
        self._tell(machine, "ended", event)

    def gone(self, machine: "Machine") -> None:
        """A node is dead for good."""
        self.meet("a node dead for good")
        self.note(machine.name, machine.era, "info", "gone", None)

    def acted(self, action: Action) -> None:
        """Something is done to the fabric."""
        if self.listener is not None:
            self.listener(self.world.at, "" if action.other else action.node, "acted", action)

    def injected(self, machine: "Machine", channel: str, digest: str) -> None:
        """Bytes that must be refused are about to be handed in."""
        self.counts["injected"] += 1
        self.note(machine.name, machine.era, "info", "injected", [channel, digest])

    def knocked(self, machine: "Machine", value: list[Any]) -> None:
        """An intruder has tried one of its ports; `value` is the result."""
        self.counts["knocked"] += 1
        self.note(machine.name, machine.era, "info", "knocked", value)

    def absorbed(self, machine: "Machine", value: list[Any]) -> None:
        """Such bytes were handed in; record their effect."""
        self.note(machine.name, machine.era, "info", "absorbed", value)

    # The disk.

    def written(self, machine: "Machine") -> None:
        """A batch is written and not yet synced."""
        data = b"".join(machine.disk.unsynced_bytes())
        self.world.trace(_mark(self.world.at, machine.number, WROTE) + data)

    def synced(self, machine: "Machine", claims: Sequence[Claim]) -> None:
        """It is durable."""
        self.world.trace(_mark(self.world.at, machine.number, SYNCED))
        self._durable(machine, claims)

    def _durable(self, machine: "Machine", claims: Sequence[Claim]) -> None:
        if claims:
            self._tell(machine, "durable", claims)
        own = f"{machine.origin}/{machine.era}"
        for kind, stream, origin, first, last in claims:
            if kind == RECORD:
                is_own = origin == own or stream in SHARED or self._is_writer(machine, stream, origin)
                # Records that a former root gives back were taken before.
                is_own = is_own and last > self._given.get((origin, stream), 0)
                what = "taken" if is_own else "held"
                if is_own:
                    self._given[origin, stream] = last
                self.counts[what] += last - first + 1
                self.note(machine.name, machine.era, "durable", what, [stream, origin, first, last])
            elif kind == LOSS:
                self.note(machine.name, machine.era, "durable", "lost", [stream, origin, first, last, ""])
            elif kind == LINK:
                before = f"{origin.rpartition('/')[0]}/{first}"
                self.note(machine.name, machine.era, "durable", "link", [stream, origin, before, last])

    def _is_writer(self, machine: "Machine", stream: int, origin: str) -> bool:
        """Whether it is a write of this root: its origin is the fleet's epoch, not a start of a node."""
        if stream != Stream.CONFIGURATION:
            return False
        writer = self._writers.setdefault(origin, machine.name if machine.level == "root" else "")
        return writer == machine.name and machine.level == "root"

    def forgot(self, machine: "Machine", claims: Iterable[Claim]) -> None:
        """The journal gave up these records on purpose."""
        self.meet("records forgotten")
        for kind, stream, origin, first, last in claims:
            if kind == RECORD:
                self.note(machine.name, machine.era, "info", "forgot", [stream, origin, first, last])

    def published(self, machine: "Machine", stream: int, segment: Segment) -> None:
        """A segment exists."""
        self.counts["segments"] += 1
        self.world.trace(_mark(self.world.at, machine.number, PUBLISHED) + segment.digest.encode())
        claims = [[c.origin, c.first, c.last] for c in segment.claims if c.kind == RECORD]
        losses = [[c.origin, c.first, c.last] for c in segment.claims if c.kind == LOSS]
        self.counts["drained"] += segment.rows
        if losses:
            self.meet("an announcement of loss in the lake")
        self.note(machine.name, machine.era, "durable", "segment", [stream, segment.number, claims, losses, []])
        self.fabric.mailbook.published(machine, [c for c in segment.claims if c.kind == MESSAGE])
        self._tell(machine, "published", (stream, segment))

    # Messages on sockets.

    def heard(self, machine: "Machine", channel: str, peer: bytes, frames: list[bytes]) -> None:
        """A message is read from a socket."""
        self.counts["heard"] += 1
        self.world.trace(_mark(self.world.at, machine.number, HEARD) + peer + b"".join(frames))
        if channel == "document":
            self.fabric.documentbook.heard(machine, peer, frames)
        self._tell(machine, "heard", (channel, peer, frames))

    def spoke(self, machine: "Machine", effect: NodeEffect) -> None:
        """An effect is about to be done."""
        if type(effect) is Transmit:
            self._transmits(machine, effect)
        else:
            self.world.trace(_mark(self.world.at, machine.number, SAID) + _bytes_of(effect))
            if type(effect) is Tell:
                self._tells(machine, effect.event)
        if self.fabric.fleetbook is not None:
            self.fabric.fleetbook.spoke(machine, effect)
        for book in self.fabric.books:
            book.spoke(machine, effect)
        self._tell(machine, "spoke", effect)

    def _transmits(self, machine: "Machine", effect: Transmit) -> None:
        frames = effect.frames
        self.world.trace(_mark(self.world.at, machine.number, SAID) + effect.peer + b"".join(frames))
        head = frames[0][:12] if frames else b""
        if effect.channel == "up":
            if b"\xa3hop" in head:
                self._sent_hop(machine, frames)
            elif b"\xa5hello" in head:
                self._sent_hello(machine, frames)
        elif effect.channel == "down" and (b"\xa4hack" in head or b"\xa7welcome" in head):
            self._sent_hack(machine, effect)

    def _sent_hello(self, machine: "Machine", frames: list[bytes]) -> None:
        message = hop.decode(frames)
        if isinstance(message, hop.Hello):
            self.note(machine.name, machine.era, "sent", "hello", [machine.plan.parent, message.era, message.first])

    def _sent_hop(self, machine: "Machine", frames: list[bytes]) -> None:
        message = hop.decode(frames)
        if not isinstance(message, hop.Hop) or message.mem:
            return
        claims = [self._claim_of_item(machine, item, own) for _, item, own in message.numbered()]
        self.counts["hops"] += len(claims)
        self.note(machine.name, machine.era, "sent", "hop", [machine.plan.parent, message.era, message.s, claims])

    def _claim_of_item(self, machine: "Machine", item: hop.HopItem, frames: list[bytes]) -> list[Any]:
        claim = None
        if item.n:
            try:
                claim = machine.claim_of(to_record(item, frames, 0))
            except PeerError:
                claim = None  # the receiver will judge it
        is_judged = claim is not None and claim.kind != MESSAGE  # `mailbook` records messages
        return [*claim[1:], claim.kind] if claim is not None and is_judged else [0, "", 0, 0, LINK]

    def _sent_hack(self, machine: "Machine", effect: Transmit) -> None:
        message = hop.decode(effect.frames)
        child = self.fabric.child_of(effect.peer)
        if child is None or not isinstance(message, hop.Hack | hop.Welcome):
            return
        value = [child, message.era, message.upto, message.safe or 0]
        self.note(machine.name, machine.era, "sent", "hack", value)

    def _tells(self, machine: "Machine", event: Any) -> None:
        if isinstance(event, carrier.SpoolDropped) and self.fabric.children_of(machine.name):
            self.meet("a drop by a node with children")
        situation = of_event(event)
        if situation:
            self.meet(situation)
        row = EVENTS.get(type(event))
        if row is not None:
            what, value = row
            self.note(machine.name, machine.era, "event", what, value(event))

    # Names.

    def claim_of(self, record: Record, fleet: str) -> Claim | None:
        """What a record that goes up says of itself; None for a core's own."""
        if self.fabric.is_bare:
            return None  # not counted here: `storebook` records changes
        if getattr(record, "stream", 0) != Stream.CONFIGURATION:
            fleet = ""  # only its configuration is a fleet's; all else says of itself whose it is
        if type(record) is StreamRecord:
            if record.stream in (OUTBOX, INBOX):
                return None  # `mailbook` records mail
            origin = self.fabric.origin_name(record.origin, record.era, fleet)
            kind = MESSAGE if record.stream == Stream.MESSAGES else RECORD
            return Claim(kind, record.stream, origin, record.sequence, record.last)
        if type(record) is LostRecord:
            origin = self.fabric.origin_name(record.origin, record.era, fleet)
            return Claim(LOSS, record.stream, origin, record.first, record.last)
        if type(record) is EraRecord:
            origin = self.fabric.origin_name(record.origin, record.era, fleet)
            return Claim(LINK, record.stream, origin, record.era_before, record.last_before)
        return None


def _of(kind: str, claims: Iterable[Claim]) -> list[Claim]:
    return [claim for claim in claims if claim.kind == kind]


EVENTS: Final[dict[type, tuple[str, Callable[[Any], list[Any]]]]] = {
    carrier.ParentJoined: ("parent-joined", lambda event: [event.name]),
    carrier.ParentLost: ("parent-lost", lambda event: [event.why]),
    carrier.LakeUnknown: ("lake-unknown", lambda event: [event.is_unknown]),
    carrier.ChildJoined: ("child-joined", lambda event: [event.name]),
    carrier.ChildLost: ("child-lost", lambda event: [event.name, event.why]),
}
"""Names and values of the cores' events in the history."""

_encode: Final = msgspec.msgpack.Encoder(enc_hook=repr, order="deterministic").encode


def _bytes_of(effect: NodeEffect) -> bytes:
    if isinstance(effect, Connect):
        return effect.endpoint.encode()
    if isinstance(effect, Disconnect):
        return effect.channel.encode()
    content = (
        effect.work if isinstance(effect, Perform) else effect.event if isinstance(effect, Tell | Ended) else effect
    )
    return type(content).__name__.encode() + _encode(content)
