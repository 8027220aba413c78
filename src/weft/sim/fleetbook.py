"""Records facts about a fleet that places itself: who leads, what is written, what each node runs, the final state.

Writes are read from the bytes that are published, roles from the events of nodes, and pairs from the answers that users
get: nobody can see what a core holds and has not made durable yet. Only at rest are the cores themselves asked.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from weft.base.effects import Reply, Tell
from weft.base.now import MILLISECOND, SECOND
from weft.base.records import CoreRecord, Entry, Stream, StreamRecord
from weft.cores.configuration import messages as configuration
from weft.cores.topology import messages as topology
from weft.cores.topology.context import topics_of
from weft.cores.topology.limits import ELECTION_NS_MIN
from weft.cores.topology.memory import CORE, Promised, from_record
from weft.cores.topology.states import Role
from weft.node.node import NodeEffect, Transmit
from weft.sim.locksmith import LOCKSMITH
from weft.wire.discovery import GRANTED, Control, decode_called
from weft.wire.journal import decode_record
from weft.wire.replication import KvPub, decode_update, number_of

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine

DELETED: Final = b"deleted"  # an attribute of each write's record for the lake
HUGZ: Final = b"HUGZ"  # the first frame of a beat
CAREFUL: Final = 3
"""One in this many writes has a condition."""
PEOPLE: Final = ("one", "another")
"""The writers, in turn. Each knows the confirmations it got."""
READING: Final = 0
"""The ticket of all readers; those of writes begin at 1."""
MARGIN_NS: Final = 3 * SECOND // 2  # of both bounds (REC-005, REC-013)
Noted = Callable[["Machine", Any], list[Any]]


def digest_of(value: bytes) -> str:
    """A short digest of a value."""
    return blake2b(value, digest_size=8).hexdigest()


class FleetBook:
    """Records facts for the checkers of fleets."""

    def __init__(self, fabric: "Fabric") -> None:
        self.fabric, self.recorder = fabric, fabric.recorder
        self._tickets: dict[int, tuple[str, str, str]] = {}
        self._careful: dict[int, bool] = {}
        """Tickets of writes that wait for an answer: whether they had a condition."""
        self._confirmed: dict[tuple[str, str, str], tuple[int, str]] = {}
        """Per writer, fleet and key: number and digest of the last write of which the writer was told that a majority
        has it."""
        self._topics: dict[str, tuple[str, ...]] = {}
        self._published_before: dict[tuple[str, int, str, str], None] = {}
        """Writes published before: what a collector repeats for its children is no new write."""

    def spoke(self, machine: "Machine", effect: NodeEffect) -> None:
        """An effect is about to be carried out."""
        if type(effect) is Transmit:
            if effect.channel == "publish" and effect.frames[0] != HUGZ:
                self._published(machine, effect)
            elif effect.channel == "call":
                self._called(machine, effect)
        elif type(effect) is Tell:
            self._happened(machine, effect.event)
        elif type(effect) is Reply:
            self._replied(machine, effect)

    def _happened(self, machine: "Machine", event: Any) -> None:
        """A core of the node tells of something."""
        if isinstance(event, topology.RootTaken):
            self._topics.pop(machine.name, None)  # a root has them all
            if event.is_acting:
                self.recorder.meet("a node that acts for the root")
        row = EVENTS.get(type(event))
        if row is not None:
            self.recorder.note(machine.name, machine.era, "event", row[0], row[1](machine, event))
        elif isinstance(event, topology.PlaceAssigned):
            self._placed(machine, event.topics)
        elif isinstance(event, configuration.ReplicaResynced):
            self._adopted(machine)

    # Votes

    def durable(self, machine: "Machine", batch: Iterable[bytes]) -> None:
        """A batch is about to be durable; it may hold promises, and writes of the configuration."""
        name = CORE.encode()
        self.kept(machine, ((0, decode_record(data)) for data in batch if name in data or DELETED in data))

    def kept(self, machine: "Machine", entries: Iterable[Entry]) -> None:
        """These promises, and these writes of the configuration, are on the disk."""
        for _, record in entries:
            if isinstance(record, CoreRecord) and record.core == CORE:
                memory = from_record(record)
                if isinstance(memory, Promised):
                    self.recorder.note(machine.name, machine.era, "durable", "promise", [memory.epoch])
            elif type(record) is StreamRecord and record.stream == Stream.CONFIGURATION:
                number, digest = number_of(record.era or 0, record.sequence), digest_of(record.payload)
                write = [machine.plan.fleet, number, record.key, digest]
                self.recorder.note(machine.name, machine.era, "durable", "write", write)

    def _called(self, machine: "Machine", effect: Transmit) -> None:
        message = decode_called(effect.frames)
        if isinstance(message, Control) and message.command == GRANTED:
            epoch = message.properties["propose"]
            self.recorder.note(machine.name, machine.era, "sent", "vote", [machine.plan.fleet, epoch])

    # The configuration

    def _placed(self, machine: "Machine", topics: tuple[str, ...]) -> None:
        """Record that the node replicates other topics: with fewer of them its last number may be an older one."""
        if self._topics.get(machine.name) != topics:
            self._topics[machine.name] = topics
            self.recorder.note(machine.name, machine.era, "event", "other-topics", list(topics))

    def _adopted(self, machine: "Machine") -> None:
        """A snapshot has replaced the store: record its contents at its numbers, and the root's at the same numbers."""
        self.recorder.meet("a snapshot of the configuration adopted")
        fleet = machine.plan.fleet
        for topic in _topics(machine):
            number = _store(machine).tip(topic)
            for holder in (machine, *(other for other in self.fabric.fleet_of(fleet) if other.node is not None)):
                if holder is machine or (_role(holder) is Role.ROOT and _store(holder).tip(topic) == number):
                    tally = _store(holder).tally_of(topic)
                    fact = [fleet, topic, number, tally.count, tally.digest.hex()]
                    self.recorder.note(holder.name, holder.era, "event", "adopted", fact)

    def _published(self, machine: "Machine", effect: Transmit) -> None:
        update = decode_update(effect.frames)
        if not isinstance(update, KvPub) or update.uuid != machine.node_id:
            return
        write = (machine.plan.fleet, update.number, update.key, digest_of(update.value))
        if write not in self._published_before:
            self._published_before[write] = None
            self.recorder.note(machine.name, machine.era, "sent", "write", list(write))

    # Writes of people

    def write(self, machine: "Machine", key: str, value: bytes, ack: str) -> None:
        """Somebody writes a pair at this node; every third time only over the last confirmed write."""
        ticket = len(self._tickets) + 1
        digest = digest_of(value)
        self._tickets[ticket] = (key, digest, ack)
        known = self._confirmed.get((_who(ticket), machine.plan.fleet, key)) if ticket % CAREFUL == 0 else None
        self._careful[ticket] = known is not None
        operation = ["set", digest] if known is None else ["swap", known[1], digest]
        self._call("invoke", [_who(ticket), ticket, f"{machine.plan.fleet}{key}", operation])
        write = configuration.Write(key, value, if_number=None if known is None else known[0])
        order = configuration.WriteKeys(ticket, (write,), who="somebody", ack=ack)
        machine.obey("configuration", order)

    def _call(self, kind: str, value: list[Any]) -> None:
        self.recorder.note("", 0, kind, "call", value)

    def _replied(self, machine: "Machine", effect: Reply) -> None:
        answer, wanted = effect.answer, self._tickets.get(effect.ticket)
        if effect.ticket >= LOCKSMITH:
            return
        if isinstance(answer, configuration.KeysListed):
            self._listed(machine, answer)
            return
        if wanted is None or not isinstance(answer, configuration.Written):
            self.recorder.meet("a write refused")
            if wanted is not None:
                self._call("fail", [_who(effect.ticket), effect.ticket])
            return
        self.recorder.meet("a write confirmed" if answer.is_confirmed else "a write not confirmed")
        if answer.number:
            key, digest, ack = wanted
            is_confirmed = answer.is_confirmed and ack == "quorum"
            value = [machine.plan.fleet, key, digest, answer.number, is_confirmed]
            self.recorder.note(machine.name, machine.era, "ok", "wrote", value)
            if is_confirmed:
                self._confirm(machine.plan.fleet, effect.ticket, answer.number)

    def _confirm(self, fleet: str, ticket: int, number: int) -> None:
        """A majority has the write, so it has taken effect. An unconfirmed one may do so later, or never."""
        key, digest, _ = self._tickets[ticket]
        is_careful = self._careful.pop(ticket, False)
        self._call("ok", [_who(ticket), ticket, True if is_careful else None])
        self._confirmed[_who(ticket), fleet, key] = number, digest

    # The dead

    def buried(self, machine: "Machine") -> None:
        """A node dies while nothing else is wrong: from now on its replacement is timed."""
        fleet = next(fleet for fleet in self.fabric.plan.fleets if fleet.name == machine.plan.fleet)
        beat_ns = fleet.heartbeat_ms * MILLISECOND
        dead_ns, wait_ns = beat_ns * fleet.dead_after, max(ELECTION_NS_MIN, beat_ns // 2)
        at, is_root = self.fabric.world.at, machine.level == "root"
        if is_root and any(other.level == "root" for other in self.fabric.fleet_of(fleet.name) if other is not machine):
            self.recorder.meet("a root dead that was none any more")  # a slow disk: another node leads already
            return
        if is_root:
            due = ["root", fleet.name, at + dead_ns + 4 * wait_ns + MARGIN_NS, machine.name]
            self.recorder.note(machine.name, machine.era, "info", "due", due)
            return
        for other in self.fabric.fleet_of(fleet.name):
            if other.parent_endpoint == machine.endpoint:
                due = ["parent", other.name, at + dead_ns + MARGIN_NS, machine.name]
                self.recorder.note(machine.name, machine.era, "info", "due", due)

    # Now and then, and at rest

    def read(self, machine: "Machine") -> None:
        """Somebody reads the configuration at this node; as for users, the answer waits for the wall of the turn."""
        if machine.node is not None:
            machine.obey("configuration", configuration.ListKeys(READING, ""))

    def _listed(self, machine: "Machine", listed: configuration.KeysListed) -> None:
        for key, number, value in listed.pairs:
            fact = [machine.plan.fleet, key, number, digest_of(value)]
            self.recorder.note(machine.name, machine.era, "ok", "read-pair", fact)

    def look(self) -> None:
        """Record the role of each node, and a digest of each topic that several nodes replicate."""
        for fleet in self.fabric.plan.fleets:
            living = [machine for machine in self.fabric.fleet_of(fleet.name) if machine.node is not None]
            topics = dict.fromkeys(topic for machine in living for topic in _topics(machine))
            for machine in living:
                self.read(machine)
                self._standing(machine)
                for topic in topics if _role(machine) is Role.ROOT else _topics(machine):
                    pairs = [
                        f"{pair.key} {pair.number} {digest_of(pair.value)}" for pair in _store(machine).view(topic)
                    ]
                    subject = [f"{topic} of {fleet.name}", digest_of("\n".join(pairs).encode())]
                    self.recorder.note(machine.name, machine.era, "info", "state", subject)

    def _standing(self, machine: "Machine") -> None:
        node = machine.running
        core: Any = node.cores["topology"]
        replica: Any = node.cores["configuration"]
        fleet, role = machine.plan.fleet, _role(machine)
        value = [fleet, role.name, core.standing.name, replica.state.name, machine.parent_endpoint]
        self.recorder.note(machine.name, machine.era, "info", "standing", value)
        if role is Role.ROOT:
            pairs = [[pair.key, pair.number, digest_of(pair.value)] for pair in _store(machine).view("")]
            self.recorder.note(machine.name, machine.era, "info", "store", [fleet, pairs])
            for key in dict.fromkeys(key for _, at, key in self._confirmed if at == fleet):
                self._read_last(fleet, key, {pair[0]: pair[2] for pair in pairs}.get(key))

    def _read_last(self, fleet: str, key: str, digest: str | None) -> None:
        """Record the final value as the outcome of all writes."""
        ticket = len(self._tickets) + 1
        self._tickets[ticket] = (key, "", "")
        self._call("invoke", [_who(ticket), ticket, f"{fleet}{key}", ["get"]])
        self._call("ok", [_who(ticket), ticket, digest])


def _who(ticket: int) -> str:
    return PEOPLE[ticket % len(PEOPLE)]


def _role(machine: "Machine") -> Role:
    core: Any = machine.running.cores["topology"]
    role: Role = core.role
    return role


def _store(machine: "Machine") -> Any:
    core: Any = machine.running.cores["configuration"]
    return core.store


def _topics(machine: "Machine") -> tuple[str, ...]:
    """The topics that the node replicates at its place."""
    core: Any = machine.running.cores["topology"]
    place = core.context.place
    return topics_of(place) if place.parent and _role(machine) is not Role.ROOT else ()


EVENTS: Final[dict[type, tuple[str, Noted]]] = {
    topology.RootTaken: ("root-taken", lambda machine, event: [machine.plan.fleet, event.epoch, event.is_acting]),
    topology.RootLeft: ("root-left", lambda machine, event: [machine.plan.fleet, event.epoch]),
    configuration.ParentSilent: ("parent-silent", lambda _, event: [event.silent_ns]),
    configuration.ConfigurationApplied: ("applied", lambda _, event: [event.number]),
    configuration.ConfigurationWiped: ("went-back", lambda _, event: [event.number, event.last]),
    configuration.ConfigurationRewound: ("went-back", lambda _, event: [event.number, event.last]),
}
"""Names and values of events in the history."""
