"""Alerts of the running fleet that can never fire: which a write would leave so, and which there are (MET-003).

An alert is dead if the nodes of its group cannot judge it: it is unreadable, its metric is not in the group, or is not
measured in the unit of its limit. The root refuses orders that would leave one dead; a rollback, the end of a key's time
to live and writes of the Clone dialect go through, and what they leave dead is shown until it is mended.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from weft.base.errors import UNREADABLE
from weft.cores.configuration.messages import Write
from weft.cores.configuration.store import Store
from weft.node.fleetkeys import CONFIG, group_pairs
from weft.node.plan import read_alert, read_metric

NO_MACHINE: Final = "no machine is in its group"
"""Why an alert of `DeadAlerts.in_vain` cannot fire now."""
JUDGED: Final = ("metric", "alert")
"""The tables of a group that decide whether an alert can fire."""


class _About(msgspec.Struct):
    metric: str = ""


_metric_of: Final = msgspec.json.Decoder(_About).decode


class Judge:
    """Judges the alerts of groups; what is the same in many groups is read once."""

    def __init__(self) -> None:
        self._details: dict[tuple[str, bytes], str | None] = {}
        self._reasons: dict[tuple[str, bytes, str], str] = {}

    def dead(self, pairs: Mapping[str, bytes], group: str) -> dict[str, str]:
        """The dead alerts of a group by key, each with the reason; `pairs`: all those of the group."""
        alerts = group_pairs(pairs, group, "alert")
        metrics = group_pairs(pairs, group, "metric") if alerts else {}
        reasons = {name: self._why(name, value, metrics) for name, value in alerts.items()}
        return {f"{CONFIG}{group}/alert/{name}": why for name, why in reasons.items() if why}

    def _why(self, name: str, value: bytes, metrics: Mapping[str, bytes]) -> str:
        try:
            metric = _metric_of(value).metric
        except UNREADABLE:
            return _reason(name, value, {})
        detail = self._detail(metric, metrics[metric]) if metric in metrics else None
        if detail is None:
            return _reason(name, value, {known: "" for known in metrics if known != metric})
        case = (name, value, detail)
        if case not in self._reasons:
            self._reasons[case] = _reason(name, value, {metric: detail})
        return self._reasons[case]

    def _detail(self, name: str, value: bytes) -> str | None:
        """What the metric measures; None: it cannot be measured."""
        if (name, value) not in self._details:
            spec = read_metric("", name, value, [])
            self._details[name, value] = None if spec is None else spec.detail
        return self._details[name, value]


def _reason(name: str, value: bytes, details: Mapping[str, str]) -> str:
    mistakes: list[str] = []
    read_alert("", name, value, mistakes, details)
    return "; ".join([mistake.removeprefix(": ") for mistake in mistakes])


def newly_dead(store: Store, writes: Sequence[Write]) -> tuple[str, ...]:
    """Alerts that these writes would leave dead and that are not dead now, each as `key: reason`."""
    judge = Judge()
    found: list[str] = []
    for group, changed in _by_group(writes).items():
        pairs = {key: store.pairs[key].value for key in store.keys_under(f"{CONFIG}{group}/")}
        after = judge.dead({key: value for key, value in (pairs | changed).items() if value}, group)
        before = judge.dead(pairs, group) if after else {}
        found += [f"{key}: {why}" for key, why in after.items() if key not in before]
    return tuple(found)


def _by_group(writes: Sequence[Write]) -> dict[str, dict[str, bytes]]:
    """The last value that the writes give to each metric and alert, by group."""
    found: dict[str, dict[str, bytes]] = {}
    for write in writes:
        if (group := _group_of(write.key)) is not None:
            found.setdefault(group, {})[write.key] = write.value
    return found


def _group_of(key: str) -> str | None:
    """The group of a metric or an alert; None: the key is another one."""
    parts = key.split("/")
    return parts[2] if len(parts) == 5 and parts[1] == "CONFIG" and parts[3] in JUDGED else None


class DeadAlerts:
    """Which alerts are dead as the configuration is now. A group is judged again only after it has changed."""

    def __init__(self) -> None:
        self._pairs: dict[str, dict[str, bytes]] = {}
        """Metrics and alerts by group."""
        self._dead: dict[str, dict[str, str]] = {}
        self._changed: set[str] = set()

    def learn(self, pairs: Sequence[tuple[str, bytes | None]]) -> None:
        """Apply changed pairs of the configuration."""
        for key, value in pairs:
            group = _group_of(key)
            if group is None:
                continue
            self._changed.add(group)
            known = self._pairs.setdefault(group, {})
            known.pop(key, None)
            if value:
                known[key] = value

    def found(self) -> dict[str, str]:
        """All dead alerts by key, each with the reason."""
        judge = Judge()
        for group in sorted(self._changed):
            self._dead[group] = judge.dead(self._pairs[group], group)
        self._changed.clear()
        return {key: why for group in sorted(self._dead) for key, why in self._dead[group].items()}

    def in_vain(self, groups: set[str]) -> list[str]:
        """The alerts of all groups but these, which have no machine."""
        others = [known for group, known in sorted(self._pairs.items()) if group not in groups]
        return [key for known in others for key in sorted(known) if key.split("/")[3] == "alert"]
