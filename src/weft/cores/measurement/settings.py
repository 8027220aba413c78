"""The metric tables of a settings file: text in, a plan out, and every mistake with its code (CFG-070, CFG-071).

    [metric.NAME]
    detail = "PROC_MEM"      # a row of details.DETAILS
    rate = "10s"             # a span of 0.1 s to 1 d, "once", or "on-demand"
    param = "nginx"          # process, device or mount, as the detail says
    per = "core"             # one series per core, or per process name
    threshold = "> 1 GiB"    # "*60s" hold, "+60s" thin out, "<X", ">X"; clear = "800 MiB" adds hysteresis
    timeout = "5s"           # half of the rate
    phase = 0                # aligns to the wall clock; left out: by the node, so that a fleet's ticks are spread
    aggregate = ["sum"]      # kept, without effect

Pure functions; the loader of the file adds where the file is.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from weft.base.settings import Table, is_plain_name, nearest, span_ns
from weft.cores.measurement import limits
from weft.cores.measurement.details import ADDRESS, DETAILS, FILE, PROCESS
from weft.cores.measurement.units import limit_of, quantity

ONCE: Final = 0
ON_DEMAND: Final = -1
WORDS: Final = {"once": ONCE, "on-demand": ON_DEMAND}
AGGREGATES: Final = ("sum", "avg", "min", "max", "count")
EXAMPLES: Final = '"*60s", "+60s", "< 1.5", "> 90 %" or "> 10 GiB"'

_ADDRESS: Final = re.compile(r"https?://[!-~]+", re.ASCII)
_THRESHOLD: Final = re.compile(r"([*+])(\S+)|([<>]) ?(.+)")


class Threshold(msgspec.Struct, frozen=True, gc=False):
    """Which samples of a metric are sent (MEA-010)."""

    kind: str
    """`*` hold and send by timer, `+` one per span, `<` and `>` while the calculated value fulfils the condition."""
    every_ns: int = 0
    limit: float | int = 0
    clear: float | int | None = None
    """Hysteresis: once sending, it stops only at this value."""


class MetricSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of the plan; equal specs measure the same."""

    name: str
    detail: str
    rate_ns: int
    """Nanoseconds between samples; ONCE; ON_DEMAND."""
    timeout_ns: int
    param: str = ""
    per: str = ""
    threshold: Threshold | None = None
    phase_ns: int | None = None
    """Offset of the ticks to whole rates of the wall clock; None: by the node's UUID (MEA-004)."""
    aggregate: tuple[str, ...] = ()
    """For collectors (MEA-012); ignored by the measuring node."""

    @property
    def measures(self) -> tuple[str, str, str]:
        """What is measured, without the rate: if it changes, it is another metric."""
        return self.detail, self.param, self.per


def parse_metrics(table: Any) -> tuple[list[MetricSpec], list[str]]:
    """The metrics of `[metric.*]`, by name, and all errors in them (CFG-071).

    The metrics may include some with errors; if there are any errors, the caller uses none of them.
    """
    mistakes: list[str] = []
    if not isinstance(table, Mapping):
        return [], ["E04 metric: must be tables, one per metric"]
    if len(table) > limits.METRICS_MAX:
        mistakes.append(f"E04 metric: {len(table)} metrics, {limits.METRICS_MAX} at most")
    specs = [_metric(str(name), values, mistakes) for name, values in sorted(table.items())]
    return [spec for spec in specs if spec is not None], mistakes


def _metric(name: str, values: object, mistakes: list[str]) -> MetricSpec | None:
    table = Table(values, f"metric.{name}", mistakes)
    if not is_plain_name(name):
        table.say("E15", "", "a name is 1 to 63 letters, digits, `_`, `.`, `-`")
    if not isinstance(values, dict):
        return None
    detail = _detail(table)
    rate_ns = _rate(table, detail)
    spec = MetricSpec(
        name=name,
        detail=detail,
        rate_ns=rate_ns,
        timeout_ns=_timeout(table, rate_ns),
        param=_param(table, detail),
        per=_per(table, detail),
        threshold=_threshold(table, detail, rate_ns),
        phase_ns=table.span("phase", 0) if "phase" in values else None,
        aggregate=_aggregate(table),
    )
    if spec.threshold is not None and spec.aggregate:
        table.say("E13", "aggregate", "not with a threshold: its values have holes on purpose")
    table.end()
    return spec


def _detail(table: Table) -> str:
    detail = table.text("detail", is_required=True)
    if detail and detail not in DETAILS:
        table.say("E07", "detail", f"{detail!r} is no metric{nearest(detail, DETAILS)}")
    return detail if detail in DETAILS else ""


def _rate(table: Table, detail: str) -> int:
    is_once = bool(detail) and DETAILS[detail].type == "once"
    value = table.raw("rate", is_required=not is_once)
    if value is None:
        return ONCE
    if isinstance(value, str) and value in WORDS:
        return WORDS[value]
    rate_ns = span_ns(value)
    if rate_ns is None or not limits.RATE_MIN_NS <= rate_ns <= limits.RATE_MAX_NS:
        table.say("E04", "rate", f'{value!r} is none: "100ms" to "1d", a number of seconds, "once" or "on-demand"')
        return ONCE
    return rate_ns


