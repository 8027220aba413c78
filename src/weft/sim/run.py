"""One run of a plan: faults, then heal, then rest; and the verdict on all of it (SIM-008, SIM-011)."""

from collections import Counter
from collections.abc import Iterable
from traceback import format_exception_only, format_tb
from typing import Any, Final, NamedTuple

from weft.base.now import MILLISECOND, SECOND
from weft.checks import (
    BRIDGE_RULES,
    CATALOG_CHECKERS,
    CHECKERS,
    DOCUMENT_RULES,
    FLEET_CHECKERS,
    MAIL_CHECKERS,
    STORE_CHECKERS,
    STORE_RULES,
    Broken,
    Checker,
    Fact,
    Verdict,
    Violation,
)
from weft.cores.measurement.messages import PlanMetrics
from weft.sim.datagrams import Weather as Air
from weft.sim.disks import repair
from weft.sim.fabric import Fabric
from weft.sim.faults import perform
from weft.sim.hosts import Host
from weft.sim.machine import Machine
from weft.sim.plan import Plan, plan_hash
from weft.sim.recorder import Listener

LOOK_NS: Final = SECOND  # between two checks whether the fabric is at rest
GAUGE_NS: Final = 10 * SECOND
CALM_NS: Final = 20 * SECOND  # the workload goes on for this long after the heal
QUIET_BEATS: Final = 60  # after which every node of a fleet is joined, and in step
REST_NS: Final = (
    4 * SECOND
)  # a cursor may be written this long after what it stands behind (half a second, then within two)
TAKEN_MIN: Final = 5  # below this many samples a run has shown nothing (SIM-011)
CORE_FAILED: Final = "sound"


class Outcome(NamedTuple):
    """The result of a run."""

    plan: Plan
    plan_hash: str
    trace_hash: str
    verdicts: tuple[Verdict, ...]
    counts: Counter[str]
    history: list[Fact]
    events: int
    virtual_ns: int

    @property
    def is_green(self) -> bool:
        return not self.verdicts and not self.is_void

    @property
    def is_void(self) -> bool:
        """Whether too little happened to judge anything (SIM-011)."""
        acts = sum(count for what, count in self.counts.items() if what.startswith("did "))
        return not self.verdicts and (self.counts["taken"] < TAKEN_MIN or (bool(self.plan.menu) and not acts))

    @property
    def node_minutes(self) -> float:
        return len(self.plan.nodes) * self.virtual_ns / (60 * SECOND)


def rules_of(plan: Plan) -> tuple[type[Checker], ...]:
    """The checkers of a run: those of each protocol that its nodes speak, then those of nodes, trees and fleets."""
    if all(node.runs == ("store",) for node in plan.nodes):
        return STORE_CHECKERS
    parts = (
        (DOCUMENT_RULES, plan.documents is not None),
        (BRIDGE_RULES, plan.catalog is not None and plan.catalog.is_bridged),
        (CATALOG_CHECKERS, plan.catalog is not None),
        (STORE_RULES, plan.store is not None),
        (MAIL_CHECKERS, bool(plan.mail)),
        (FLEET_CHECKERS if plan.fleets else CHECKERS, True),
    )
    return tuple(kind for kinds, is_wanted in parts if is_wanted for kind in kinds)


