"""Derives what this node measures and filters from its replicated configuration (CFG-036, CFG-050)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from weft.base.endpoints import endpoint_of
from weft.base.keys import bound_node
from weft.cores.chains.settings import FilterSpec
from weft.cores.measurement.alertsettings import AlertSpec
from weft.cores.measurement.settings import MetricSpec
from weft.cores.topology.atlas import Atlas
from weft.cores.topology.groups import Directory, Guest
from weft.node.settings import NodeSettings

if TYPE_CHECKING:
    from weft.node.deadalerts import DeadAlerts

GLOBAL = "/CONFIG/global/"


class Change(NamedTuple):
    """The difference between the new plan and the last one; None: unchanged."""

    metrics: tuple[MetricSpec, ...] | None
    filters: tuple[FilterSpec, ...] | None
    times: tuple[int, int] | None
    """The heartbeat in ns, and the number of missed heartbeats after which a peer counts as dead."""
    mistakes: tuple[str, ...]
    """Pairs that cannot be used and were not reported before, each with its reason; all others are used."""
    refused: tuple[str, ...] = ()
    """Filters that cannot be used and were not reported before; all filters stay as they were (CHN-070)."""
    alerts: tuple[AlertSpec, ...] = ()
    """The alerts about `metrics`; if an alert has changed, `metrics` is not None either."""


class RootBegun(msgspec.Struct, frozen=True, gc=False):
    """Event: this node leads, so the pairs reported so far are the whole configuration (CFG-036)."""


class Planner:
    """Keeps the pairs of `/CONFIG/`, and makes this node's plan from those of its group."""

    def __init__(self, plan_of: Callable[[Mapping[str, bytes], tuple[str, ...]], Any], settings: NodeSettings) -> None:
        self._plan_of, self._follows = plan_of, settings.follows
        self.pairs: dict[str, bytes] = {}
        self.group = ""
        """The group of this node; empty: it has no place yet."""
        self._metrics, self._filters = settings.metrics, settings.filters
        self._pinned = {spec.name: spec for spec in settings.filters if spec.pinned}
        self._name = settings.node.name
        self._alerts: tuple[AlertSpec, ...] | None = None if settings.follows else settings.alerts
        """None before the first plan, which so counts as changed: it ends alerts that fired before this start."""
        self._times = (settings.heartbeat_ns, settings.fleet.dead_after)
        self._is_root = settings.level == "root"
        self.dead_alerts = _dead_alerts() if self._is_root else None
        """Of the whole fleet; None except at its root."""
        self.is_planned = not waits_for_plan(settings)
        """Whether the filters of this start are known; until then nothing is taken from other nodes (CHN-033)."""
        self._me = Guest(
            b"", endpoint_of(settings.node.host, settings.node.port), settings.node.name, _labels(settings)
        )
        self._atlas = Atlas()
        self._reported: tuple[str, ...] = ()
        self._refused: tuple[str, ...] = ()

    def learn(self, pairs: tuple[tuple[str, bytes | None], ...]) -> bool:
        """Apply changed pairs; returns whether they may change this node's plan."""
        if self._is_root:  # nobody assigns a place to the root: it finds its own group (TOP-015)
            changes = self._atlas.apply(pairs, 0)
            if changes.groups:
                self.group = Directory(self._atlas.groups).find(self._me) or self.group
        if self.dead_alerts is not None:
            self.dead_alerts.learn(pairs)
        matters = False
        for key, value in pairs:
            if not key.startswith("/CONFIG/") or bound_node(key) is not None:
                continue
            matters = matters or key.startswith((GLOBAL, f"/CONFIG/{self.group}/"))
            if value is None:
                self.pairs.pop(key, None)
            else:
                self.pairs[key] = value
        return matters

    def stop(self) -> None:
        """Measure nothing until the node has a place again."""
        self.group, self._metrics, self._alerts = "", (), ()

    def change(self) -> Change:
        """The difference between the current plan and the last one. Nothing changes while no pair of the group is known.

        A root that none of its groups contains measures nothing, and has the filters of all nodes.
        """
        plan = self._plan_of(self.pairs, (self.group,) if self.group else ())
        times = self._changed_times(plan)
        prefix = f"/CONFIG/{self.group}/"
        is_in_none = self._is_root and bool(self._atlas.groups) and not self.group
        is_known = is_in_none or (self.group and any(key.startswith(prefix) for key in self.pairs))
        if not self._follows or not is_known:
            return Change(None, None, times, ())
        filters, refused = self._changed_filters(plan)
        is_same = (plan.metrics, plan.alerts) == (self._metrics, self._alerts)
        metrics = None if is_same else plan.metrics
        mistakes = plan.mistakes if plan.mistakes != self._reported else ()
        self._metrics, self._alerts, self._reported = plan.metrics, plan.alerts, plan.mistakes
        return Change(metrics, filters, times, mistakes, refused, plan.alerts)

    def _changed_filters(self, plan: Any) -> tuple[tuple[FilterSpec, ...] | None, tuple[str, ...]]:
        """The filters if they have changed, and invalid ones that are new. If one is invalid, all stay as they are (CHN-070).

        If no filters are in force yet, the valid ones are used. Otherwise a node that restarts with a configuration which it
        does not fully understand would drop messages that a filter should forward.
        """
        refused = plan.filter_mistakes if plan.filter_mistakes != self._refused else ()
        self._refused = plan.filter_mistakes
        if plan.filter_mistakes and self.is_planned:
            return None, refused
        own = {spec.name: spec for spec in plan.filters if spec.stands_at(self._name)} | self._pinned
        filters = tuple(own[name] for name in sorted(own))
        if filters == self._filters and self.is_planned:
            return None, refused
        self._filters, self.is_planned = filters, True
        return filters, refused

    def settle(self) -> tuple[FilterSpec, ...] | None:
        """The filters to use once the configuration is in force and has none for this node; None if they are known."""
        if self.is_planned or not (self.group or self._is_root):
            return None
        self.is_planned = True
        return self._filters

    def _changed_times(self, plan: Any) -> tuple[int, int] | None:
        """The times if they have changed. Those that the configuration does not set stay as in the file."""
        heartbeat_ns = plan.heartbeat_ns if f"{GLOBAL}heartbeat" in self.pairs else self._times[0]
        dead_after = plan.dead_after if f"{GLOBAL}dead_after" in self.pairs else self._times[1]
        if (heartbeat_ns, dead_after) == self._times:
            return None
        self._times = (heartbeat_ns, dead_after)
        return self._times


def waits_for_plan(settings: NodeSettings) -> bool:
    """Whether this node gets its filters from the configuration, and so starts without them."""
    return settings.follows and {"topology", "configuration", "chains"} <= set(settings.runs)


def _labels(settings: NodeSettings) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(settings.node.labels.items()))


def _dead_alerts() -> "DeadAlerts":
    from weft.node.deadalerts import DeadAlerts  # no sensor loads it

    return DeadAlerts()