def _timeout(table: Table, rate_ns: int) -> int:
    usual = rate_ns // 2 if rate_ns > 0 else limits.TIMEOUT_NS
    timeout_ns = table.span("timeout", usual)
    if timeout_ns <= 0:
        table.say("E04", "timeout", "must be longer than nothing")
    return timeout_ns


def _param(table: Table, detail: str) -> str:
    param = table.text("param", is_required=bool(detail) and DETAILS[detail].needs_param)
    if not param or not detail:
        return param
    if not DETAILS[detail].param:
        table.say("E04", "param", f"{detail} takes none")
    elif (text := _fault(param, DETAILS[detail].param)) is not None:
        table.say("E04", "param", text)
    return param


def _fault(param: str, names: str) -> str | None:
    """What is wrong with a parameter for something of this kind."""
    return FAULTS.get(names, _device_fault)(param)


def _device_fault(param: str) -> str | None:
    selector, _, pattern = param.partition(":")
    return _pattern_fault(pattern) if selector == "re" else None


def _process_fault(param: str) -> str | None:
    selector, colon, rest = param.partition(":")
    if selector == "pid" and colon and not rest.isdecimal():
        return f"{rest!r} is no process number"
    return _pattern_fault(rest) if colon and selector in ("re", "cmd") else None


def _pattern_fault(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"{pattern!r} is no regular expression: {error}"
    return None


def _file_fault(param: str) -> str | None:
    return None if param.startswith("/") and "\0" not in param else "must be a whole path, from `/` on"


def _address_fault(param: str) -> str | None:
    try:
        is_address = _ADDRESS.fullmatch(param) is not None and urlsplit(param).port != 0
    except ValueError:
        is_address = False
    return None if is_address else "must be an address like http://host:port/path"


FAULTS: Final[Mapping[str, Callable[[str], str | None]]] = {
    PROCESS: _process_fault,
    FILE: _file_fault,
    ADDRESS: _address_fault,
}


def _per(table: Table, detail: str) -> str:
    if detail and not DETAILS[detail].per:
        if table.text("per"):
            table.say("E04", "per", f"{detail} has only one way")
        return ""
    return table.choice("per", DETAILS[detail].per if detail else ("core", "name"), "")


def _threshold(table: Table, detail: str, rate_ns: int) -> Threshold | None:
    clear = table.raw("clear")
    text = table.text("threshold")
    if not text:
        if clear is not None:
            table.say("E11", "clear", "belongs to a threshold `<X` or `>X`")
        return None
    match = _THRESHOLD.fullmatch(text)
    if match is None:
        table.say("E11", "threshold", f"{text!r} is none: {EXAMPLES}")
        return None
    if match[1]:
        return _timed(table, match[1], match[2], rate_ns, clear)
    limit = limit_in(table, "threshold", match[4], detail)
    stop = None if clear is None else limit_in(table, "clear", str(clear), detail)
    if limit is None:
        return None
    if stop is not None and (stop > limit if match[3] == ">" else stop < limit):
        table.say("E11", "clear", f"must lie on the quiet side of {text}")
    return Threshold(match[3], limit=limit, clear=stop)


def limit_in(table: Table, key: str, text: str, detail: str) -> float | int | None:
    """A number in the unit of the detail's values; one with another unit is converted (MET-003)."""
    found = quantity(text)
    if found is None:
        table.say("E11", key, f"{text!r} is none: {EXAMPLES}")
        return None
    if not detail:
        return found[0]
    limit = limit_of(*found, detail)
    if isinstance(limit, str):
        table.say("E11", key, limit)
        return None
    return limit


def _timed(table: Table, kind: str, span: str, rate_ns: int, clear: object) -> Threshold | None:
    every_ns = span_ns(span)
    if every_ns is None or every_ns > limits.RATE_MAX_NS:
        table.say("E11", "threshold", f'{kind}{span} needs a span with its unit, "1d" at most')
        return None
    if rate_ns > 0 and (every_ns < rate_ns or every_ns % rate_ns):
        table.say("E11", "threshold", f"{kind}{span} must be a multiple of the rate")
    if rate_ns <= 0:
        table.say("E11", "threshold", f"{kind}{span} needs a metric with a rate")
    if clear is not None:
        table.say("E11", "clear", "belongs to a threshold `<X` or `>X`")
    return Threshold(kind, every_ns=every_ns)


def _aggregate(table: Table) -> tuple[str, ...]:
    names = table.texts("aggregate")
    for name in names:
        if name not in AGGREGATES:
            table.say("E12", "aggregate", f"{name!r} is none of {', '.join(AGGREGATES)}{nearest(name, AGGREGATES)}")
    return names
