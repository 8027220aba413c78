"""A silent parent: children send SOS, and the root replaces a dead collector (REC-001..006)."""

from typing import Any

from weft.base.now import Now
from weft.cores.topology import limits
from weft.cores.topology.context import Context
from weft.cores.topology.election import quorum
from weft.cores.topology.member import Member
from weft.cores.topology.memory import GivenUp, Leaving
from weft.cores.topology.messages import ChildIs, Control, NodeLeft, NoteLeaving, VotersRecalled
from weft.cores.topology.planner import Planner
from weft.cores.topology.registry import Asker, Registry
from weft.cores.topology.states import Standing
from weft.wire.replication import UNKNOWN_NODE


class Distress:
    """The child's side: sends SOS to the root, then to the alternates, repeatedly, until it has a parent that answers."""

    def __init__(self, context: Context, member: Member) -> None:
        self.context, self.member = context, member
        self._due_at: int | None = None
        self._times = self._referrals = 0

    @property
    def is_on(self) -> bool:
        return self._due_at is not None

    def parent_is(self, state: str, now: Now) -> None:
        """The parent is silent, or is heard again."""
        if state == "heard":
            self.end()
        elif state == "silent" and not self.is_on and self.member.standing is Standing.JOINED and self._targets():
            self._due_at, self._times = now.mono, 0

    def end(self) -> None:
        """Stop: there is a new parent, or none is needed."""
        self._due_at = None

    def _targets(self) -> list[str]:
        """The nodes to ask in turn: the root, then the alternates; never the silent parent."""
        place = self.context.place
        asked = dict.fromkeys((place.root, *place.alternates))
        return [endpoint for endpoint in asked if endpoint not in (place.parent, self.context.endpoint)]

    def deadline(self) -> int | None:
        return self._due_at

    def wake(self, now: Now) -> None:
        """Send SOS: at once, after H, 2H ... 8H (REC-002)."""
        if self._due_at is None or now.mono < self._due_at:
            return
        targets = self._targets()
        if not targets:
            self._due_at = None
            return
        self._referrals = 0
        self._say(targets[self._times % len(targets)], now)
        pause = self.context.beat_ns * min(1 << self._times, limits.SOS_PAUSE_BEATS_MAX)
        self._due_at = now.mono + pause
        self._times = min(self._times + 1, limits.SOS_TIMES_MAX)

    def _say(self, endpoint: str, now: Now) -> None:
        properties: dict[str, Any] = {**self.member.portrait(now), "parent": self.context.place.parent}
        self.member.note_asked(endpoint)
        self.context.say(endpoint, "sos", properties)

    def refer(self, endpoint: str, now: Now) -> bool:
        """The asked node named another root: ask that one at once; returns whether it was asked."""
        is_way = self.is_on and endpoint not in ("", self.context.endpoint, self.context.place.parent)
        if is_way and self._referrals < limits.REFERRALS_MAX:
            self._referrals += 1
            self._say(endpoint, now)
        return self.is_on


