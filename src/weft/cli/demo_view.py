"""What the demonstration shows while it runs: this machine, the tree, its links and spools, and the lake filling."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from weft.cli.fleet import Member
from weft.cli.kit.console import plain_table
from weft.cli.status import in_tree_order
from weft.cli.top_view import METERS, Screen, busiest, percent, spark

NEWS_LINES: Final = 5
COLUMNS: Final = ("node", "link", "samples", "spool", "died", "cpu", "memory", "disk", "busiest")
PLOT: Final = 4  # points of processor time, 20 seconds
NAME_MAX: Final = 11  # of a process, so that all fits 80 columns


class View:
    """Keeps how many samples each start of a node has numbered, and what the console said last."""

    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.news: deque[str] = deque(maxlen=NEWS_LINES)
        self.waiting = "Spark is starting"
        """What is shown until rows are in the tables."""
        self._taken: dict[str, dict[int, int]] = {}
        """Samples that each start of each node has numbered."""
        self.screen = Screen()
        """What the root's console says."""

    def render(self, statuses: Sequence[dict[str, Any]], members: Sequence[Member], lake: dict[str, Any]) -> Group:
        """All lines of the picture, as of now."""
        left = max(0, round(self.ends_at - time.monotonic()))
        return Group(
            Text(
                f"a fabric of {len(statuses)} nodes measures this machine; {left} s left; Ctrl-C ends it early",
                style="bold",
            ),
            self._tree(statuses, {member.name: member for member in members}),
            Panel(self._lake(lake), title="lake", title_align="left"),
            Text("\n".join(self.news), style="yellow"),
        )

    def line(self, statuses: Sequence[dict[str, Any]], lake: dict[str, Any]) -> str:
        """The same in one line, where there is no terminal."""
        self._count(statuses)
        spooled = sum(status["cores"].get("carrier", {}).get("spool_records", 0) for status in statuses)
        left = max(0, round(self.ends_at - time.monotonic()))
        return (
            f"{left:4d} s left  nodes {len(statuses)}  samples {self._sum():,}  spool {spooled:,}  "
            f"{self._machine()}  {self._lake(lake).plain}"
        )

    def _machine(self) -> str:
        """This machine, as the root measures it."""
        row = self.screen.nodes.get(self.screen.head.get("node", ""), {"values": {}})
        meters = "  ".join(f"{name} {percent(row['values'].get(name, [])).strip()}" for name in METERS)
        return f"{meters}  busiest {busiest(row)}"

    def _tree(self, statuses: Sequence[dict[str, Any]], members: dict[str, Member]) -> Table:
        self._count(statuses)
        table = plain_table(*COLUMNS, padding=(0, 1, 0, 0))
        shown = {row["name"]: row for row in self.screen.nodes.values()}
        for depth, status in in_tree_order(list(statuses)):
            carrier = status["cores"].get("carrier", {})
            member = members.get(status["name"])
            row = shown.get(status["name"], {"values": {}})
            cpu, memory, disk = (row["values"].get(name, []) for name in METERS)
            table.add_row(
                "  " * depth + status["name"],
                str(carrier.get("state", "")).lower() if status["parent"]["name"] else "root",
                f"{sum(self._taken[status['name']].values()):,}",
                f"{carrier.get('spool_records', 0):,}",
                str(len(member.deaths)) if member and member.deaths else "",
                f"{spark(cpu, self.screen.at_ms // 5_000, PLOT)} {percent(cpu)}",
                percent(memory),
                percent(disk),
                busiest(row, NAME_MAX),
            )
        return table

    def _count(self, statuses: Sequence[dict[str, Any]]) -> None:
        """Count the samples of all starts: a node that starts again numbers its samples from 1."""
        for status in statuses:
            starts = self._taken.setdefault(status["name"], {})
            starts[status["era"]] = max(_samples(status), starts.get(status["era"], 0))

    def _sum(self) -> int:
        return sum(sum(starts.values()) for starts in self._taken.values())

    def _lake(self, lake: dict[str, Any]) -> Text:
        if not lake:
            return Text(self.waiting, style="dim")
        odd = {name: lake[name] for name in ("duplicates", "quarantined", "missing") if lake[name]}
        more = "".join(f", {name} {value:,}" for name, value in odd.items())
        return Text(f"in the tables {lake['silver']:,} of {self._sum():,}{more}, newest {lake['freshness']} old")


def _samples(status: dict[str, Any]) -> int:
    return int(status["cores"].get("measurement", {}).get("numbered", 0))
