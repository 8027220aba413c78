"""The alerts that `weft alerts` shows: those of this node, and at a root those of the whole fleet (MET-004)."""

from typing import TYPE_CHECKING, Any, cast

import msgspec

from weft.base.now import Now
from weft.cores.measurement.core import Measurement
from weft.node.node import Node
from weft.wire.alerts import Alert, ident

if TYPE_CHECKING:
    from weft.cores.alerts.core import Alerts


def firing_of(node: Node) -> int:
    """How many alerts fire at this node."""
    core = node.cores.get("measurement")
    return len(core.alarms.firing) if isinstance(core, Measurement) else 0


def page_of(node: Node, now: Now) -> dict[str, Any]:
    """The page `/alerts`: `own` are those of this node; everything else is null except at a root.

    `dead` are alerts of the configuration that can never fire, `in_vain` those of groups in which there is no machine now.
    """
    measuring, alerts = node.cores.get("measurement"), cast("Alerts | None", node.cores.get("alerts"))
    own = measuring.alarms.firing.values() if isinstance(measuring, Measurement) else ()
    facts: dict[str, Any] = {
        "name": node.settings.node.name,
        "level": node.settings.level,
        "at": now.wall // 1_000_000,
        "own": [shown(node.node, alert) for alert in own],
        "fleet": None,
        "ended": None,
        "sinks": None,
        "dead": None,
        "in_vain": None,
    }
    if alerts is not None:
        facts["fleet"] = [shown(key[0], alert) for key, alert in alerts.active.items()]
        facts["ended"] = [msgspec.structs.asdict(alert) for alert in alerts.ended]
        facts["sinks"] = [lane.facts(now.mono) for lane in alerts.lanes.values()]
    ledger = node.planner.dead_alerts if alerts is not None else None
    if ledger is not None:
        dead = ledger.found()
        facts["dead"] = [{"key": key, "why": why} for key, why in dead.items()]
        facts["in_vain"] = [key for key in ledger.in_vain(_groups(node)) if key not in dead]
    return facts


def dead_of(node: Node) -> int:
    """How many alerts of the fleet can never fire; 0 except at a root."""
    ledger = node.planner.dead_alerts
    return len(ledger.found()) if ledger is not None else 0


def _groups(node: Node) -> set[str]:
    """The groups in which there is a machine now, as the root knows."""
    return {located.group for located in node.census.records.values()} | {node.planner.group}


def shown(origin: bytes, alert: Alert) -> dict[str, Any]:
    """One firing alert, as the page shows it."""
    return {"id": ident(origin, alert), **msgspec.structs.asdict(alert)}


def firing_by_node(node: Node) -> dict[bytes, list[Alert]]:
    """Firing alerts by node: at a root those of the whole fleet, elsewhere those of this node."""
    measuring, alerts = node.cores.get("measurement"), cast("Alerts | None", node.cores.get("alerts"))
    found: dict[bytes, list[Alert]] = {}
    if alerts is not None:
        for key, alert in alerts.active.items():
            found.setdefault(key[0], []).append(alert)
    elif isinstance(measuring, Measurement):
        found[node.node] = list(measuring.alarms.firing.values())
    return found