class Rescue:
    """The root's side: children that lost their parent, and dead collectors."""

    def __init__(self, context: Context, registry: Registry) -> None:
        self.context, self.registry = context, registry
        self.callers: dict[str, dict[bytes, int]] = {}
        """By parent: the nodes that sent SOS because of it, and when."""
        self._lost: dict[str, int] = {}
        """Collectors whose link has ended and that do not answer, and when each counts as dead."""
        self._dying: dict[str, int] = {}
        """Collectors that enough children miss, and when each is replaced: other children are about to call too."""
        self._waiting: dict[str, dict[bytes, Asker]] = {}
        self._buried: dict[str, None] = {}
        """Voters that count as dead and were not heard since."""
        self._electorates: dict[tuple[str, ...], None] = {}
        """The sets of voters, without this root, since the first of the unreachable voters was lost."""

    @property
    def planner(self) -> Planner:
        return self.registry.planner

    def lead(self) -> None:
        """Lead; a root that has started again goes on with the voters that it had given up, and those it had removed."""
        known = self.context.given_up
        if self.context.is_root and known.epoch == self.context.root.epoch:
            self._buried = dict.fromkeys(known.places)
            self._electorates = dict.fromkeys(known.electorates)
            self.planner.dead.update(self._buried)
        leaving = self.context.leaving
        is_own = self.context.is_root and leaving.epoch == self.context.root.epoch
        if is_own and (leaving.voters or leaving.electorates):
            self.context.tell(VotersRecalled(leaving.voters, leaving.electorates))

    def _remember(self) -> None:
        """Make it durable before any record says it."""
        if self._buried or self.context.given_up.places:
            electorates = tuple(self._electorates) if self._buried else ()
            self.context.remember(GivenUp(self.context.root.epoch, tuple(self._buried), electorates))

    def _forget_heard(self) -> None:
        """Who was given up and is heard again is a voter like any other."""
        heard = [place for place in self._buried if place not in self.planner.dead]
        for place in heard:
            del self._buried[place]
        if heard:
            self._remember()

    def note_leaving(self, order: NoteLeaving) -> None:
        """Of the voters that this root has removed, these still count (REC-015)."""
        if self.context.is_root:
            self.context.remember(Leaving(self.context.root.epoch, order.voters, order.electorates))

    def retire(self) -> None:
        """Lead no longer."""
        for kept in (self.callers, self._lost, self._dying, self._waiting, self._buried):
            kept.clear()

    def sos(self, asker: Asker, parent: str, now: Now) -> None:
        """A child has lost its parent: answer with a new place, or that it should wait (REC-003, REC-004, REC-006)."""
        located = self.planner.tree.nodes.get(asker.guest.node)
        if located is None:
            self.registry.refuse(asker, UNKNOWN_NODE, "there is no record of this node")
            return
        self.registry.note_heard(asker.guest)
        if self.context.is_acting:
            self.registry.answer_as_recorded(asker)
        elif located.record.parent != parent:
            self.registry.answer(asker)
        elif parent == self.context.endpoint or not self._is_dead(parent, asker.guest.node, now):
            self.context.answer(asker.peer, asker.envelope, self._calm())
        else:
            self._dying.setdefault(parent, now.mono + limits.GATHER_NS)
            self._waiting.setdefault(parent, {})[asker.guest.node] = asker

    def _calm(self) -> Control:
        return Control("keepcalm", self.context.endpoint, self.context.node, {})

    def _is_dead(self, parent: str, node: bytes, now: Now) -> bool:
        callers = self.callers.setdefault(parent, {})
        callers[node] = now.mono
        fresh = {who: at for who, at in callers.items() if at + limits.SOS_WINDOW_NS >= now.mono}
        self.callers[parent] = fresh
        children = self.planner.tree.load[parent]
        return len(fresh) * limits.SOS_SHARE >= children

    def bury(self, endpoint: str, now: Now) -> None:
        """A collector is dead: others get its children, and it comes back as a leaf (REC-004, REC-006)."""
        callers = self.callers.pop(endpoint, {})
        self._lost.pop(endpoint, None)
        self._dying.pop(endpoint, None)
        dead = self.planner.tree.at(endpoint)
        if dead is not None and (dead.record.level, dead.record.tier) == ("branch", 1):
            self._buried[endpoint] = None
            self._remember()
        changed = self.planner.replace(endpoint, [self.planner.tree.nodes[n] for n in callers if self._is_known(n)])
        if dead is not None:
            self.context.tell(NodeLeft(dead.record.name, endpoint, "dead"))
        self.registry.write(changed, (), now)
        for asker in self._waiting.pop(endpoint, {}).values():
            self.registry.answer(asker)

    def _is_known(self, node: bytes) -> bool:
        return node in self.planner.tree.nodes

    # Collectors that only the root misses

    def child_is(self, order: ChildIs, now: Now) -> None:
        """A child's link has ended, or is back (REC-003)."""
        located = self.planner.tree.nodes.get(order.node)
        if located is None or not self.context.is_root or located.record.level != "branch":
            return
        endpoint = located.record.endpoint
        if order.state == "lost":
            self._lost.setdefault(endpoint, now.mono + self.context.beat_ns)
            self.context.say(endpoint, "polo", {"protocol": limits.PROTOCOL})
        else:
            self._lost.pop(endpoint, None)

    def alive(self, endpoint: str) -> None:
        """A node that was asked whether it is alive has answered, in whatever way."""
        self._lost.pop(endpoint, None)

    def deadline(self) -> int | None:
        return min((*self._lost.values(), *self._dying.values()), default=None)

    def wake(self, now: Now) -> None:
        """Lost collectors that did not answer count as dead, unless this machine slept meanwhile (REC-001)."""
        self._forget_heard()
        if any(at + self.context.dead_ns // 2 < now.mono for at in self._lost.values()):
            self._lost = dict.fromkeys(self._lost, now.mono + self.context.beat_ns)
        due = [endpoint for endpoint, at in (*self._lost.items(), *self._dying.items()) if at <= now.mono]
        for endpoint in dict.fromkeys(due):
            if self._may_bury(endpoint):
                self.bury(endpoint, now)
            else:
                self._ask_again(endpoint, now)

    def _may_bury(self, endpoint: str) -> bool:
        """Whether the unreachable voters cannot elect a root of their own (REC-011, REC-015).

        Otherwise this root, which may itself be the one that is cut off, would form a majority of the remaining voters,
        and both sides would confirm writes. The unreachable ones know the voters of the time when they were lost, and a
        dead voter that was not heard since may still vote. So the unreachable voters must not have a majority in any
        set of voters since the first of them was lost.
        """
        voters = tuple(sorted(self.context.atlas.voters().values()))
        away = {place: None for place in voters if place in self._lost or place in self._dying}
        if endpoint not in away:
            return True
        away |= self._buried
        if len(away) == 1:
            self._electorates.clear()
        if len(self._electorates) < limits.ELECTORATES_MAX:
            self._electorates[voters] = None
        self._remember()
        return all(sum(place in away for place in known) < quorum(len(known) + 1) for known in self._electorates)

    def _ask_again(self, endpoint: str, now: Now) -> None:
        self._dying.pop(endpoint, None)
        self._lost[endpoint] = now.mono + self.context.beat_ns
        self.context.say(endpoint, "polo", {"protocol": limits.PROTOCOL})
