"""The settings of a node, from its plan."""

from typing import Final

from weft.base.now import SECOND
from weft.cores.measurement.settings import MetricSpec
from weft.node.settings import FleetTable, JournalTable, LakeTable, NodeSettings, NodeTable
from weft.sim.plan import BASE_PORT, Metric, NodePlan, Plan

FLEET: Final = "simulated"
TIMEOUT_NS: Final = SECOND  # of a metric without a rate


def settings_for(plan: Plan, node: NodePlan, parent_address: str) -> NodeSettings:
    """What the file of this node would say; `parent_address` is that of the parent's machine."""
    parent = node.parent if node.by_beacon or not node.parent else f"{parent_address}:{BASE_PORT}"
    return NodeSettings(
        node=NodeTable(
            name=node.name,
            level=node.level,
            parent=parent,
            port=BASE_PORT,
            beacons=plan.beacons,
            flush_s=node.flush_ns / 1e9,
        ),
        fleet=FleetTable(name=FLEET, beat_s=plan.beat_ms / 1e3, dead_s=plan.dead_ms / 1e3),
        lake=LakeTable(rows=plan.lake_rows, age_s=plan.lake_age_ms / 1e3, idle_s=plan.lake_idle_ms / 1e3),
        journal=JournalTable(),
        metrics=tuple(map(_spec, node.metrics)),
    )


def _spec(metric: Metric) -> MetricSpec:
    timeout = metric.rate_ns // 2 if metric.rate_ns > 0 else TIMEOUT_NS
    return MetricSpec(name=metric.name, detail=metric.detail, rate_ns=metric.rate_ns, timeout_ns=timeout)
