"""The root's side of joining: every POLO gets a place, which is written before the answer (TOP-010..017)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from weft.base.now import MILLISECOND, Now
from weft.cores.kit.tickets import Tickets
from weft.cores.topology import limits
from weft.cores.topology.announcing import Announcer
from weft.cores.topology.assignment import properties_of
from weft.cores.topology.atlas import ROOT_KEY, Changes, Located, NodeRecord, RootRecord, node_key, value_of
from weft.cores.topology.context import Context
from weft.cores.topology.groups import Directory, Guest, is_pattern
from weft.cores.topology.member import whole
from weft.cores.topology.memory import Place
from weft.cores.topology.messages import (
    Announcement,
    Control,
    NodeJoined,
    NodeUnassigned,
    RecordsWanted,
    Wtf,
)
from weft.cores.topology.planner import Planner
from weft.wire.discovery import LEVEL_NAMES, MARCO, group_key
from weft.wire.envelope import Envelope
from weft.wire.replication import BUSY, NO_GROUP, NO_QUORUM, NOT_READY, UNKNOWN_NODE


class Asker(NamedTuple):
    """A node that waits for an answer."""

    peer: bytes
    envelope: Envelope
    guest: Guest


class Ticket:
    """Writes that were requested, and what follows when they are durable."""

    __slots__ = ("askers", "nodes")

    def __init__(self, nodes: list[bytes]) -> None:
        self.nodes = nodes
        self.askers: list[Asker] = []


class Summons:
    """A group that is being called because some of its nodes have to move."""

    __slots__ = ("at", "missing", "times")

    def __init__(self, at: int) -> None:
        self.at, self.times = at, 0
        self.missing: dict[bytes, None] = {}


class Registry:
    """Active while this node leads: as root it writes; as acting root it only reads (REC-014)."""

    def __init__(self, context: Context, announcer: Announcer) -> None:
        self.context, self.announcer = context, announcer
        self.planner = Planner(context)
        self.tickets = Tickets[Ticket]()
        self.pending: dict[bytes, int] = {}
        self.requested: dict[bytes, Located] = {}
        """The last requested state of each record; it is in the store, or will be when its ticket is done."""
        self.unassigned: dict[bytes, Guest] = {}
        self.summons: dict[str, Summons] = {}
        self.was_acting = False
        self._directory = Directory({})
        self._early: dict[bytes, Asker] = {}
        self._count = 0

    # Beginning and ending to lead

    def lead(self, now: Now) -> None:
        """Read the records, write our own, and call the fleet."""
        context = self.context
        self._count = 0
        self.was_acting = context.is_acting
        self._directory = Directory(context.atlas.groups)
        self.requested = dict(sorted(context.atlas.nodes.items()))
        self.planner.tree.fill(self.requested.values())
        self.planner.guests.clear()
        self.planner.dead.clear()
        if context.is_root:
            self._write_root()
        self.greet(now)
        early, self._early = self._early, {}
        for asker in early.values():
            self.polo(asker, now)

    def hold(self, asker: Asker) -> None:
        """Answer this node as soon as we lead."""
        if len(self._early) < limits.ASKED_MAX:
            self._early[asker.guest.node] = asker

    def greet(self, now: Now) -> None:
        """Call the fleet before leading, so that nodes that know more can answer (REC-015, REC-016)."""
        self.announcer.connect(self._everybody(), now)
        self.announcer.call_often(now)

    def _write_root(self) -> None:
        context = self.context
        own = self.planner.tree.nodes.get(context.node)
        record = RootRecord(context.endpoint, context.node.hex(), context.root.epoch, context.settings.name)
        writes = [(ROOT_KEY, value_of(record))] if record != context.atlas.root else []
        if own is not None:
            self.planner.tree.drop(context.node)
            self.requested.pop(context.node, None)
            writes.append((node_key(own.group, own.node), b""))
        if writes:
            self._want(writes, Ticket([]))

    def retire(self) -> None:
        """Stop leading: waiting nodes will hear of the other root."""
        self._early.clear()
        self.tickets.clear()
        self.pending.clear()
        self.unassigned.clear()
        self.summons.clear()
        self.announcer.hang_up()

    def _everybody(self) -> list[str]:
        """All endpoints that a root calls: exact members, records, and `join`."""
        atlas = self.context.atlas
        found = [*self.context.settings.join]
        for _, group in sorted(atlas.groups.items()):
            found += [member for member in (*group.collectors, *group.members) if not is_pattern(member)]
        found += [located.record.endpoint for located in self.planner.tree.nodes.values()]
        return found

    def marco(self) -> Announcement:
        """The call to all nodes (TOP-003)."""
        context = self.context
        self._count += 1
        content: dict[str, Any] = {
            "fleet": context.settings.fleet,
            "epoch": max(context.root.epoch, 0),
            "count": self._count,
            "protocol": limits.PROTOCOL,
            "holds": context.holds,
        }
        if self._count <= len(limits.MARCO_BURST_NS):
            content["why"] = "start"
        if context.is_acting:
            content["acting"] = True
        return context.announcement(MARCO, content)

    # POLO

    def polo(self, asker: Asker, now: Now) -> None:
        """Give a node a place and answer it, after its record is written if that changes (TOP-010, TOP-011)."""
        guest = asker.guest
        self.note_heard(guest)
        self.announcer.connect((guest.endpoint,), now)
        if len(self.pending) >= limits.ASKED_MAX:
            self.refuse(asker, BUSY, "too many nodes join at once")
        elif self.context.is_acting:
            self.answer_as_recorded(asker)
        elif not self.context.atlas.groups:
            self.unassigned[guest.node] = guest  # called as soon as there are groups
            self.refuse(asker, NOT_READY, "no group is configured yet")
        elif (group := self._group_for(guest)) is None:
            self._leave_unassigned(asker)
        else:
            self.unassigned.pop(guest.node, None)
            self._seat(asker, group, now)

    def note_heard(self, guest: Guest) -> None:
        """A node was heard: it is alive, and need not be called again."""
        self.planner.guests[guest.node] = guest
        self.planner.dead.pop(guest.endpoint, None)
        for summons in self.summons.values():
            summons.missing.pop(guest.node, None)

    def _group_for(self, guest: Guest) -> str | None:
        """The group of a node; a former root that matches no group belongs to the first one (REC-015)."""
        found = self._directory.find(guest)
        if found is None and guest.level == "root":
            return min(self.context.atlas.groups, default=None)
        return found

    def _seat(self, asker: Asker, group: str, now: Now) -> None:
        guest = asker.guest
        former = self.planner.inherit(guest)
        before = self.planner.tree.nodes.get(guest.node)
        changed = self.planner.seat(guest, group)
        if before is None:
            record = changed[0].record
            self.context.tell(NodeJoined(guest.name, guest.endpoint, group, LEVEL_NAMES[record.level], record.parent))
        gone = [before] if before is not None and before.group != group else []
        gone += [former] if former is not None else []
        self.write(changed, gone, now)
        self.answer(asker)

    def answer(self, asker: Asker) -> None:
        """Assign a node the place in its record, now or when that is durable.

        Only its newest question is answered, once.
        """
        number = self.pending.get(asker.guest.node)
        if number is None:
            self._assign(asker)
            return
        ticket = self.tickets[number]
        ticket.askers = [other for other in ticket.askers if other.guest.node != asker.guest.node]
        ticket.askers.append(asker)

    def _assign(self, asker: Asker) -> None:
        located = self.planner.tree.nodes.get(asker.guest.node)
        if located is None:
            self.refuse(asker, UNKNOWN_NODE, "there is no record of this node")
            return
        place = self._place_of(located, located.record.parent)
        self._say_assignment(asker, place)

    def _say_assignment(self, asker: Asker, place: Place) -> None:
        properties = properties_of(place, self.context.node, self._node_at, self.context.keys_of)
        self.context.answer(
            asker.peer, asker.envelope, Control("assignment", asker.guest.endpoint, asker.guest.node, properties)
        )

    def _node_at(self, endpoint: str) -> bytes | None:
        located = self.planner.tree.at(endpoint)
        return located.node if located is not None else None

    def _place_of(self, located: Located, parent: str) -> Place:
        context, record = self.context, located.record
        above = self.planner.tree.at(parent)
        is_branch = record.level == "branch"
        return Place(
            parent=parent,
            parent_name=context.settings.name if parent == context.endpoint else above.record.name if above else "",
            root=context.endpoint,
            level=record.level,
            group=located.group,
            tier=record.tier,
            epoch=max(context.root.epoch, 0),
            alternates=self.planner.alternates(located),
            below=context.atlas.below(located.group) if is_branch else (),
            is_acting=context.is_acting,
        )

    def refuse(self, asker: Asker, code: int, text: str) -> None:
        """Refuse a node, with the reason (CFG-007)."""
        self.context.answer(asker.peer, asker.envelope, Wtf(code, text[: limits.REFUSAL_BYTES_MAX]))

    def _leave_unassigned(self, asker: Asker) -> None:
        guest = asker.guest
        before = self.planner.tree.nodes.get(guest.node)
        if before is not None:
            self.planner.tree.drop(guest.node)
            self.write((), (before,), Now(0, 0))
        if guest.node not in self.unassigned and len(self.unassigned) < limits.NODES_MAX:
            self.context.tell(NodeUnassigned(guest.name, guest.endpoint))
            self.unassigned[guest.node] = guest
        self.refuse(asker, NO_GROUP, f"no group wants {guest.endpoint}")

    def answer_as_recorded(self, asker: Asker) -> None:
        """As acting root: answer from the records, with this node in place of the root.

        Nothing is written (REC-014).
        """
        context = self.context
        located = self.planner.tree.nodes.get(asker.guest.node)
        if located is None:
            self.refuse(asker, NO_QUORUM, "without a majority nobody new is placed")
            return
        is_under_root = located.record.parent == context.root.endpoint or located.record.tier == 1
        self._say_assignment(
            asker, self._place_of(located, context.endpoint if is_under_root else located.record.parent)
        )

    # Writes

    def write(self, changed: Iterable[Located], gone: Iterable[Located], now: Now) -> None:
        """Request the records that differ from the last requested ones.

        Other moved nodes are called when they are durable.
        """
        fresh = [located for located in changed if self.requested.get(located.node) != located]
        writes = [(node_key(located.group, located.node), value_of(located.record)) for located in fresh]
        writes += [(node_key(located.group, located.node), b"") for located in gone]
        for located in fresh:
            self.requested[located.node] = located
        for located in gone:
            if located.node not in self.planner.tree.nodes:
                self.requested.pop(located.node, None)
        if writes:
            self._want(writes, Ticket([located.node for located in fresh]))

    def _want(self, writes: list[tuple[str, bytes]], ticket: Ticket) -> None:
        number = self.tickets.open(ticket)
        for node in ticket.nodes:
            if (before := self.pending.get(node)) is not None:
                other = self.tickets[before]
                ticket.askers += [asker for asker in other.askers if asker.guest.node == node]
                other.askers = [asker for asker in other.askers if asker.guest.node != node]
            self.pending[node] = number
        self.context.tell(RecordsWanted(number, tuple(writes)))

    def written(self, number: int, code: int, now: Now) -> None:
        """The result of a `RecordsWanted`: answer waiting nodes, call nodes that have to move."""
        ticket = self.tickets.close(number)
        if ticket is None:
            return
        mine = [node for node in ticket.nodes if self.pending.get(node) == number]
        for node in mine:
            del self.pending[node]
        if code:
            self._undo(mine)
        for asker in ticket.askers:
            if code:
                self.refuse(asker, code, "the record could not be written")
            else:
                self._assign(asker)
        if not code:
            nodes = self.planner.tree.nodes
            answered = [asker.guest.node for asker in ticket.askers]
            self.summon([nodes[n] for n in mine if n in nodes and n not in answered], now)

    def _undo(self, nodes: list[bytes]) -> None:
        for node in nodes:
            self._adopt(node)

    def _adopt(self, node: bytes) -> None:
        located = self.context.atlas.nodes.get(node)
        if located is None:
            self.planner.tree.drop(node)
            self.requested.pop(node, None)
        else:
            self.planner.tree.put(located)
            self.requested[node] = located

    # Calling groups

    def summon(self, located: Iterable[Located], now: Now) -> None:
        """Call the groups of these nodes until each of them has asked for its place again (REC-004)."""
        for each in located:
            summons = self.summons.setdefault(each.group, Summons(now.mono))
            summons.missing[each.node] = None
            summons.at, summons.times = now.mono, 0

    def deadline(self) -> int | None:
        return min((summons.at for summons in self.summons.values()), default=None)

    def wake(self, now: Now) -> None:
        """Repeat the call to groups that have not come."""
        for group in [group for group, summons in self.summons.items() if summons.at <= now.mono]:
            summons = self.summons[group]
            if not summons.missing or summons.times >= limits.SUMMONS_MAX:
                del self.summons[group]
                continue
            content: dict[str, Any] = {"epoch": max(self.context.root.epoch, 0), "why": "reassign"}
            content["fleet"] = self.context.settings.fleet
            if len(summons.missing) <= limits.NAMED_MAX:
                content["nodes"] = [node.hex() for node in summons.missing]
            self.announcer.say(self.context.announcement(group_key(group), content))
            summons.at = now.mono + min(limits.MARCO_GAP_NS << summons.times, self.context.beat_ns)
            summons.times += 1

    # Changes of the store

    def learn(self, changes: Changes, now: Now) -> None:
        """The store has changed: nodes may match other groups now, or no longer match any (TOP-010)."""
        for node in changes.nodes:
            if node not in self.pending and self.context.atlas.nodes.get(node) != self.requested.get(node):
                self._adopt(node)
        if changes.groups:
            self._directory = Directory(self.context.atlas.groups)
            self.announcer.connect(self._everybody(), now)
            self.summon(self._displaced(changes.groups), now)
            for node, guest in list(self.unassigned.items()):
                if (group := self._directory.find(guest)) is not None:
                    del self.unassigned[node]
                    self.summon((Located(node, group, NodeRecord(guest.endpoint, "leaf", 1, "")),), now)
            for group in changes.groups:
                self.write(self.planner.relieve(group), (), now)

    def _displaced(self, groups: Iterable[str]) -> list[Located]:
        """Nodes that another group matches better now, or that the group itself wants elsewhere."""
        return [located for _, located in sorted(self.planner.tree.nodes.items()) if self._is_displaced(located)]

    def _is_displaced(self, located: Located) -> bool:
        guest = self.planner.guests.get(located.node)
        if guest is None:
            guest = Guest(located.node, located.record.endpoint, located.record.name)
            group = self.context.atlas.groups.get(located.group)
            if group is not None and group.labels:
                return False  # its labels are not known before it is heard
        return self._group_for(guest) != located.group


def guest_of(message: Control, now: Now) -> Guest:
    """The node that sent a POLO or SOS; missing fields get the values of a plain member (TOP-007)."""
    properties = message.properties
    labels = properties.get("labels")
    name, level, uptime = properties.get("name"), properties.get("level"), whole(properties.get("uptime_ms"))
    return Guest(
        message.uuid,
        message.endpoint,
        name=name if isinstance(name, str) else "",
        labels=tuple(sorted(labels.items())) if isinstance(labels, dict) else (),
        level=level if isinstance(level, str) else "auto",
        incarnation=whole(properties.get("incarnation")),
        started_at=now.mono - min(uptime, limits.UPTIME_MS_MAX) * MILLISECOND,
    )
