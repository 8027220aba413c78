"""The alert tables of a settings file (MET-004): text in, conditions out, and every mistake with its code (CFG-071).

    [alert.disk_full]
    metric = "disk_percent"    # the name of a [metric.…]
    when = "> 90 %"            # true beyond the limit, not at it; units as in a threshold
    clear = "85 %"             # it stops firing there; left out: at the limit
    for = "5m"                 # how long it has to hold; left out: one sample is enough
    severity = "critical"      # or "warning", which is usual
    where = { mount = "/" }    # only series with these labels
    text = "The disk is nearly full."

Pure functions, like those of settings.py.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.base.settings import Table, is_plain_name, nearest
from weft.cores.measurement import limits
from weft.cores.measurement.details import DETAILS
from weft.cores.measurement.settings import limit_in
from weft.wire.samples import PARAM, Labels

SEVERITIES: Final = ("warning", "critical")
_WHEN: Final = re.compile(r"([<>]) ?(.+)")


class AlertSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One alert of the plan; two equal specs are the same condition."""

    name: str
    metric: str
    when: str
    """As written in the file."""
    is_above: bool
    """Whether the condition is "above the limit" or "below the limit"."""
    limit: float | int
    clear: float | int
    for_ns: int = 0
    severity: str = SEVERITIES[0]
    text: str = ""
    where: Labels = ()

    def holds(self, value: float) -> bool:
        """Whether the value lies beyond the limit."""
        return value > self.limit if self.is_above else value < self.limit

    def is_back(self, value: float) -> bool:
        """Whether the value has returned far enough for the alert to end."""
        return value <= self.clear if self.is_above else value >= self.clear

    def is_about(self, labels: Mapping[str, str]) -> bool:
        """Whether it applies to the series with these labels."""
        return all(labels.get(name) == value for name, value in self.where)


def parse_alerts(
    tables: Any, details: Mapping[str, str] | None, path: str = "alert"
) -> tuple[list[AlertSpec], list[str]]:
    """The alerts of `[alert.*]`, by name, and all errors in them.

    `details`: the detail of each metric that they may name; None: not known, and then units are not checked.
    """
    mistakes: list[str] = []
    if not isinstance(tables, Mapping):
        return [], [f"E04 {path}: must be tables, one per alert"]
    if len(tables) > limits.ALERTS_MAX:
        mistakes.append(f"E04 {path}: {len(tables)} alerts, {limits.ALERTS_MAX} at most")
    found = [
        _alert(str(name), Table(values, f"{path}.{name}", mistakes), details) for name, values in sorted(tables.items())
    ]
    return [spec for spec in found if spec is not None], mistakes


def _alert(name: str, table: Table, details: Mapping[str, str] | None) -> AlertSpec | None:
    if not is_plain_name(name):
        table.say("E15", "", "a name is 1 to 63 letters, digits, `_`, `.`, `-`")
    metric = _metric(table, details)
    detail = (details or {}).get(metric, "")
    when = _when(table, detail)
    spec = AlertSpec(
        name=name,
        metric=metric,
        when=table.text("when"),
        is_above=when[0],
        limit=when[1],
        clear=_clear(table, detail, when),
        for_ns=_for(table),
        severity=table.choice("severity", SEVERITIES, SEVERITIES[0]),
        text=_text(table),
        where=_where(table, detail),
    )
    table.end()
    return spec if metric else None


def _metric(table: Table, details: Mapping[str, str] | None) -> str:
    metric = table.text("metric", is_required=True)
    if metric and details is not None and metric not in details:
        table.say("E07", "metric", f"there is no metric {metric!r}{nearest(metric, details)}")
    return metric


def _when(table: Table, detail: str) -> tuple[bool, float | int]:
    """The direction and the limit; a wrong text gives a limit that is not used."""
    text = table.text("when", is_required=True)
    match = _WHEN.fullmatch(text)
    if match is None:
        if text:
            table.say("E11", "when", f'{text!r} is none: "> 90 %", "< 1.5" or "> 10 GiB"')
        return True, 0
    limit = limit_in(table, "when", match[2], detail)
    if limit is not None and not abs(limit) <= limits.ALERT_LIMIT_MAX:
        table.say("E11", "when", f"{match[2][:40]} is beyond what is measured")
    return match[1] == ">", 0 if limit is None else limit


def _clear(table: Table, detail: str, when: tuple[bool, float | int]) -> float | int:
    is_above, limit = when
    raw = table.raw("clear")
    clear = None if raw is None else limit_in(table, "clear", str(raw), detail)
    if clear is None:
        return limit
    if detail and (clear > limit if is_above else clear < limit):  # otherwise their units may differ
        table.say("E11", "clear", f"must lie on the quiet side of {table.text('when')}")
    return clear


def _for(table: Table) -> int:
    span = table.span("for", 0)
    if not 0 <= span <= limits.ALERT_FOR_MAX_NS:
        table.say("E04", "for", f'{table.raw("for")!r} is none: "0s" to "7d"')
    return span


def _text(table: Table) -> str:
    text = table.text("text")
    if len(text.encode("utf-8", "replace")) > limits.ALERT_TEXT_BYTES_MAX:
        table.say("E04", "text", f"longer than {limits.ALERT_TEXT_BYTES_MAX} bytes")
    return text


def _where(table: Table, detail: str) -> Labels:
    where = table.raw("where")
    if where is None:
        return ()
    if not isinstance(where, dict) or not all(isinstance(value, str) for value in where.values()):
        table.say("E04", "where", 'must be labels with their values, like { mount = "/" }')
        return ()
    known = (*DETAILS[detail].labels, PARAM) if detail else tuple(where)
    for name in where:
        if name not in known:
            table.say("E04", f"where.{name}", f"series of {detail} have no such label{nearest(name, known)}")
    return tuple(sorted(where.items()))
