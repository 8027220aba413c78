"""Assigns places: collectors of groups, tiers, fan-out (TOP-013, TOP-014). It changes the tree and returns the changes.

A group has as many collectors as its `fanout` requires, at least one: those it names, in order, else members by uptime,
then UUID. They stand below the collectors of the group's `parent`, or below the root. Children are spread so that their
numbers differ by at most one, with as few moves as possible.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from weft.cores.topology import limits
from weft.cores.topology.atlas import Group, Located, NodeRecord
from weft.cores.topology.context import Context
from weft.cores.topology.groups import Guest
from weft.cores.topology.messages import NodePromoted
from weft.cores.topology.tree import Tree

ANY: Group = Group()


class Planner:
    """`guests` are the nodes that this root has heard; `dead` collectors get no children."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.tree = Tree()
        self.guests: dict[bytes, Guest] = {}
        self.dead: dict[str, None] = {}
        """Endpoints of collectors that count as dead and were not heard since (REC-003)."""

    # Possible parents

    def listed(self, group: str) -> list[str]:
        """Collectors named by the group, in its order, without dead ones."""
        named = self.context.atlas.groups.get(group, ANY).collectors
        return [endpoint for endpoint in named if endpoint not in self.dead and endpoint != self.context.endpoint]

    def joined(self, group: str) -> list[str]:
        """Collectors of a group that have a record, without dead ones: those it names first, in its order."""
        there = [located.record.endpoint for located in self.tree.collectors(group)]
        there = [endpoint for endpoint in there if endpoint not in self.dead]
        named = [endpoint for endpoint in self.listed(group) if endpoint in there]
        return [*named, *(endpoint for endpoint in there if endpoint not in named)]

    def parents(self, group: str) -> list[str]:
        """Possible parents in a group: its collectors, and named ones that have not come yet."""
        joined = self.joined(group)
        return [*joined, *(endpoint for endpoint in self.listed(group) if self.tree.at(endpoint) is None)]

    def above(self, group: str) -> list[str]:
        """Possible parents for a group's collectors: those of the next group above that has any, else the root."""
        for _ in range(limits.TIERS_MAX):
            group = self.context.atlas.groups.get(group, ANY).parent
            if not group:
                break
            if found := self.parents(group):
                return found
        return [self.context.endpoint]

    def tier_of(self, endpoint: str) -> int:
        """The tier of a parent; the root has tier 0."""
        if endpoint == self.context.endpoint:
            return 0
        located = self.tree.at(endpoint)
        if located is not None:
            return located.record.tier
        named = [g for g, known in self.context.atlas.groups.items() if endpoint in known.collectors]
        return self.context.atlas.depth(named[0]) if named else 1

    # Changes

    def put(self, node: bytes, group: str, record: NodeRecord) -> Located:
        """Put a node at a place."""
        located = Located(node, group, record)
        self.tree.put(located)
        return located

    def inherit(self, guest: Guest) -> Located | None:
        """A node that lost its disk and its UUID gets the place of its endpoint; returns the old record."""
        former = self.tree.at(guest.endpoint)
        if former is None or former.node == guest.node:
            return None
        self.tree.drop(former.node)
        if guest.node not in self.tree.nodes:
            self.put(guest.node, former.group, former.record)
        return former

    def seat(self, guest: Guest, group: str) -> list[Located]:
        """Give a node a place in a group; returns all changed nodes, the node itself first."""
        known = self.tree.nodes.get(guest.node)
        if known is not None and known.group == group and self._may_stay(known, guest):
            record = msgspec.structs.replace(
                known.record, endpoint=guest.endpoint, incarnation=guest.incarnation, name=guest.name
            )
            parent = self._parent_kept(known)
            return [self.put(guest.node, group, msgspec.structs.replace(record, **self._under(parent, record.level)))]
        self.tree.drop(guest.node)
        if not self._is_collector(guest, group):
            return self._seat_leaf(guest, group)
        branch = self._seat_branch(guest, group)
        comes_back = known is not None and known.group == group
        return [branch] if comes_back and self._keeps_children(group) else [branch, *self.tidy(group)]

    def _may_stay(self, known: Located, guest: Guest) -> bool:
        record = known.record
        if record.level == "branch":
            return guest.level != "sensor"
        # A node that the group names becomes collector and voter as soon as it is back: otherwise every failure would
        # leave fewer voters.
        return guest.endpoint not in self.listed(known.group) and guest.level != "collector"

    def _keeps_children(self, group: str) -> bool:
        """Whether children stay with their new parent when the old one comes back (REC-006)."""
        return not self.context.atlas.groups.get(group, ANY).prefer and bool(self.joined(group)[1:])

    def _parent_kept(self, known: Located) -> str:
        """The parent for a node that stays: the present one, unless that is no longer a parent."""
        parent, group = known.record.parent, known.group
        if known.record.level == "leaf":
            return parent if self.is_parent(parent) else self._home(group)
        above = self.above(group)
        return parent if parent in above else self.tree.least(above)

    def is_parent(self, endpoint: str) -> bool:
        """Whether a live collector or the root is, or will be, at that endpoint."""
        if endpoint == self.context.endpoint:
            return True
        if endpoint in self.dead:
            return False
        located = self.tree.at(endpoint)
        if located is not None:
            return located.record.level == "branch"
        return any(endpoint in group.collectors for group in self.context.atlas.groups.values())

    def _home(self, group: str) -> str:
        return self.tree.least(self.parents(group) or self.above(group))

    def _under(self, parent: str, level: str) -> dict[str, object]:
        return {"parent": parent, "tier": self.tier_of(parent) + 1, "level": level}

    def _record(self, guest: Guest, parent: str, level: str) -> NodeRecord:
        return NodeRecord(
            guest.endpoint, level, self.tier_of(parent) + 1, parent, incarnation=guest.incarnation, name=guest.name
        )

    def _is_collector(self, guest: Guest, group: str) -> bool:
        settings = self.context.atlas.groups.get(group, ANY)
        if guest.level == "sensor":
            return False
        if guest.endpoint in settings.collectors or guest.level in ("collector", "root"):
            return True
        return not self.parents(group)

    def _seat_branch(self, guest: Guest, group: str) -> Located:
        parent = self.tree.least(self.above(group))
        return self.put(guest.node, group, self._record(guest, parent, "branch"))

    def _seat_leaf(self, guest: Guest, group: str) -> list[Located]:
        self.put(guest.node, group, self._record(guest, self._home(group), "leaf"))
        changed = self.relieve(group)
        return [self.tree.nodes[guest.node], *(other for other in changed if other.node != guest.node)]

    def relieve(self, group: str) -> list[Located]:
        """Add collectors until none has more children than `fanout`; returns all changed nodes (TOP-014)."""
        fanout = self.context.atlas.groups.get(group, ANY).fanout
        changed: dict[bytes, Located] = {}
        before = fanout << 32
        while fanout < (fullest := self._fullest(group)) < before:
            before = fullest
            changed.update((located.node, located) for located in self.promote(group))
        return list(changed.values())

    def _fullest(self, group: str) -> int:
        return max((self.tree.load[endpoint] for endpoint in self.parents(group)), default=0)

    def promote(self, group: str) -> list[Located]:
        """Make one member a collector, by uptime, then UUID, and spread the children; empty if no member can be one."""
        chosen = self.candidate(self.tree.leaves(group))
        return [] if chosen is None else [self._raise(chosen), *self.tidy(group)]

    def _raise(self, located: Located) -> Located:
        """Make a leaf a collector of its group."""
        parent = self.tree.least(self.above(located.group))
        record = msgspec.structs.replace(located.record, **self._under(parent, "branch"))
        self.context.tell(NodePromoted(record.name, record.endpoint, located.group, parent))
        return self.put(located.node, located.group, record)

    def candidate(self, among: Iterable[Located]) -> Located | None:
        """The next collector: of the nodes heard since this root leads, the one up for longest, then by UUID.

        None: there is none.
        """
        half = limits.UPTIME_STEP_NS // 2
        able = [
            ((guest.started_at + half) // limits.UPTIME_STEP_NS, located.node, located)
            for located in among
            if (guest := self.guests.get(located.node)) is not None and guest.level != "sensor"
        ]
        return min(able, key=lambda row: row[:2])[2] if able else None

    def replace(self, endpoint: str, callers: Iterable[Located]) -> list[Located]:
        """Give the children of a dead collector to others of its group, or to a caller that replaces it.

        The dead one becomes a leaf in the records, which gives it a place when it comes back (REC-006).
        """
        children = self.tree.children(endpoint)
        dead = self.tree.at(endpoint)
        group = dead.group if dead is not None else children[0].group if children else ""
        self.dead[endpoint] = None
        changed: dict[bytes, Located] = {}
        if not self._has_room(group, len(children)):
            chosen = [caller for caller in callers if caller.group == group and caller.record.level == "leaf"]
            risen = self.candidate(chosen) or self.candidate(c for c in children if c.record.level == "leaf")
            if risen is not None:
                changed[risen.node] = self._raise(risen)
        homes = self.joined(group) or self.above(group)
        for child in children:
            if child.node not in changed:
                changed[child.node] = self._move(child, self.tree.least(homes))
        if dead is not None:
            record = msgspec.structs.replace(dead.record, **self._under(self.tree.least(homes), "leaf"))
            changed[dead.node] = self.put(dead.node, group, record)
        return list(changed.values())

    def _has_room(self, group: str, more: int) -> bool:
        parents = self.joined(group)
        fanout = self.context.atlas.groups.get(group, ANY).fanout
        return bool(parents) and sum(self.tree.load[parent] for parent in parents) + more <= fanout * len(parents)

    def tidy(self, group: str) -> list[Located]:
        """After a new collector: move children there that had no proper parent, and balance.

        Returns the moved nodes.
        """
        parents = self.joined(group)
        if not parents:
            return []
        moved = [self._move(located, self.tree.least(parents)) for located in self._astray(group, parents)]
        moved += self._even(group, parents)
        return list({located.node: self.tree.nodes[located.node] for located in moved}.values())

    def _astray(self, group: str, parents: list[str]) -> Iterator[Located]:
        """Leaves without a parent, and collectors of lower groups that stand above this tier."""
        for located in sorted(self.tree.leaves(group), key=lambda located: located.node):
            if not self.is_parent(located.record.parent):
                yield located
        yield from (located for located in self._lower_branches(group) if located.record.parent not in parents)

    def _lower_branches(self, group: str) -> list[Located]:
        """The collectors of the groups directly below."""
        names = sorted(name for name, known in self.context.atlas.groups.items() if known.parent == group)
        return [located for name in names for located in self.tree.collectors(name)]

    def _even(self, group: str, parents: list[str]) -> Iterator[Located]:
        """Move children from the fullest to the emptiest parent until they differ by at most one."""
        shelves: dict[str, list[Located]] = {endpoint: [] for endpoint in parents}
        for located in (*self._lower_branches(group), *sorted(self.tree.leaves(group), key=lambda leaf: leaf.node)):
            if located.record.parent in shelves:
                shelves[located.record.parent].append(located)
        load = {endpoint: self.tree.load[endpoint] for endpoint in parents}
        while True:
            fullest = max((e for e in parents if shelves[e]), key=lambda e: load[e], default="")
            emptiest = min(parents, key=lambda e: load[e])
            if not fullest or load[fullest] - load[emptiest] <= 1:
                return
            located = self._move(shelves[fullest].pop(), emptiest)
            shelves[emptiest].insert(0, located)
            load[fullest] -= 1
            load[emptiest] += 1
            yield located

    def _move(self, located: Located, parent: str) -> Located:
        record = msgspec.structs.replace(located.record, **self._under(parent, located.record.level))
        return self.put(located.node, located.group, record)

    def alternates(self, located: Located) -> tuple[str, ...]:
        """Other nodes to ask when a node's parent is silent: other collectors of its group, then first-level ones."""
        own = (located.record.parent, located.record.endpoint, self.context.endpoint)
        found = [endpoint for endpoint in self.joined(located.group) if endpoint not in own]
        if len(found) < limits.ALTERNATES_MAX:
            first = (b.record for group in self.tree.branches.values() for b in group.values() if b.record.tier == 1)
            found += [r.endpoint for r in islice(first, 8) if r.endpoint not in (*own, *found, *self.dead)]
        return tuple(found[: limits.ALTERNATES_MAX])
