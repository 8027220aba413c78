"""Whole fleets: in virtual time, and as processes. Groups of 25, one collector each, as bench/tree.py has them."""

import cProfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, Final

from bench.growth.meter import Meter
from bench.hosts import Hosts, dealt
from bench.sensor import cpu_seconds, resident_mb
from bench.tree import GROUP, table_of
from weft.base.now import SECOND
from weft.node.node import Node
from weft.sim.datagrams import Weather
from weft.sim.fabric import Fabric
from weft.sim.faults import perform
from weft.sim.machine import Machine
from weft.sim.plan import Action, FleetPlan, GroupPlan, Metric, NodePlan, Plan, StorePlan

HEARTBEAT_S: Final = 10
JOIN_S: Final = 60
"""Of virtual time: by then all have joined, and everything that follows from that is over."""
REST_S: Final = 60
METRICS: Final = tuple(Metric(name.lower(), name, 30 * SECOND) for name in ("CPU", "MEMORY", "DISK", "NETWORK"))
VERBS: Final = ("hear", "command", "wake", "deadline", "effects")
"""What a shell asks of a node."""
JOINED, AT_REST = "n nodes join", f"{REST_S} s at rest"
MEMORY: Final = "n nodes, their journals and the simulator"
HOSTS: Final = 3
SETTLE_S: Final = 5.0
STANDING_S: Final = 20.0