class Run:
    """A fabric on its way through a plan."""

    def __init__(self, plan: Plan, checkers: Iterable[Checker] | None = None, *, keep: bool = False) -> None:
        self.plan = plan
        chosen = [kind() for kind in rules_of(plan) if kind.rule not in plan.skips] if checkers is None else checkers
        self.fabric = Fabric(plan, chosen, keep=keep)
        self.world = self.fabric.world

    def listen(self, listener: Listener) -> None:
        """Tell the story to someone while it happens."""
        self.fabric.recorder.listener = listener

    def go(self) -> Outcome:
        """The whole run; every broken promise and every exception of a core is a verdict."""
        verdicts: list[Verdict] = []
        try:
            self._storm()
            self._heal()
            self._settle()
            verdicts += self.fabric.recorder.suite.end()
        except Broken as found:
            verdicts.append(found.violation)
        except Exception as error:  # noqa: BLE001  # whatever a core raises is a finding, with the seed that repeats it
            where = "".join(format_tb(error.__traceback__)[-3:])
            text = "".join(format_exception_only(error)).strip()
            verdicts.append(Violation(CORE_FAILED, f"{text}\n{where}"))
        return self._outcome(verdicts)

    def _outcome(self, verdicts: list[Verdict]) -> Outcome:
        recorder = self.fabric.recorder
        self._count_situations()
        return Outcome(
            self.plan,
            plan_hash(self.plan),
            self.world.trace_hash(),
            tuple(verdicts),
            recorder.counts,
            recorder.history,
            self.world.events,
            self.world.at,
        )

    def _count_situations(self) -> None:
        """What links and carriers have met (SIM-010)."""
        recorder, streams = self.fabric.recorder, self.fabric.streams
        met = {
            "one block lost at a cut": streams.lost,
            "a deaf ROUTER": streams.deaf,
            "messages that TCP brought late": streams.late,
            "a message altered on its way": streams.flipped,
            "a full queue that refuses messages": streams.dropped,
            **{f"a rare branch: {name}": 1 for name in self.plan.rare},
            **{f"a datagram {fate}": count for fate, count in self.fabric.datagrams.fates.items()},
        }
        for name, count in met.items():
            if count:
                recorder.meet(name)
        for machine in self.fabric.machines.values():
            if machine.node is not None:
                recorder.count(machine.node)

    # Phases.

    def _storm(self) -> None:
        """Carry out the plan, up to the end of the faults."""
        fabric, plan, world = self.fabric, self.plan, self.world
        fabric.is_stormy = True
        fabric.recorder.note("", 0, "info", "members", fabric.members())
        fabric.mailbook.begin()
        fabric.locksmith.begin()
        fabric.set_weather(Air(*(getattr(plan.weather, name) for name in Air._fields)))
        for machine in fabric.machines.values():
            machine.lake.failures = plan.lake_failures
            world.call_at(machine.plan.start_at, self._begin, machine)
        for host in fabric.hosts.values():
            world.call_at(host.plan.start_at, self._begin_host, host)
        for action in plan.actions:
            world.call_at(action.at, self._perform, action)
        for at in range(GAUGE_NS, plan.safety_ns, GAUGE_NS):
            world.call_at(at, self._gauge)
        world.run(plan.safety_ns)

    def _begin(self, machine: Machine) -> None:
        if machine.node is None and not machine.starts and not machine.plan.twin_of:
            machine.start()

    def _begin_host(self, host: Host) -> None:
        if not host.starts:
            host.start()

    def _perform(self, action: Any) -> None:
        perform(self.fabric, action)

    def _gauge(self, _: None = None) -> None:
        for machine in self.fabric.machines.values():
            for name, value, limit in machine.gauges():
                self.fabric.recorder.note(machine.name, machine.era, "info", "gauge", [name, value, limit])
            self.fabric.mailbook.look(machine)
            if self.fabric.fleetbook is not None:
                self.fabric.fleetbook.read(machine)

    def _heal(self) -> None:
        """End all faults: restore cables, disk space and processes."""
        fabric = self.fabric
        fabric.is_stormy = False
        fabric.set_weather(Air())
        fabric.make_whole()
        for machine in fabric.machines.values():
            machine.lake.failures = 0
            machine.disk.budget = machine.plan.journal_bytes
            machine.spare()
            machine.resume()
            if machine.plan.twin_of or machine.keys.is_stolen:
                machine.bury(is_loud=True)
            elif machine.node is None:
                repair(machine)
                machine.start()
            machine.programs.calm()
        for host in fabric.hosts.values():
            host.resume()
            if not host.is_gone:
                host.start()
        fabric.locksmith.heal()
        fabric.recorder.note("", 0, "info", "healed", None)
        if fabric.recorder.listener is not None:
            fabric.recorder.listener(self.world.at, "", "healed", None)

    def _settle(self) -> None:
        """Nodes measure for a while, then stop, and then everything has to arrive."""
        world = self.world
        world.run(world.at + self._calm_ns())
        if self.fabric.fleetbook is not None:
            self.fabric.fleetbook.look()
        for machine in self.fabric.machines.values():
            machine.obey("measurement", PlanMetrics(()))
            machine.programs.is_resting = True
        ends_at = world.at + self.plan.settle_ns
        while world.at < ends_at and not self._is_at_rest():
            world.run(world.at + LOOK_NS)
            self._gauge()
        self._report_rest()

    def _calm_ns(self) -> int:
        """How long the workload goes on after the heal: until all nodes of a fleet have joined."""
        return max([CALM_NS, *(QUIET_BEATS * fleet.heartbeat_ms * MILLISECOND for fleet in self.plan.fleets)])

    def _is_at_rest(self) -> bool:
        """Whether nobody waits, for long enough that every cursor is written."""
        if not self._is_quiet():
            return False
        self.world.run(self.world.at + REST_NS)
        return self._is_quiet()

    def _is_quiet(self) -> bool:
        return not any(machine.waits() for machine in self._living())

    def _living(self) -> list[Machine]:
        return [machine for machine in self.fabric.machines.values() if not machine.is_gone]

    def _report_rest(self) -> None:
        recorder = self.fabric.recorder
        for machine in self._living():
            for book in self.fabric.books:
                book.rest(machine)
        for machine in self._living():
            waiting = machine.waits()
            if waiting:
                recorder.note(machine.name, machine.era, "info", "waits", [waiting, self.world.at])
            else:
                live, restored = machine.memories()
                subject = f"memory of {machine.name}"
                recorder.note(machine.name, machine.era, "info", "state", [subject, live])
                recorder.note(f"disk of {machine.name}", machine.era, "info", "state", [subject, restored])
        recorder.note("", 0, "info", "quiet", None)


def run(plan: Plan, checkers: Iterable[Checker] | None = None, *, keep: bool = False) -> Outcome:
    """Run a plan from its beginning to its verdict."""
    return Run(plan, checkers, keep=keep).go()
