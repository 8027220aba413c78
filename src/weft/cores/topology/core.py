"""This node's place in the tree, and its leadership: neighbours, assignment, records, SOS, elections.

This module connects the parts. A node whose file names its parent only follows that. Any other node is a member, which
a root places. First-level collectors elect a root when it is silent. A root, by file or by election, places the other
nodes.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from weft.base.budget import Budget
from weft.base.chance import Chance
from weft.base.effects import Effect, Source
from weft.base.endpoints import is_endpoint
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, DamageRecord, Entry
from weft.cores.kit.timers import earliest
from weft.cores.topology import limits
from weft.cores.topology.announcing import Announcer
from weft.cores.topology.assignment import epoch_named, parse_assignment, root_named
from weft.cores.topology.beaconing import Beaconing, Neighbour
from weft.cores.topology.context import Context
from weft.cores.topology.election import Cue, Election
from weft.cores.topology.groups import Guest
from weft.cores.topology.halting import Halting
from weft.cores.topology.member import Member, whole
from weft.cores.topology.memory import CORE, Candidates, Promised, Root, from_record, to_record
from weft.cores.topology.messages import (
    AcceptLoss,
    Announcement,
    Asked,
    Beacon,
    ChildIs,
    Control,
    LearnHolds,
    LearnPairs,
    LinkIs,
    NoteDiverged,
    NoteLeaving,
    ParentIs,
    RecordWritten,
    ResetRoot,
    RootKnown,
    RootReset,
    Stop,
    StopNodes,
    TopologySettings,
    Wtf,
)
from weft.cores.topology.recovery import Distress, Rescue
from weft.cores.topology.registry import Asker, Registry, guest_of
from weft.cores.topology.states import Role, Standing, State
from weft.wire.discovery import GRANTED, REFUSED, WUTUP
from weft.wire.replication import (
    BUSY,
    NO_GROUP,
    NO_QUORUM,
    NOT_AUTHORISED,
    NOT_READY,
    NOT_ROOT,
    STALE_EPOCH,
    UNKNOWN_COMMAND,
    epoch_of,
)


class Claim(NamedTuple):
    """A message that named another root, and when that root was asked."""

    cue: Cue
    at: int


LEADING: Final = (BUSY, NO_QUORUM, NO_GROUP)
"""Refusals that only a leading node sends."""


class Topology:
    """The topology core. `host` of a neighbour is the source address of its datagram, as text in bytes."""

    name = CORE

    def __init__(self, settings: TopologySettings, node: bytes, era: int, chance: Chance) -> None:
        self.settings, self.node, self.era = settings, node, era
        self.budget = Budget()
        self.context = Context(settings, node, era, chance)
        self.announcer = Announcer(self.context, self._standing_call)
        self.beaconing = Beaconing(self.context, self._note_neighbour)
        self.member = Member(self.context, self._on_place)
        self.registry = Registry(self.context, self.announcer)
        self.election = Election(self.context, self.announcer)
        self.distress = Distress(self.context, self.member)
        self.rescue = Rescue(self.context, self.registry)
        self.halting = Halting(self.context, self.registry)
        self._parts: Final = (
            self.beaconing,
            self.member,
            self.distress,
            self.election,
            self.registry,
            self.rescue,
            self.halting,
            self.announcer,
        )
        self.may: Callable[[bytes, str], bool] = lambda *_: True
        """Whether a node's key allows a verb; without keys everything is allowed (SEC-026)."""
        self._is_static = bool(settings.parent) and settings.level != "root"
        self._started = False
        self._led = False
        self._record: RootKnown | None = None
        self._claims: dict[str, Claim] = {}
        """By endpoint: nodes reported to be root of a higher epoch; they were asked and have not answered yet."""

    @property
    def state(self) -> State:
        """Whether the static parent is known, and whether this node has ended."""
        return self.beaconing.state

    @property
    def standing(self) -> Standing:
        """The state of this node as a member."""
        return self.member.standing

    @property
    def role(self) -> Role:
        """The state of this node in the election of a root."""
        return self.election.role

    @property
    def neighbours(self) -> dict[str, Neighbour]:
        """The nodes heard on this segment, by name."""
        return self.beaconing.neighbours

    @property
    def parent_endpoint(self) -> str:
        """The node link of a static parent; empty while it is not known."""
        return self.beaconing.parent_endpoint

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore promise, root of record and place; neighbours are found again by their beacons."""
        for _, record in entries:
            if type(record) is CoreRecord and record.core == CORE:
                self.context.recall(from_record(record))
            elif type(record) is DamageRecord:
                self.context.doubt()
        if self.context.candidates.promises:
            self.context.tell_promises()  # before anything is reported

    def condense(self) -> Iterable[CoreRecord]:
        return [to_record(memory) for memory in self.context.memories()]

    # The verbs

    def receive(self, message: Any, source: Source, now: Now) -> None:
        if self.state is State.ENDED and not isinstance(message, Beacon):
            return
        if isinstance(message, Beacon):
            self.beaconing.hear(message, source.peer.decode(), now)
        elif isinstance(message, Asked) and _command_of(message) == "whois":
            self.context.answer(source.peer, message.envelope, self.beaconing.who())
        elif isinstance(message, Control) and message.command == "iam":
            self.beaconing.hear_twin(message, source, now)
        elif not self.settings.calls or self._is_static:
            if isinstance(message, Asked):
                self._refuse(message, source, now)
        else:
            HEARS[type(message)](self, message, source, now)
        self._settle(now)

    def command(self, order: Any, now: Now) -> None:
        action = ORDERS.get(type(order))
        if action is not None:
            action(self, order, now)
            self._settle(now)

    def wake(self, now: Now) -> None:
        if not self._started:
            self._start(now)
        for part in self._parts:
            part.wake(now)
        self._settle(now)

    def deadline(self) -> int | None:
        if not self._started:
            return 0
        if self.state is State.ENDED:
            return None
        return earliest(*[part.deadline() for part in self._parts])

    def effects(self) -> list[Effect]:
        return self.context.take()

    def _start(self, now: Now) -> None:
        self._started = True
        self.context.started_at = now.mono
        self.beaconing.start(now)
        root = self.context.root
        is_own = root.node == self.node or (root.epoch < 0 and self.settings.level == "root")
        if is_own:
            self.election.begin_root(now)
            self.registry.greet(now)
        elif not self._is_static and self.settings.calls:
            self.member.start(now)

    def _settle(self, now: Now) -> None:
        """Apply the election's decision to the other parts."""
        leads = self.context.leads
        has_changed = leads != self._led or (self.context.is_root and self.registry.was_acting)
        self._led = leads
        if leads and has_changed:
            self.member.stop()
            self.registry.lead(now)
            self.rescue.lead()
        elif has_changed:
            self.registry.retire()
            self.rescue.retire()
            self.halting.retire()
        record = self.context.record()
        if record is not None and record != self._record:
            self._record = record
            self.context.tell(record)

    # Input

    def _hear_announcement(self, announced: Announcement, source: Source, now: Now) -> None:
        fleet = announced.content.get("fleet", self.settings.fleet)
        if fleet != self.settings.fleet or announced.uuid == self.node:
            return  # TOP-003
        self.context.check_epoch(max(whole(announced.content.get("epoch")), whole(announced.content.get("propose"))))
        if announced.key == WUTUP:
            self.election.hear(announced, now)
            return
        if not announced.group and announced.content.get("why") != "stop":
            is_acting = announced.content.get("acting") is True
            if is_acting and self.election.outranks(announced.content.get("holds"), announced.uuid):
                if self.election.is_voter:
                    return  # who votes does not give up what a majority may have confirmed for one who only acts (REC-014)
            else:
                cue = Cue(announced.endpoint, announced.uuid, propose=whole(announced.content.get("epoch")))
                self._hear_root(cue._replace(why="acting" if is_acting else ""), now)
        if self._is_member:
            self.member.hear(announced, now)

    @property
    def _is_member(self) -> bool:
        return not self.context.leads and self.role is not Role.STARTING

    def _hear_root(self, cue: Cue, now: Now) -> None:
        """A message names another root.

        If that has a higher epoch, this node stops calling for votes. A node that leads first asks that root itself:
        any node can send such a message, and nothing is stored before the root has answered (FLD-010, FLD-011).
        """
        self.context.check_epoch(cue.propose)
        if not self.election.is_above(cue):
            return
        if self._is_member:
            self.election.crowned(cue, now)
            return
        asked = self._claims.get(cue.endpoint)
        if asked is not None and now.mono < asked.at + limits.ANSWER_NS:
            return
        self._claims.pop(cue.endpoint, None)
        if len(self._claims) >= limits.CLAIMS_MAX:
            del self._claims[next(iter(self._claims))]
        self._claims[cue.endpoint] = Claim(cue, now.mono)
        self.context.say(cue.endpoint, "polo", self.member.portrait(now))

    def _is_confirmed(self, message: Control | Wtf, peer: str, now: Now) -> bool:
        """Whether this is the answer of a root of a higher epoch, to which this node now gives way (REC-015)."""
        claim = self._claims.get(peer)
        if claim is None or self._is_member:
            return False
        cue = claim.cue
        if isinstance(message, Wtf):
            if message.code not in LEADING:
                return False
        elif message.command == "assignment" and message.uuid == self.node:
            place, root = parse_assignment(message.properties)
            self.context.check_epoch(place.epoch)
            if place.root != peer:
                return False
            cue = cue._replace(node=root, propose=place.epoch)
        else:
            return False
        del self._claims[peer]
        if not self.election.is_above(cue):
            return False
        self._give_way(cue, now)
        return True

    def _give_way(self, cue: Cue, now: Now) -> None:
        """Stop leading and writing at once, and follow the root of a higher epoch (REC-015)."""
        self._claims.clear()
        self.election.crowned(cue, now)
        self._settle(now)
        self.registry.retire()  # also if it had only begun
        self.member.submit(cue.endpoint, cue.propose, now)

    def _hear_asked(self, asked: Asked, source: Source, now: Now) -> None:
        message = asked.message
        if isinstance(message, Wtf):
            if message.code == STALE_EPOCH:  # from a member of a later root (TOP-007)
                self._hear_root(Cue(root_named(message), propose=epoch_named(message)), now)
        elif message.command in ("yo", GRANTED, REFUSED):
            self.election.hear_answer(message, now)
        elif message.command in ("polo", "sos") and not self._is_member:
            self._serve(Asker(source.peer, asked.envelope, self._guest_of(message, now)), message, now)
        else:
            self._refuse(asked, source, now)

    def _guest_of(self, message: Control, now: Now) -> Guest:
        """The node that asks.

        A node whose key is not a collector's counts as a sensor, whatever its file says: children would not accept it
        as a parent.
        """
        guest = guest_of(message, now)
        return guest if self.may(guest.node, "serve") else guest._replace(level="sensor")

    def _serve(self, asker: Asker, message: Control, now: Now) -> None:
        if message.properties.get("fleet", self.settings.fleet) != self.settings.fleet:
            self.registry.refuse(asker, NOT_AUTHORISED, f"this is fleet {self.settings.fleet}")
        elif self.role is Role.STARTING:
            self.election.note_holds(message, now)
            self.registry.hold(asker)
        elif self.halting.takes(asker):
            return
        elif message.command == "sos":
            self.rescue.sos(asker, str(message.properties.get("parent", "")), now)
        else:
            self.registry.polo(asker, now)

    def _refuse(self, asked: Asked, source: Source, now: Now) -> None:
        """Only a root places nodes; other nodes answer which node is root (TOP-006)."""
        if isinstance(asked.message, Wtf):
            return
        root = self.context.place.root if self.context.place.is_acting else self.context.root.endpoint
        if asked.message.command not in ("polo", "sos"):
            wtf = Wtf(UNKNOWN_COMMAND, asked.message.command)
        elif is_endpoint(root) and root != self.context.endpoint:
            wtf = Wtf(NOT_ROOT, f"the root is {root}")
        else:
            wtf = Wtf(NOT_READY, "the root is not known here")
        self.context.answer(source.peer, asked.envelope, wtf)

    def _hear_answer(self, message: Control | Wtf, source: Source, now: Now) -> None:
        peer = source.peer.decode("ascii", "replace")
        if self._is_confirmed(message, peer, now):
            return
        if self.context.is_root:
            self.rescue.alive(peer)
            return
        if not self._is_member:
            if peer in self._claims:
                return
            raise PeerError("unasked", peer)
        if isinstance(message, Wtf) and message.code in (NOT_ROOT, STALE_EPOCH) and self.distress.is_on:
            self.distress.refer(root_named(message), now)
            return
        self.member.answered(message, peer, now)

    def _note_neighbour(self, heard: Neighbour, now: Now) -> None:
        if not self.settings.calls or self._is_static:
            return
        if self.context.leads:
            if len(self.announcer.connected) < limits.HINTED_MAX:
                self.announcer.connect((heard.endpoint,), now)
        elif heard.beacon.level == "root" and self._started:
            self.member.hint(heard.endpoint, now)

    def _on_place(self, now: Now) -> None:
        """A place was assigned, perhaps the present one."""
        if self.context.parent_is != "silent":
            self.distress.end()
        self.election.placed(now)

    def _standing_call(self) -> Announcement | None:
        return self.registry.marco() if not self._is_member else None

    # Orders

    def _stop(self, order: Stop, now: Now) -> None:
        self.beaconing.stop(now)

    def _learn(self, order: LearnPairs, now: Now) -> None:
        changes = self.context.atlas.apply(order.pairs, order.number)
        self.context.atlas.hold(order.number, order.digest, is_partial=order.is_partial)
        if self.context.leads:
            self.registry.learn(changes, now)
        elif self._is_member:
            self._compare_place(now)
        else:
            self.election.has_learnt(now)

    def _hold(self, order: LearnHolds, now: Now) -> None:
        self.context.atlas.hold(order.number, order.digest)

    def _note_diverged(self, order: NoteDiverged, now: Now) -> None:
        self.context.atlas.is_diverged = True

    def _compare_place(self, now: Now) -> None:
        """The store names a later root, or another place for this node: we have missed a call, so ask (REC-006)."""
        root, place = self.context.atlas.root, self.context.place
        known = self.context.atlas.nodes.get(self.node)
        if root is not None and root.epoch > max(self.context.root.epoch, place.epoch):
            self.member.recheck(root.endpoint, root.epoch, now)
        elif known is not None and (known.record.parent, known.record.level) != (place.parent, place.level):
            self.member.recheck(place.root, place.epoch, now)

    def _note_written(self, order: RecordWritten, now: Now) -> None:
        self.registry.written(order.ticket, order.code, now)

    def _note_parent(self, order: ParentIs, now: Now) -> None:
        self.context.parent_is = order.state
        self.election.parent_is(order.state, now)
        if self._is_member and not self.election.is_voter:
            self.distress.parent_is(order.state, now)

    def _note_link(self, order: LinkIs, now: Now) -> None:
        self.beaconing.is_linked = order.is_up

    def _note_child(self, order: ChildIs, now: Now) -> None:
        self.rescue.child_is(order, now)

    def _reset_root(self, order: ResetRoot, now: Now) -> None:
        """By order of a person: stop following the present root, and follow the next one that calls.

        A root by file becomes root again.
        """
        context = self.context
        root, epoch = context.root.endpoint, max(context.root.epoch, context.promised.epoch)
        if context.leads or self.role is Role.STARTING:
            context.reply(order.ticket, RootReset(root, epoch, "leads"))
            return
        self._claims.clear()
        is_founder = self.settings.level == "root"
        record = context.atlas.root.epoch if context.atlas.root is not None else 0
        newest = max(record, epoch_of(context.atlas.number))
        fresh = Root(newest, self.node, context.endpoint, self.settings.name) if is_founder else Root()
        context.remember(Promised(), Candidates(), fresh)
        context.tell_promises()
        if not self._is_static:
            self.member.reset()
        if is_founder:
            self.election.begin_root(now)
            self.registry.greet(now)
        context.reply(order.ticket, RootReset(root, epoch, "becomes-root" if is_founder else "seeks"))

    def _accept_loss(self, order: AcceptLoss, now: Now) -> None:
        self.election.accept_loss(now)

    def _stop_nodes(self, order: StopNodes, now: Now) -> None:
        self.halting.begin(order, now)


def _command_of(asked: Asked) -> str:
    return asked.message.command if isinstance(asked.message, Control) else ""


HEARS: Final[dict[type, Callable[[Topology, Any, Source, Now], None]]] = {
    Announcement: Topology._hear_announcement,
    Asked: Topology._hear_asked,
    Control: Topology._hear_answer,
    Wtf: Topology._hear_answer,
}
ORDERS: Final[dict[type, Callable[[Topology, Any, Now], None]]] = {
    Stop: Topology._stop,
    LearnPairs: Topology._learn,
    LearnHolds: Topology._hold,
    NoteDiverged: Topology._note_diverged,
    NoteLeaving: lambda core, order, _: core.rescue.note_leaving(order),
    RecordWritten: Topology._note_written,
    LinkIs: Topology._note_link,
    ParentIs: Topology._note_parent,
    ChildIs: Topology._note_child,
    ResetRoot: Topology._reset_root,
    StopNodes: Topology._stop_nodes,
    AcceptLoss: Topology._accept_loss,
}
