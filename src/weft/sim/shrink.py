"""Makes a failing plan small: delta debugging over its faults, its nodes and its options (SIM-015).

Whatever is left out, the same checker must still fail. The noise of one link and the draws of one purpose do not depend
on others, so the rest of a plan goes on mostly as before (SIM-005).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from weft.base.now import SECOND
from weft.sim.plan import Action, GroupPlan, NodePlan, Plan, Weather
from weft.sim.run import run

RUNS_MAX = 2_000  # ten minutes of an everyday fabric

Step = Callable[[Plan], None]


class Shrinker:
    """Looks for a smaller plan that breaks the same rule."""

    def __init__(self, plan: Plan, on_step: Step, runs_max: int = RUNS_MAX) -> None:
        outcome = run(plan)
        assert outcome.verdicts, "only a plan that fails can be shrunk"
        self.rule = outcome.verdicts[0].rule
        self.plan = plan
        self.runs, self.runs_max = 0, runs_max
        self._on_step = on_step
        self._try(horizon(plan, outcome.virtual_ns))

    def _try(self, plan: Plan) -> bool:
        """Keep the plan if it still breaks the rule."""
        if plan == self.plan or self.runs >= self.runs_max:
            return False
        self.runs += 1
        verdicts = run(plan).verdicts
        if not verdicts or verdicts[0].rule != self.rule:
            return False
        self.plan = plan
        self._on_step(plan)
        return True

    def shrink(self) -> Plan:
        """The smallest plan found."""
        before = None
        while before != self.plan and self.runs < self.runs_max:
            before = self.plan
            self._fewer_actions()
            self._fewer_nodes()
            for plan in simpler(self.plan):
                self._try(plan)
        return self.plan

    def _fewer_actions(self) -> None:
        """Leave out halves, quarters, … single faults, as long as it still fails."""
        size = max(1, len(self.plan.actions) // 2)
        while size:
            at = 0
            while at < len(self.plan.actions):
                actions = self.plan.actions
                if not self._try(msgspec.structs.replace(self.plan, actions=actions[:at] + actions[at + size :])):
                    at += size
            size //= 2

    def _fewer_nodes(self) -> None:
        for node in reversed(self.plan.nodes):
            self._try(without(self.plan, node.name))


def horizon(plan: Plan, ends_at: int) -> Plan:
    """The plan without the actions after the instant at which it failed."""
    actions = tuple(action for action in plan.actions if action.at <= ends_at)
    return msgspec.structs.replace(plan, actions=actions, safety_ns=min(plan.safety_ns, ends_at + SECOND))


def without(plan: Plan, name: str) -> Plan:
    """The plan without a node and what concerns it; the same plan if others need that node."""
    if any(node.parent == name or (node.name == name and node.level == "root") for node in plan.nodes):
        return plan
    replace = msgspec.structs.replace
    return msgspec.structs.replace(
        plan,
        nodes=tuple(
            replace(node, join=_others(node.join, name), peers=_others(node.peers, name))
            for node in plan.nodes
            if node.name != name
        ),
        fleets=tuple(
            replace(fleet, groups=tuple(_less(group, name) for group in fleet.groups)) for fleet in plan.fleets
        ),
        links=tuple(link for link in plan.links if name not in (link.here, link.there)),
        actions=_about_others(plan.actions, name),
    )


def _less(group: GroupPlan, name: str) -> GroupPlan:
    collectors, members = _others(group.collectors, name), _others(group.members, name)
    return msgspec.structs.replace(group, collectors=collectors, members=members)


def _others(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(other for other in names if other != name)


def _about_others(actions: Iterable[Action], name: str) -> tuple[Action, ...]:
    return tuple(action for action in actions if name not in (action.node, action.other))


def simpler(plan: Plan) -> Iterator[Plan]:
    """The plan with one of its options as plain as it can be."""
    replace = msgspec.structs.replace
    yield replace(plan, weather=Weather(), lake_failures=0)
    yield replace(plan, beacons=False, nodes=_each(plan.nodes, by_beacon=False))
    yield replace(plan, links=())
    yield replace(plan, nodes=_each(plan.nodes, drift_ppm=0, offset_ns=0, hangs=0, late_ns=0))
    yield replace(plan, nodes=tuple(replace(node, metrics=node.metrics[:1]) for node in plan.nodes))
    yield replace(plan, nodes=_each(plan.nodes, start_at=0, sync_spread_ns=0))


def _each(nodes: Sequence[NodePlan], **changes: object) -> tuple[NodePlan, ...]:
    return tuple(msgspec.structs.replace(node, **changes) for node in nodes)
