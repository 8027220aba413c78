"""How often the alerts of a fleet's file would have fired in the last hour of a lake's data (MET-003)."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.now import MILLISECOND
from weft.cores.measurement.alarmstates import TABLE, Alarm, heard
from weft.cores.measurement.alertsettings import AlertSpec, parse_alerts
from weft.node.fleet import Fleet
from weft.node.fleetalerts import details_of

QUESTION: Final = """
WITH known AS (SELECT v.node, v."group", v.series, epoch_ms(v.at) AS at, v.result FROM silver.values v)
SELECT node, "group", series, config_name AS metric, map_entries(labels) AS labels, known.at AS at, result
FROM known JOIN silver.series USING (series)
WHERE result IS NOT NULL AND known.at > (SELECT max(known.at) FROM known) - 3600000
ORDER BY node, series, known.at
"""
Row = Mapping[str, Any]


class Crossing(NamedTuple):
    """What an alert would have done in that hour, in one group."""

    alert: str
    group: str
    when: str
    values: int
    """How many values of the metric there were, in all series; 0: nothing could be judged."""
    times: int
    """How often it would have begun to fire."""
    nodes: list[str]
    """Where."""

    def sentence(self) -> str:
        """One line for people."""
        if not self.values:
            text = "the lake has no value of its metric in its last hour"
        elif not self.times:
            text = "would not have fired in the last hour of the lake"
        else:
            how_often = "once" if self.times == 1 else f"{self.times:,} times"
            text = f"would have fired {how_often} in the last hour of the lake: {', '.join(self.nodes)}"
        return f"alert {self.alert} of group {self.group}, {self.when}: {text}"


def crossings(fleet: Fleet, lake: Path) -> list[Crossing]:
    """The crossings of each alert in each group; UserError if there is no such lake."""
    from weft.pipeline.sql import Lake  # only here

    with Lake(lake) as asked:
        return list(judged(fleet, asked.query(QUESTION).to_pylist()))


def judged(fleet: Fleet, rows: Iterable[Row]) -> Iterator[Crossing]:
    """The same, from values in the order of node, series and time."""
    found = list(rows)
    for group in fleet.groups.values():
        for spec in parse_alerts(group.alerts, details_of(group.metrics))[0]:
            series = _series_of(spec, group.name, found)
            fired = {key: times_fired(spec, values) for key, values in series.items()}
            nodes = sorted({node for (node, _), times in fired.items() if times})
            yield Crossing(spec.name, group.name, spec.when, sum(map(len, series.values())), sum(fired.values()), nodes)


def _series_of(spec: AlertSpec, group: str, rows: Iterable[Row]) -> dict[tuple[str, int], list[tuple[int, float]]]:
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for row in rows:
        labels = {entry["key"]: entry["value"] for entry in row["labels"] or ()}
        is_there = row["metric"] == spec.metric and row["group"] in (group, None)  # None: its group is unknown
        if is_there and spec.is_about(labels):
            found.setdefault((row["node"], row["series"]), []).append((row["at"], row["result"]))
    return found


def times_fired(spec: AlertSpec, values: Iterable[tuple[int, float]]) -> int:
    """How often an alert begins to fire in a series of values, each with its time in ms."""
    times, since, state = 0, 0, Alarm.QUIET
    for at_ms, value in values:
        since = at_ms if state is Alarm.QUIET else since
        cell = TABLE.get((state, heard(spec, value, (at_ms - since) * MILLISECOND)))
        if cell is not None:
            state = cell.then
            times += state is Alarm.FIRING
    return times
