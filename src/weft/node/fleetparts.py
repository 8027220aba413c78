"""The types of a fleet as its file describes it, and of mistakes in such a file (CFG-070..074)."""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.errors import UserError
from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import HOUR, span_ns
from weft.node.tomllines import line_at

SPAN_MIN_NS: Final = 50 * MILLISECOND  # CFG-074
SPAN_MAX_NS: Final = HOUR
DEAD_AFTER_MIN, DEAD_AFTER_MAX = 2, 100
FANOUT_MAX: Final = 1_000  # children per parent
GROUPS_MAX: Final = 1_000
METRICS_MAX: Final = 1_000  # of one group
FILTERS_MAX: Final = 1_000
ALERTS_MAX: Final = 256
MEMBERS_MAX: Final = 10_000  # nodes of a fleet
LABELS_MAX: Final = 16
LABEL_BYTES_MAX: Final = 64
EVERYBODY: Final = "all"
"""Name of the only group of a fleet whose file has no groups."""
RESERVED: Final = ("global", "root")
SPANS: Final = ("heartbeat",)
"""The times in `[fleet]` that are spans (CFG-074)."""
WARNINGS: Final = ("W01", "W02", "W03")

_MISTAKE: Final = re.compile(r"([EW]\d\d) (.*?): (.*)", re.DOTALL)


class Mistake(NamedTuple):
    """One mistake in a file: code E… makes the file invalid, W… is a warning."""

    code: str
    path: str
    line: int
    text: str

    def describe(self, file: str) -> str:
        """One line for people: file, line, code, path, sentence. It quotes the file: clean it before it is printed."""
        return f"{file}:{self.line}: {self.code} {self.path}: {self.text}"


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """`[group.NAME]`: some machines, what they measure, and their place in the tree."""

    name: str
    parent: str = ""
    """The group whose collectors are this one's parents; empty: the root."""
    members: tuple[str, ...] = ()
    """Patterns of members, in the syntax of members.py."""
    exclude: tuple[str, ...] = ()
    collectors: tuple[str, ...] = ()
    """Endpoints of its collectors; the first that is alive leads (TOP-013). Empty: the root chooses among the members."""
    fanout: int | None = None
    """Children per collector before another collector is added (TOP-014)."""
    prefer: bool = False
    """Whether a collector that returns gets its former place (REC-006)."""
    labels: dict[str, str] = {}
    """Nodes with these labels belong to the group too (TOP-010)."""
    metrics: dict[str, dict[str, Any]] = {}
    """Tables by name: the shared ones that the group lists, and its own."""
    filters: dict[str, dict[str, Any]] = {}
    """Tables by name, as for metrics."""
    alerts: dict[str, dict[str, Any]] = {}
    """Tables by name: the fleet's alerts about metrics of this group, and the group's own."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet's file says."""

    times: dict[str, Any] = {}
    """The table `[fleet]`: `name`; spans in seconds; `dead_after`, in heartbeats."""
    filters: dict[str, dict[str, Any]] = {}
    """Filters of all nodes, `[global.filter.NAME]`; a group's filter of the same name replaces one."""
    groups: dict[str, Group] = {}


class Reading(NamedTuple):
    """The result of reading a file: no fleet if there is an error."""

    fleet: Fleet | None
    errors: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()


def refusal(errors: Iterable[Mistake], where: str) -> UserError:
    """UserError `bad-settings` with all errors of a file."""
    listed = "\n  ".join(mistake.describe(where) for mistake in errors)
    return UserError(
        "bad-settings",
        f"{where} cannot be used:\n  {listed}",
        "correct these and run it again; nothing was changed (docs/configuration.md explains the codes)",
    )


def placed(texts: Iterable[str], lines: dict[str, int]) -> tuple[Mistake, ...]:
    """Mistakes with their lines, in the order of the file, each once. `texts`: `CODE path: sentence`."""
    found: dict[Mistake, None] = {}
    for text in texts:
        match = _MISTAKE.fullmatch(text)
        assert match is not None, text
        found[Mistake(match[1], match[2], line_at(lines, match[2]), match[3])] = None
    return tuple(sorted(found, key=lambda mistake: (mistake.line, mistake)))


def reading_of(fleet: Fleet, mistakes: Iterable[Mistake]) -> Reading:
    """The result of reading: with an error there is no fleet, with warnings there is one (CFG-071)."""
    found = tuple(mistakes)
    errors = tuple([mistake for mistake in found if mistake.code not in WARNINGS])
    return Reading(None if errors else fleet, errors, tuple([m for m in found if m.code in WARNINGS]))


def in_seconds(span: int) -> int | float:
    """Nanoseconds as seconds; whole seconds without a decimal point.

    >>> in_seconds(2_000_000_000), in_seconds(50_000_000)
    (2, 0.05)
    """
    return span // SECOND if span % SECOND == 0 else span / SECOND


def seconds_of(value: object) -> int | None:
    """A replicated span in seconds as nanoseconds; None if it is invalid or outside the bounds of CFG-074."""
    span = span_ns(value)
    return span if span is not None and SPAN_MIN_NS <= span <= SPAN_MAX_NS else None
