"""What this node measures and filters by the configuration that it has replicated (CFG-036, CFG-050)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from weft.cores.chains.settings import FilterSpec
from weft.cores.measurement.settings import MetricSpec
from weft.node.settings import NodeSettings

GLOBAL = "/CONFIG/global/"


class Change(NamedTuple):
    """What is different from the plan before; None: nothing."""

    metrics: tuple[MetricSpec, ...] | None
    filters: tuple[FilterSpec, ...] | None
    mistakes: tuple[str, ...]
    """Pairs that cannot be used and were not told before, each with its reason; all others count."""


class Planner:
    """Keeps the pairs of `/CONFIG/` and makes a plan of those of this node's group."""

    def __init__(self, plan_of: Callable[[Mapping[str, bytes], tuple[str, ...]], Any], settings: NodeSettings) -> None:
        self._plan_of, self._follows = plan_of, settings.follows
        self.pairs: dict[str, bytes] = {}
        self.group = ""
        """Empty: this node has no place yet."""
        self._metrics, self._filters = settings.metrics, settings.filters
        self._told: tuple[str, ...] = ()

    def learn(self, pairs: Iterable[tuple[str, bytes | None]]) -> bool:
        """Take over what has changed; whether anything of it can matter here."""
        matters = False
        for key, value in pairs:
            if not key.startswith("/CONFIG/"):
                continue
            matters = matters or key.startswith((GLOBAL, f"/CONFIG/{self.group}/"))
            if value is None:
                self.pairs.pop(key, None)
            else:
                self.pairs[key] = value
        return matters

    def change(self) -> Change:
        """The plan of now, where it differs from the one before; nothing as long as the group has no metric at all."""
        prefix = f"/CONFIG/{self.group}/"
        if not self._follows or not self.group or not any(key.startswith(prefix) for key in self.pairs):
            return Change(None, None, ())
        plan = self._plan_of(self.pairs, (self.group,))
        metrics = plan.metrics if plan.metrics != self._metrics else None
        filters = plan.filters if plan.filters != self._filters else None
        mistakes = plan.mistakes if plan.mistakes != self._told else ()
        self._metrics, self._filters, self._told = plan.metrics, plan.filters, plan.mistakes
        return Change(metrics, filters, mistakes)
