"""Reads configuration files of the original dCAMP, with the same meaning (CFG-073).

    # comment, on a line of its own (also ;)
    [global]
    heartbeat = 60s
    [WebServers]             a group: nodes, metrics, filters, one per line
    10.1.0.8:55500
    nginx_mem
    -10.2.0.0/16             without these (+: these, too)
    [nginx_mem]              a metric: any section with `rate` or `metric`
    rate = 10s
    metric = PROC_MEM
    param = nginx
    threshold = >500000      or <X, *60s, +60s
    aggregate = avg          or max, min, sum

Different from the original on purpose: names keep their case, filters are applied, `+Ns` works, and errors that made it
crash are reported as mistakes with a code. Pure functions.
"""

import math
import re
from typing import Any, Final

import msgspec

from weft.base.endpoints import is_endpoint
from weft.base.settings import FILE_BYTES_MAX, is_plain_name, nearest
from weft.cores.measurement.details import DETAILS
from weft.cores.measurement.settings import parse_metrics
from weft.node.fleetchecks import between_groups
from weft.node.fleetparts import RESERVED, Fleet, Group, Mistake, Reading, placed, reading_of

AGGREGATES: Final = ("max", "min", "avg", "sum")
HEARTBEAT_MAX_S: Final = 3_600  # CFG-074
_SECTION: Final = re.compile(r"\[([^\]]+)\]")
_SECONDS: Final = re.compile(r"\s*(\d{1,9})\s*s", re.ASCII)


class CfgLine(msgspec.Struct, frozen=True):
    """`key` or `key = value`, with its line."""

    key: str
    value: str | None
    line: int


class CfgGroup(msgspec.Struct, frozen=True):
    """A group in the file; each list is in the order of the file."""

    endpoints: tuple[str, ...]
    filters: tuple[str, ...]
    metrics: tuple[str, ...]


class CfgFile(msgspec.Struct, frozen=True):
    """The contents of the file, before it becomes a fleet."""

    heartbeat_s: int
    groups: dict[str, CfgGroup]
    metrics: dict[str, dict[str, Any]]
    """Tables in the form of `[metric.NAME]`."""


Section = list[CfgLine]


class _Report:
    """Collects mistakes: those with a line, and those that still need the line of their path."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        """Mistakes as `CODE path: sentence`."""
        self.lines: dict[str, int] = {}
        """The line of each path in the file."""
        self.mistakes: list[Mistake] = []
        """Mistakes with their lines."""

    def say(self, code: str, path: str, line: int, text: str) -> None:
        self.mistakes.append(Mistake(code, path, line, text))

    def all(self) -> list[Mistake]:
        found = dict.fromkeys([*self.mistakes, *placed(self.texts, self.lines)])
        return sorted(found, key=lambda mistake: (mistake.line, mistake))


def read_cfg(text: str) -> Reading:
    """The fleet that an original file describes, or everything that is wrong with it (CFG-071, CFG-073)."""
    report = _Report()
    if len(text) > FILE_BYTES_MAX:
        return Reading(None, (Mistake("E01", "-", 1, f"longer than {FILE_BYTES_MAX} characters"),))
    cfg = _file(_sections(text, report), report)
    fleet = fleet_of_cfg(cfg)
    report.texts += between_groups(fleet, cfg.metrics)
    return reading_of(fleet, report.all())


def parse_cfg(text: str) -> CfgFile:
    """The contents of a file in which `read_cfg` found no error."""
    report = _Report()
    return _file(_sections(text, report), report)


def fleet_of_cfg(cfg: CfgFile) -> Fleet:
    """The file's contents as a fleet: nodes and `+` filters become members, `-` filters become excluded patterns."""
    groups: dict[str, Group] = {}
    for name, group in cfg.groups.items():
        added = [_pattern(text[1:]) for text in group.filters if text.startswith("+")]
        groups[name] = Group(
            name=name,
            members=(*group.endpoints, *added),
            exclude=tuple([_pattern(text[1:]) for text in group.filters if text.startswith("-")]),
            metrics={metric: cfg.metrics[metric] for metric in group.metrics},
        )
    return Fleet(times={"heartbeat": cfg.heartbeat_s}, groups=groups)


