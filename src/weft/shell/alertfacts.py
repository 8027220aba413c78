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
    """The page `/alerts`: `own` are those of this node; `fleet`, `ended` and `sinks` are null except at a root."""
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
    }
    if alerts is not None:
        facts["fleet"] = [shown(key[0], alert) for key, alert in alerts.active.items()]
        facts["ended"] = [msgspec.structs.asdict(alert) for alert in alerts.ended]
        facts["sinks"] = [lane.facts(now.mono) for lane in alerts.lanes.values()]
    return facts


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