def plan_of(nodes: int, *, beacons: bool) -> Plan:
    """A root that is named by its file, and groups that name their members."""
    count = -(-(nodes - 1) // GROUP)
    names = [f"g{number % count}-{number // count:02}" for number in range(nodes - 1)]
    groups = tuple(
        GroupPlan(
            name=f"g{group}",
            collectors=(f"g{group}-00",),
            members=tuple(names[group::count]),
            metrics=METRICS,
            fanout=GROUP,
        )
        for group in range(count)
    )
    fleet = FleetPlan(name="growth", heartbeat_ms=1_000 * HEARTBEAT_S, groups=groups)
    members = [
        NodePlan(name=name, level="auto", fleet=fleet.name, join=("root",), start_at=number * SECOND // 100)
        for number, name in enumerate(names)
    ]
    root = NodePlan(name="root", level="root", fleet=fleet.name)
    return Plan(
        seed="growth",
        scenario="growth",
        beacons=beacons,
        fleets=(fleet,),
        nodes=(root, *members),
        safety_ns=1 << 60,
        settle_ns=SECOND,
    )


class Counted:
    """A fabric without checkers, whose messages and whose nodes' CPU time are counted."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.messages = self.bytes = 0
        self.node_s = 0.0
        self._depth = 0
        setattr(self.fabric.recorder, "heard", self._heard)  # noqa: B010  # the one place that sees every message
        for verb in VERBS:
            setattr(Node, verb, self._timed(getattr(Node, verb)))

    def _heard(self, _: Machine, __: str, ___: bytes, frames: list[bytes]) -> None:
        self.messages += 1
        self.bytes += sum(map(len, frames))

    def _timed(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*words: Any) -> Any:
            if self._depth:  # one verb may use another
                return verb(*words)
            self._depth, began = 1, time.process_time()
            try:
                return verb(*words)
            finally:
                self._depth = 0
                self.node_s += time.process_time() - began

        return timed

    def run(self, until_s: int, what: str, meter: Meter) -> None:
        before = self.messages, self.bytes, self.node_s
        self.fabric.world.run(until_s * SECOND)
        after = self.messages, self.bytes, self.node_s
        for unit, now, was in zip(("messages", "bytes", "CPU s"), after, before, strict=True):
            meter.add(f"{what}, {unit}", now - was)


def fabric_of(plan: Plan) -> Fabric:
    """A fabric whose machines will start."""
    fabric = Fabric(plan)
    fabric.set_weather(Weather())
    for machine in fabric.machines.values():
        fabric.world.call_at(machine.plan.start_at, _start, machine)
    for action in plan.actions:
        fabric.world.call_at(action.at, partial(perform, fabric), action)
    return fabric


def _start(machine: Machine) -> None:
    machine.start()


def calls_of_nodes(fabric: Fabric, until_s: int) -> int:
    """How many functions of nodes are called meanwhile, those of the simulator not among them."""
    profile = cProfile.Profile(builtins=False)
    profile.runcall(fabric.world.run, until_s * SECOND)
    files = [(each.code.co_filename, each.callcount) for each in profile.getstats() if isinstance(each.code, CodeType)]
    return sum(count for file, count in files if "/weft/" in file and "/weft/sim/" not in file)


def simulated(nodes: int, meter: Meter) -> None:
    """n nodes in the simulator, in groups of 25 with a collector each, all starting within seconds: a minute in which they join,
    and one at rest after it. CPU time is that of the nodes alone, without the simulator's, and the calls are those of their
    functions. All nodes are in one process here, so the more there are the less of each is in the processor's caches: where
    calls are linear, CPU time that is not is that.
    """
    _fleet(plan_of(nodes, beacons=False), meter, is_settled)


def segment(nodes: int, meter: Meter) -> None:
    """The same on one segment of a network, where each node sends a beacon each five seconds and hears those of all others."""
    _fleet(plan_of(nodes, beacons=True), meter, is_settled)


def mesh(nodes: int, meter: Meter) -> None:
    """n members of a store in the simulator, each linked with each: a minute in which the first founds it and the others join,
    and one at rest after it; counted as above.
    """
    names = tuple(f"m{number:03d}" for number in range(nodes))
    members = tuple(
        NodePlan(
            name=name,
            level="sensor" if number else "root",
            runs=("store",),
            peers=names[:number] + names[number + 1 :],
            start_at=number * SECOND // 100,
        )
        for number, name in enumerate(names)
    )
    found = Action(SECOND // 2, "found", names[0])
    plan = Plan(
        seed="growth",
        scenario="growth",
        store=StorePlan(),
        nodes=members,
        actions=(found,),
        safety_ns=1 << 60,
        settle_ns=SECOND,
    )
    _fleet(plan, meter, lambda cores: bool(cores["store"].membership.serves))


def _fleet(plan: Plan, meter: Meter, is_there: Callable[[Any], bool]) -> None:
    counted = Counted(fabric_of(plan))
    with meter.memory(MEMORY):
        counted.run(JOIN_S, JOINED, meter)
    machines = counted.fabric.machines.values()
    late = [machine.name for machine in machines if not is_there(machine.running.cores)]
    assert not late, late
    counted.run(JOIN_S + REST_S, AT_REST, meter)
    again = fabric_of(plan)
    for until_s, what in ((JOIN_S, JOINED), (JOIN_S + REST_S, AT_REST)):
        meter.add(f"{what}, calls", calls_of_nodes(again, until_s))


def is_settled(cores: Any) -> bool:
    """Leads, or has a place, and runs the configuration."""
    topology = cores["topology"]
    is_placed = topology.role.name == "ROOT" or topology.standing.name == "JOINED"
    return bool(is_placed and cores["configuration"].is_current)


def processes(nodes: int, meter: Meter) -> None:
    """n nodes with real sockets and journals, the root in a process of its own and the others in three.

    CPU time of all four from the root's start until all have joined and five seconds more, its imports included; then of
    20 seconds at rest.
    """
    with tempfile.TemporaryDirectory() as name, Hosts(Path(name)) as hosts:
        root, others = table_of(nodes, Path(name))
        for part in dealt(others, HOSTS):
            hosts.start(part)
        hosts.until_ready()
        time.sleep(1)
        pids = [each.process.pid for each in hosts.hosts]
        before = sum(map(cpu_seconds, pids))
        hosts.start([root])
        pids.append(hosts.hosts[-1].process.pid)
        if not hosts.until(lambda: _stand(hosts, nodes), 150):
            raise TimeoutError(f"{nodes} nodes have not joined")
        time.sleep(SETTLE_S)
        joined = sum(map(cpu_seconds, pids))
        meter.add("n nodes join, CPU s", joined - before)
        time.sleep(STANDING_S)
        meter.add(f"{STANDING_S:.0f} s at rest, CPU s", sum(map(cpu_seconds, pids)) - joined)
        meter.add("all processes, MB", sum(map(resident_mb, pids)))
        heard = hosts.counts().values()
        meter.add("n nodes join and rest, messages", sum(sum(each["messages"].values()) for each in heard))


def _stand(hosts: Hosts, nodes: int) -> bool:
    return len(hosts.stands) == nodes and all(stand.is_settled for stand in hosts.stands.values())