def _pattern(match: str) -> str:
    """`.example.org` means every host of that domain."""
    return f"*{match}" if match.startswith(".") else match


# Lines


def _sections(text: str, report: _Report) -> dict[str, Section]:
    """Sections by name, each with its lines. A line that is indented deeper continues the value above it."""
    sections: dict[str, Section] = {}
    section: Section | None = None
    depth = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith(("#", ";")):
            continue
        indent = len(raw) - len(raw.lstrip())
        if section and indent > depth:
            _continue_value(section, line, number, report)
            continue
        depth = indent
        if (match := _SECTION.match(line)) is not None:
            section = _open(sections, match[1], number, report)
        elif section is None:
            report.say("E01", "-", number, f"{line[:60]!r} is before the first [section]")
        else:
            _add(section, line, number, report)
    return sections


def _open(sections: dict[str, Section], name: str, number: int, report: _Report) -> Section:
    if name in sections:
        report.say("E14", name, number, f"[{name}] is there already, in line {report.lines[name]}")
        return []
    report.lines.setdefault(name, number)
    sections[name] = []
    return sections[name]


def _continue_value(section: Section, line: str, number: int, report: _Report) -> None:
    last = section[-1]
    if last.value is None:
        report.say("E01", last.key, number, f"{line[:60]!r} is indented deeper than {last.key!r}, which has no value")
    else:
        section[-1] = CfgLine(last.key, f"{last.value}\n{line}", last.line)


def _add(section: Section, line: str, number: int, report: _Report) -> None:
    key, equals, value = line.partition("=")
    key = key.strip()
    if not key:
        report.say("E01", "-", number, f"{line[:60]!r} has no name before `=`")
        return
    if (twin := next((other for other in section if other.key == key), None)) is not None:
        report.say("E14", key, number, f"{key!r} is there already, in line {twin.line}")
        return
    section.append(CfgLine(key, value.strip().replace("%%", "%") if equals else None, number))


# Meaning


def _file(sections: dict[str, Section], report: _Report) -> CfgFile:
    if not sections.pop("DEFAULT", [None]):  # the original ignores an empty section DEFAULT
        report.lines.pop("DEFAULT")
    heartbeat_s = _heartbeat(sections.pop("global", None), report)
    measured = [name for name, lines in sections.items() if any(_is(line, "rate", "metric") for line in lines)]
    metrics = {name: _metric(sections[name]) for name in measured}
    for name in measured:
        for line in sections[name]:
            if _is(line, "aggregate") and line.value == "count":  # an addition of Weft; the original has none
                report.say("E12", _path(name, line), line.line, f"'count' is not one of {', '.join(AGGREGATES)}")
    _, wrong = parse_metrics(metrics)
    report.texts += [text.replace(".detail: ", ".metric: ") for text in wrong]
    report.lines |= {f"metric.{name}": report.lines[name] for name in measured}
    report.lines |= {_path(name, line): line.line for name in measured for line in sections[name]}
    rest = [name for name in sections if name not in metrics]
    groups = {name: _group(name, sections[name], metrics, report) for name in rest}
    for what, found in (("metric", metrics), ("group", groups)):
        if not found:
            report.say("E03", f"[{what}]", 1, f"there is no {what} at all")
    return CfgFile(heartbeat_s, groups, metrics)


def _is(line: CfgLine, *names: str) -> bool:
    return line.key.lower() in names


def _path(name: str, line: CfgLine) -> str:
    key = line.key.lower()
    return f"metric.{name}.{key}"


def _heartbeat(section: Section | None, report: _Report) -> int:
    if section is None:
        report.say("E03", "global", 1, "there is no section [global] with heartbeat = Ns")
        return 1
    for line in section:
        if not _is(line, "heartbeat"):
            report.say("E02", f"global.{line.key}", line.line, f"is not known here{nearest(line.key, ['heartbeat'])}")
    found = next((line for line in section if _is(line, "heartbeat")), None)
    if found is None:
        report.say("E03", "global.heartbeat", report.lines["global"], "is missing: heartbeat = 60s")
        return 1
    seconds = _seconds(found.value)
    if seconds is None or not 1 <= seconds <= HEARTBEAT_MAX_S:
        text = f"{found.value!r} is not a time from 1s to {HEARTBEAT_MAX_S}s"
        report.say("E04", "global.heartbeat", found.line, text)
        return 1
    return seconds


def _seconds(text: str | None) -> int | None:
    match = _SECONDS.fullmatch(text or "")
    return int(match[1]) if match else None


def _metric(section: Section) -> dict[str, Any]:
    """The metric in the form of `[metric.NAME]`, whose parser reports errors; other keys are ignored."""
    values = {line.key.lower(): line.value for line in section}
    table: dict[str, Any] = {}
    if "metric" in values:
        table["detail"] = values["metric"]
    if "rate" in values:
        seconds = _seconds(values["rate"])
        table["rate"] = f"{seconds}s" if seconds is not None else f"{values['rate']} (whole seconds, like 60s)"
    if "threshold" in values:
        table["threshold"] = _threshold(values["threshold"] or "nothing")
    if values.get("param") and _takes_param(table):
        table["param"] = values["param"]
    if (aggregate := values.get("aggregate")) is not None:
        table["aggregate"] = [aggregate or "nothing"]
    return table


def _takes_param(table: dict[str, Any]) -> bool:
    """Whether the metric uses a parameter: the original accepted one for every metric, but used it only for processes."""
    detail = DETAILS.get(table.get("detail", ""))
    return detail is None or bool(detail.param)


def _threshold(text: str) -> str:
    """A threshold as it is written in TOML files: `>.5` becomes `>0.5`, `+ 60s` becomes `+60s`."""
    kind, rest = text[:1], text[1:].strip()
    if kind not in ("<", ">"):
        return kind + "".join(rest.split())
    try:
        limit = float(rest)
    except ValueError:
        return text
    if not math.isfinite(limit):
        return text
    return f"{kind}{int(limit) if limit.is_integer() and abs(limit) < 1e15 else limit}"


def _group(name: str, section: Section, metrics: dict[str, dict[str, Any]], report: _Report) -> CfgGroup:
    endpoints: list[CfgLine] = []
    filters: list[CfgLine] = []
    measured: list[str] = []
    report.lines[f"group.{name}"] = report.lines[name]
    if not is_plain_name(name):
        hint = " (IPv6 endpoints are not possible in this format)" if ":" in name else ""
        text = f"is not a valid name of a group: letters, digits, `_`, `.`, `-` only{hint}"
        report.say("E15", name, report.lines[name], text)
    elif name in RESERVED:
        report.say("E15", name, report.lines[name], f"`{name}` cannot name a group")
    for line in section:
        metric = line.key if line.key in metrics else line.key.lower()
        if metric in metrics:
            measured.append(metric)
        elif line.key.startswith(("+", "-")):
            filters.append(line)
        elif line.key.count(":") == 1 and is_endpoint(line.key):
            endpoints.append(line)
        else:
            code = "E05" if ":" in line.key else "E07"
            hint = nearest(line.key, metrics)
            text = f"is neither host:port nor a metric of this file{hint}"
            report.say(code, f"group.{name}.{line.key}", line.line, text)
    if filters and not endpoints:
        report.say("E10", f"group.{name}", report.lines[name], "only filters: at least one host:port is needed")
    added = [line for line in filters if line.key.startswith("+")]
    without = [line for line in filters if line.key.startswith("-")]
    for key, lines in (("members", [*endpoints, *added]), ("exclude", without)):
        report.lines |= {f"group.{name}.{key}[{index}]": line.line for index, line in enumerate(lines)}
    return CfgGroup(
        tuple([line.key for line in endpoints]), tuple([line.key for line in filters]), tuple(dict.fromkeys(measured))
    )
